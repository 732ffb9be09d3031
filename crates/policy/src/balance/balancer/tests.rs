//! What holds for a balancer of every policy.

use super::*;
use crate::Kind;
use crate::balance::prequal::Reading;
use crate::config::{
    LeastConnArgs, MaglevArgs, P2cArgs, PeakEwmaArgs, PrequalArgs, RingHashArgs, RoundRobinArgs, Start, Ties,
    ZuulArgs,
};

const ALL_TIES: [Ties; 3] = [Ties::Random, Ties::First, Ties::Rotate];

fn all() -> Vec<Balance> {
    let mut all = vec![
        Balance::Random,
        Balance::RoundRobin(RoundRobinArgs { start: Start::Random }),
        Balance::P2c(P2cArgs {
            choices: 2,
            replacement: false,
            ties: Ties::Random,
            error_hold_ns: 0,
            bias: 1.0,
        }),
        Balance::P2c(P2cArgs {
            choices: 3,
            replacement: true,
            ties: Ties::First,
            error_hold_ns: 0,
            bias: 2.0,
        }),
        Balance::First,
        Balance::PeakEwma(PeakEwmaArgs { decay_ns: 10_000_000_000, default_rtt_ns: 30_000_000 }),
        Balance::Zuul(ZuulArgs { load: "x-load".to_owned(), decay_ns: 30_000_000_000, max_load: None }),
        Balance::Zuul(ZuulArgs { load: "x-load".to_owned(), decay_ns: 1_000, max_load: Some(0.5) }),
        Balance::RingHash(RingHashArgs { bound: None }),
        Balance::RingHash(RingHashArgs { bound: Some(1.25) }),
        Balance::Maglev(MaglevArgs { table_size: 1009, bound: None }),
        Balance::Maglev(MaglevArgs { table_size: 1009, bound: Some(1.25) }),
        Balance::Prequal(PrequalArgs {
            probes: 3.0,
            pool: 16,
            age_ns: 1_000_000_000,
            q_rif: 0.84,
            remove: 1.0,
            delta: 1.0,
        }),
        Balance::LeastWork,
    ];
    all.extend(ALL_TIES.map(|ties| Balance::LeastConn(LeastConnArgs { ties, error_hold_ns: 0 })));
    all
}

fn balancer(config: &Balance, weights: &[f64]) -> Balancer {
    Balancer::new(config, weights, Key::new(2))
}

/// Never a target of weight 0, the excluded only where nothing else is left, the same again for the same draws.
#[test]
fn what_holds_for_every_pick() {
    for config in all() {
        let run = || {
            let mut lb = balancer(&config, &[1.0, 0.0, 1.0, 1.0]);
            let mut picks = Vec::new();
            for i in 0..500u64 {
                let exclude: &[TargetId] = match i % 3 {
                    0 => &[],
                    1 => &[TargetId(2)],
                    _ => &[TargetId(0), TargetId(2), TargetId(3)],
                };
                let t = lb.pick(Key::new(9).with(i), exclude).unwrap();
                assert_ne!(t, TargetId(1), "{}", config.name());
                assert!(i % 3 != 1 || t != TargetId(2), "{}", config.name());
                assert_eq!(lb.done(t, None), Release::Now);
                picks.push(t);
            }
            picks
        };
        assert_eq!(run(), run());
        assert_eq!(balancer(&config, &[]).pick(Key::new(1), &[]), None);
    }
}

#[test]
fn a_failed_request_is_held_and_a_good_one_is_not() {
    let held = Balance::LeastConn(LeastConnArgs { ties: Ties::First, error_hold_ns: 7 });
    let mut lb = Balancer::new(&held, &[1.0, 1.0], Key::new(0));
    assert_eq!(lb.pick(Key::new(0), &[]), Some(TargetId(0)));
    assert_eq!(lb.done(TargetId(0), Some(Kind::Refused)), Release::After(7));
    assert_eq!(lb.pick(Key::new(0), &[]), Some(TargetId(1)));
    assert_eq!(lb.done(TargetId(1), None), Release::Now);
    assert_eq!(lb.pick(Key::new(0), &[]), Some(TargetId(1)));
    lb.release(TargetId(0));
    assert_eq!(lb.pick(Key::new(0), &[]), Some(TargetId(0)));
}

/// A plain account of the targets and the requests in flight, kept beside the balancer.
#[derive(Clone, Default)]
struct Book {
    weight: Vec<f64>,
    eligible: Vec<bool>,
    gone: Vec<bool>,
    in_flight: Vec<u32>,
}

impl Book {
    fn may_be_picked(&self, t: usize) -> bool {
        !self.gone[t] && self.eligible[t] && self.weight[t] > 0.0
    }
}

/// Targets come, go, drain and change their weight while requests are in flight: no pick of one that is out, no count
/// is lost, no index is used again while something is in flight there, and all of it is the same again.
#[test]
fn target_sets_change_under_load() {
    for config in all() {
        for seed in 0..6u64 {
            assert_eq!(churn(&config, seed), churn(&config, seed), "{}", config.name());
        }
    }
}

fn churn(config: &Balance, seed: u64) -> Vec<TargetId> {
    let weights: Vec<f64> = (0..6).map(|i| 1.0 + (i % 3) as f64 * (seed % 2) as f64).collect();
    let mut book = Book { weight: weights.clone(), ..Book::default() };
    (book.eligible, book.gone, book.in_flight) = (vec![true; 6], vec![false; 6], vec![0; 6]);
    let (mut lb, mut picks) = (balancer(config, &weights), Vec::new());
    for step in 0..3000u64 {
        let draw = Key::new(seed).with(step);
        let t = draw.nth(90).below(book.weight.len() as u64) as usize;
        let target = TargetId(t as u32);
        match draw.nth(91).below(100) {
            0 if !book.gone[t] => {
                book.weight[t] = draw.nth(92).below(4) as f64 * 0.5;
                lb.set_weight(step, target, book.weight[t]);
            }
            1 | 2 if !book.gone[t] => {
                book.eligible[t] = !book.eligible[t];
                lb.set_eligible(step, target, book.eligible[t]);
            }
            3 if !book.gone[t] => {
                book.gone[t] = true;
                lb.remove(step, target);
            }
            4 if book.weight.len() < 40 => {
                let at = lb.add(step, 1.0, "new").index();
                if at == book.weight.len() {
                    book.weight.push(0.0);
                    book.in_flight.push(0);
                    book.eligible.push(true);
                    book.gone.push(true);
                }
                assert!(book.gone[at] && book.in_flight[at] == 0, "{}: index {at} in use", config.name());
                (book.weight[at], book.eligible[at], book.gone[at]) = (1.0, true, false);
            }
            5..=44 if book.in_flight[t] > 0 => {
                book.in_flight[t] -= 1;
                match draw.nth(93).below(4) {
                    0 => lb.cancelled(step, target, 1000),
                    1 => _ = lb.finished(step, target, 0, Some(Kind::Status5xx)),
                    _ => _ = lb.finished(step, target, 1000, None),
                }
            }
            roll => {
                let ask = Ask { key: (roll % 2 == 0).then_some(step), ..Ask::new(draw, step) };
                let barred = |b: TargetId| roll >= 80 && b == target;
                let open =
                    TargetId::all(lb.roster().len()).any(|b| book.may_be_picked(b.index()) && !barred(b));
                let picked = if roll >= 80 { lb.ask_where(&ask, barred) } else { lb.ask(&ask) };
                assert_eq!(picked.is_some(), open, "{}", config.name());
                if let Some(p) = picked {
                    assert!(book.may_be_picked(p.index()) && !barred(p), "{}: {p}", config.name());
                    book.in_flight[p.index()] += 1;
                    picks.push(p);
                }
            }
        }
        if let Some(counted) = lb.in_flight(target) {
            assert_eq!(counted, book.in_flight[t], "{}", config.name());
            assert_eq!(lb.total_in_flight(), book.in_flight.iter().map(|c| u64::from(*c)).sum());
        }
    }
    picks
}

/// The shares of picks from one state, over many requests.
fn shares(lb: &Balancer, picks: u64, barred: impl Fn(TargetId) -> bool + Copy) -> Vec<f64> {
    let mut seen = vec![0.0; lb.roster().len() as usize];
    for i in 0..picks {
        let ask = Ask::new(Key::new(77).with(i), 0);
        seen[lb.clone().ask_where(&ask, barred).unwrap().index()] += 1.0 / picks as f64;
    }
    seen
}

/// Relabelling the targets changes nothing in distribution: idle, each of n gets 1/n, and a target that is out,
/// ineligible or gone, leaves his share to all others alike and not to a neighbour.
#[test]
fn no_target_is_favoured_for_its_place() {
    for config in all() {
        let exempt = |ties: &Ties| matches!(ties, Ties::First);
        let by_place = match &config {
            Balance::First | Balance::RoundRobin(_) => true,
            Balance::LeastConn(LeastConnArgs { ties, .. }) => exempt(ties) || *ties == Ties::Rotate,
            Balance::P2c(P2cArgs { ties, .. }) => exempt(ties),
            Balance::RingHash(_) => true, // shares of a ring are uneven; its own file tests them
            _ => false,
        };
        if by_place {
            continue;
        }
        let even = |got: &[f64], out: usize| {
            for (t, share) in got.iter().enumerate() {
                let want = if t == out { 0.0 } else { 0.2 };
                assert!((share - want).abs() < 0.02, "{}: {got:?}", config.name());
            }
        };
        let whole = balancer(&config, &[1.0; 6]);
        even(&shares(&whole, 12_000, |t| t == TargetId(3)), 3);
        let mut out = whole.clone();
        out.set_eligible(0, TargetId(3), false);
        even(&shares(&out, 12_000, |_| false), 3);
        out.set_eligible(0, TargetId(3), true);
        let mut gone = whole.clone();
        gone.remove(0, TargetId(0));
        even(&shares(&gone, 12_000, |_| false), 0);
    }
}

/// Where several are barred and weights differ, the rest keeps its proportions.
#[test]
fn those_left_keep_their_proportions() {
    for config in [Balance::Random, Balance::Maglev(MaglevArgs { table_size: 10_007, bound: None })] {
        let lb = balancer(&config, &[5.0, 3.0, 2.0, 1.0]);
        let got = shares(&lb, 20_000, |t| t == TargetId(0) || t == TargetId(2));
        assert!((got[1] - 0.75).abs() < 0.015 && (got[3] - 0.25).abs() < 0.015, "{} {got:?}", config.name());
    }
}

/// More in flight at a target never makes it likelier to be picked.
#[test]
fn load_never_attracts() {
    for config in all().into_iter().filter(|b| b.traits().counts) {
        let mut lb = balancer(&config, &[1.0, 2.0, 1.0, 1.0]);
        if config.traits().hashes {
            continue; // a bound is a step: tested there
        }
        let mut before = shares(&lb, 8_000, |_| false)[1];
        for _ in 0..6 {
            lb.take(TargetId(1));
            let now = shares(&lb, 8_000, |_| false)[1];
            assert!(now <= before + 0.02, "{}: {before} to {now}", config.name());
            before = now;
        }
    }
}

/// Of ten equals one fails at once: policies that measure time do not give it more than its even share, and never let
/// go of it either; `lb.zuul`, which counts failures, tries it again after its decay. What is wrong with the request itself changes nothing.
#[test]
fn failing_fast_draws_no_traffic_where_time_is_measured() {
    for config in all().into_iter().filter(|b| b.traits().measures) {
        let mut lb = balancer(&config, &[1.0; 10]);
        let mut seen = [0; 10];
        for i in 0..20_000u64 {
            let (now, draw) = (i * 1_000_000, Key::new(31).with(i));
            if let Some(prequal) = lb.prequal() {
                // Each says that it has nothing to do and takes as long as it was seen to.
                let latency = |t| if t == TargetId(3) { 0 } else { 10_000_000 };
                prequal.probe(now, draw, |t| Reading { in_flight: 0, latency_ns: latency(t) });
            }
            let t = lb.ask(&Ask::new(draw, now)).unwrap();
            seen[t.index()] += 1;
            let (took, outcome) =
                if t == TargetId(3) { (0, Some(Kind::Status5xx)) } else { (10_000_000, None) };
            lb.finished(now + took, t, took, outcome);
        }
        let fair = match &config {
            Balance::Zuul(args) if args.decay_ns > 20_000_000_000 => 1..=1,
            Balance::Zuul(_) => 1..=2149,
            // 3.5 standard errors of 20,000 picks.
            _ => 1851..=2149,
        };
        assert!(fair.contains(&seen[3]), "{}: {seen:?}", config.name());
        let mut same = lb.clone();
        same.take(TargetId(5));
        same.finished(u64::MAX / 4, TargetId(5), 0, Some(Kind::BadRequest));
        let ask = |lb: &mut Balancer, i| lb.ask(&Ask::new(Key::new(32).with(i), 20_000_000_000));
        assert!((0..1000).all(|i| ask(&mut lb, i) == ask(&mut same, i)), "{}", config.name());
    }
}

/// Smooth round robin after a change: over each cycle of the new weights each target has exactly its share.
#[test]
fn round_robin_is_exact_after_every_change() {
    for start in [Start::Random, Start::First] {
        let mut lb = balancer(&Balance::RoundRobin(RoundRobinArgs { start }), &[5.0, 1.0, 1.0, 3.0]);
        let mut exact = |weights: [usize; 4]| {
            lb.change(0, |r| {
                for (t, w) in weights.iter().enumerate() {
                    r.set_eligible(TargetId(t as u32), *w > 0);
                    if *w > 0 {
                        r.set_weight(TargetId(t as u32), *w as f64);
                    }
                }
            });
            for _ in 0..3 {
                let mut seen = [0; 4];
                (0..weights.iter().sum()).for_each(|_| seen[lb.pick(Key::new(1), &[]).unwrap().index()] += 1);
                assert_eq!(seen, weights);
            }
        };
        exact([5, 1, 1, 3]);
        exact([5, 0, 1, 3]);
        exact([2, 2, 2, 2]);
        exact([2, 0, 2, 2]);
        exact([2, 7, 2, 1]);
    }
}

/// Equal weights go on with the target whose turn it is, whoever joins or leaves.
#[test]
fn round_robin_keeps_its_turn() {
    let mut lb = balancer(&Balance::RoundRobin(RoundRobinArgs { start: Start::First }), &[1.0; 4]);
    let next = |lb: &mut Balancer| lb.pick(Key::new(0), &[]).unwrap();
    assert_eq!([next(&mut lb), next(&mut lb)], [0, 1].map(TargetId));
    lb.set_eligible(0, TargetId(0), false);
    assert_eq!(next(&mut lb), TargetId(2));
    lb.set_eligible(0, TargetId(3), false);
    lb.set_eligible(0, TargetId(0), true);
    assert_eq!(
        [next(&mut lb), next(&mut lb)],
        [1, 2].map(TargetId),
        "the turn had gone from 3 to the next of the circle"
    );
    assert_eq!(lb.add(0, 1.0, ""), TargetId(4));
    assert_eq!([next(&mut lb), next(&mut lb), next(&mut lb), next(&mut lb)], [0, 1, 2, 4].map(TargetId));
}
