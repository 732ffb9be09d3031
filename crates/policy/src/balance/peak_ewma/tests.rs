//! `lb.peak_ewma` against its formula, plain shares and a model that remembers everything.

use super::*;
use crate::Kind;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

fn lb(n: usize) -> PeakEwma {
    PeakEwma::new(&vec![1.0; n], 10 * S, 30 * MS)
}

fn close(got_ns: f64, want_ms: f64) {
    assert!((got_ns / 1e6 - want_ms).abs() < 0.005, "{} ms, not {want_ms}", got_ns / 1e6);
}

fn answer(lb: &mut PeakEwma, at: u64, rtt_ms: u64, outcome: Outcome) {
    end(lb, TargetId(0), at, rtt_ms, outcome);
}

fn end(lb: &mut PeakEwma, target: TargetId, at: u64, rtt_ms: u64, outcome: Outcome) {
    lb.take(target);
    lb.done(target, at, rtt_ms * MS, outcome);
}

/// The share of picks that each target gets from one state, idle.
fn shares(lb: &PeakEwma, now_ns: u64) -> Vec<f64> {
    let mut seen = vec![0.0; lb.costs.len()];
    for i in 0..40_000 {
        let draw = Key::new(8).with(i);
        seen[lb.clone().pick_where(draw, now_ns, |_| false).unwrap().index()] += 1.0 / 40_000.0;
    }
    seen
}

/// The oracles of the notes: decay of an idle target, and of a spike under good answers.
#[test]
fn costs_are_those_of_the_formula() {
    let lb1 = lb(1);
    close(lb1.cost_ns(TargetId(0), 5 * S), 18.20);
    close(lb1.cost_ns(TargetId(0), 10 * S), 11.04);
    close(lb1.cost_ns(TargetId(0), 6_931_471_806), 15.00);
    let mut spike = lb(1);
    answer(&mut spike, 0, 1000, None);
    for k in 1..=20u64 {
        answer(&mut spike, k * S, 10, None);
        close(spike.cost_ns(TargetId(0), k * S), 10.0 + 990.0 * math::exp(-(k as f64) / 10.0));
    }
    let mut same = lb(1);
    answer(&mut same, 0, 30, None);
    close(same.cost_ns(TargetId(0), 0), 30.0);
    let mut looked = lb(1);
    (0..1000)
        .for_each(|i| close(looked.cost_ns(TargetId(0), i * MS), 30.0 * math::exp(-(i as f64) / 10_000.0)));
    answer(&mut looked, S, 10, None);
    close(looked.cost_ns(TargetId(0), S), 10.0 + 20.0 * math::exp(-0.1));
}

#[test]
fn errors_raise_the_cost_and_never_lower_it() {
    let mut failing = lb(1);
    answer(&mut failing, S, 0, Some(Kind::Refused));
    close(failing.cost_ns(TargetId(0), S), 30.0 * math::exp(-0.1));
    answer(&mut failing, S, 70, Some(Kind::Timeout));
    close(failing.cost_ns(TargetId(0), S), 70.0);
    let before = failing.costs[0];
    answer(&mut failing, 2 * S, 500, Some(Kind::BadRequest));
    assert_eq!(failing.costs[0], before, "the client's mistake");
}

/// A model simple enough to be checked by reading, by shares over many draws.
#[test]
fn the_cheaper_of_two_distinct_draws_is_taken() {
    let mut three = lb(3);
    for (t, rtt) in [(0, 10), (1, 20), (2, 40)] {
        three.costs[t].ns = (rtt * MS) as f64;
    }
    three.costs[0].in_flight = 2; // 30 against 20 and 40: the second beats both, the first the third
    let shares = |lb: &PeakEwma, barred: u32| {
        let mut seen = [0.0; 3];
        for i in 0..30_000 {
            seen[lb
                .clone()
                .pick_where(Key::new(1).with(i), 0, |t| t == TargetId(barred))
                .unwrap()
                .index()] += 1.0 / 3e4;
        }
        seen
    };
    let close = |got: [f64; 3], want: [f64; 3]| {
        assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 0.015), "{got:?} {want:?}");
    };
    close(shares(&three, 9), [1.0 / 3.0, 2.0 / 3.0, 0.0]);
    close(shares(&three, 1), [1.0, 0.0, 0.0]);
    three.weights[2] = 4.0; // now it costs 10
    close(shares(&three, 9), [0.0, 1.0 / 3.0, 2.0 / 3.0]);
    close(shares(&lb(3), 9), [1.0 / 3.0; 3]);
    assert_eq!(lb(2).pick_where(Key::new(1), 0, |_| true), None);
    assert_eq!(lb(1).pick_where(Key::new(1), 0, |_| false), Some(TargetId(0)));
}

/// One of ten is ten times slower: it gets next to nothing.
#[test]
fn a_slow_target_is_avoided() {
    let mut lb = lb(10);
    let mut seen = [0; 10];
    for i in 0..20_000u64 {
        let now = i * 5 * MS;
        let t = lb.pick_where(Key::new(3).with(i), now, |_| false).unwrap();
        seen[t.index()] += 1;
        let rtt = if t == TargetId(9) { 100 } else { 10 };
        lb.done(t, now + rtt * MS, rtt * MS, None);
    }
    assert!(seen[9] < 200 && seen[..9].iter().all(|c| (1900..2500).contains(c)), "{seen:?}");
    assert_eq!(lb.total_in_flight(), 0);
}

/// One of n that failed last is taken where it is drawn first: 1/n, however cheap or dear it is. Its first success ends
/// that.
#[test]
fn failing_fast_draws_no_traffic() {
    for n in [2, 3, 10] {
        let even = 1.0 / n as f64;
        for (rtt, others) in [(0, 10), (0, 1000), (1000, 10)] {
            let mut lb = lb(n);
            (1..n as u32).for_each(|t| end(&mut lb, TargetId(t), 0, others, None));
            end(&mut lb, TargetId(0), 0, rtt, Some(Kind::Status5xx));
            let got = shares(&lb, 0);
            // 4.5 standard errors of 40,000 picks.
            assert!((got[0] - even).abs() < 0.011, "{n}, {rtt} ms against {others} ms: {got:?}");
            end(&mut lb, TargetId(0), 2000 * S, others, None);
            (1..n as u32).for_each(|t| end(&mut lb, TargetId(t), 2000 * S, others, None));
            let got = shares(&lb, 2000 * S);
            assert!(got.iter().all(|g| (g - even).abs() < 0.011), "{n}: {got:?}");
        }
    }
    // One of a tenth of the weight gets a tenth of that.
    let mut light = PeakEwma::new(&[1.0, 0.1, 1.0], 10 * S, 30 * MS);
    end(&mut light, TargetId(1), 0, 0, Some(Kind::Refused));
    assert!((shares(&light, 0)[1] - 1.0 / 30.0).abs() < 0.005, "{:?}", shares(&light, 0));
    // A heavy one no more than any.
    let mut heavy = PeakEwma::new(&[1.0, 10.0, 1.0], 10 * S, 30 * MS);
    end(&mut heavy, TargetId(1), 0, 0, Some(Kind::Refused));
    assert!((shares(&heavy, 0)[1] - 1.0 / 3.0).abs() < 0.011);
}

/// Time alone brings the cost down to the longest time that a request was cancelled after, and a success ends that.
#[test]
fn a_cancelled_request_raises_the_cost_until_a_success() {
    let cancelled = Some(Kind::Cancelled);
    let mut lb = lb(2);
    answer(&mut lb, 0, 15, cancelled);
    close(lb.cost_ns(TargetId(0), 0), 30.0);
    close(lb.cost_ns(TargetId(0), S), 30.0 * math::exp(-0.1));
    close(lb.cost_ns(TargetId(0), 100 * S), 15.0);
    answer(&mut lb, 100 * S, 40, cancelled);
    answer(&mut lb, 101 * S, 20, cancelled);
    close(lb.cost_ns(TargetId(0), 101 * S), 40.0);
    answer(&mut lb, 200 * S, 0, Some(Kind::Refused));
    close(lb.cost_ns(TargetId(0), 300 * S), 40.0);
    answer(&mut lb, 310 * S, 5, None);
    let w = math::exp(-11.0) * math::exp(-9.9);
    close(lb.cost_ns(TargetId(0), 310 * S), 40.0 * w + 5.0 * (1.0 - w));
    close(lb.cost_ns(TargetId(0), 1000 * S), 0.0);
}

/// What is cancelled each time is tried by one in 64 of the picks that draw it first, not while a request is there, and
/// gets its share again with its first success.
#[test]
fn a_target_that_was_cancelled_is_tried_now_and_then() {
    let mut two = lb(2);
    end(&mut two, TargetId(0), S, 15, Some(Kind::Cancelled));
    end(&mut two, TargetId(1), S, 10, None);
    let got = shares(&two, S);
    assert!((got[0] - 1.0 / 128.0).abs() < 0.002, "{got:?}");
    let mut busy = two.clone();
    busy.take(TargetId(0));
    assert_eq!(shares(&busy, S)[0], 0.0);
    // By then all that was known before has decayed to nothing.
    end(&mut two, TargetId(0), 2000 * S, 10, None);
    end(&mut two, TargetId(1), 2000 * S, 10, None);
    assert!((shares(&two, 2000 * S)[0] - 0.5).abs() < 0.011);
}

/// A limit of 15 ms around one that hangs and one that takes 10 ms, which may be busy: of 2000 requests few are cut
/// off.
#[test]
fn a_target_that_hangs_is_not_chosen_again_and_again() {
    for (gap, most) in [(5 * MS, 60), (20 * MS, 40), (100 * MS, 40), (10 * S, 40)] {
        let mut lb = lb(2);
        let (mut open, mut failed): (Vec<(u64, u32)>, u32) = (Vec::new(), 0);
        for i in 0..2000u64 {
            let now = i * gap;
            for (at, t) in open.extract_if(.., |(at, t)| *at + if *t == 0 { 15 * MS } else { 10 * MS } <= now)
            {
                let (took, outcome) = if t == 0 { (15 * MS, Some(Kind::Cancelled)) } else { (10 * MS, None) };
                lb.done(TargetId(t), at + took, took, outcome);
            }
            let t = lb.pick_where(Key::new(5).with(i), now, |_| false).unwrap();
            failed += u32::from(t == TargetId(0));
            open.push((now, t.0));
        }
        assert!((1..=most).contains(&failed), "a request each {} ms: {failed}", gap / MS);
    }
}

/// When all come back from a stall in which everything was cancelled, the first to answer gets up to 17 more than
/// others at a time, not everything: 60 are in flight here.
#[test]
fn after_a_stall_the_first_to_answer_does_not_get_everything() {
    for n in [2, 10] {
        let mut lb = lb(n);
        (0..100).for_each(|_| {
            (0..n as u32).for_each(|t| end(&mut lb, TargetId(t), 0, 1000, Some(Kind::Cancelled)))
        });
        end(&mut lb, TargetId(0), S, 60, None);
        let (mut open, mut most) = (Vec::<(u64, u32)>::new(), 0);
        for i in 0..2000u64 {
            let now = S + i * MS;
            for (at, t) in open.extract_if(.., |(at, _)| *at + 60 * MS <= now) {
                lb.done(TargetId(t), at + 60 * MS, 60 * MS, None);
            }
            let t = lb.pick_where(Key::new(6).with(i), now, |_| false).unwrap();
            open.push((now, t.0));
            most = most.max(lb.in_flight(t));
        }
        let even = 60 / n as u32;
        assert!(most <= even + 17, "{n}: {most} in flight at one");
        assert!(lb.costs.iter().all(|c| c.cancelled == 0), "{n}: all have answered");
    }
}

/// What one target has seen, from which the model works everything out anew each time.
#[derive(Clone, Default)]
struct Sample {
    in_flight: u32,
    ended: Vec<(u64, f64, Outcome)>,
}

impl Sample {
    fn cost_ms(&self, now_ns: u64) -> f64 {
        let decay = |from: u64, to: u64| math::exp(-((to - from) as f64) / 10e9);
        let (mut cost, mut stamp, mut least) = (30.0, 0, 0.0);
        for &(at, rtt, outcome) in &self.ended {
            let past = decay(stamp, at);
            cost = match outcome {
                Some(Kind::BadRequest) => continue,
                _ if rtt > cost => rtt,
                None => cost * past + rtt * (1.0 - past),
                Some(_) => (cost * past).max(rtt),
            };
            least = match outcome {
                None => 0.0,
                Some(Kind::Cancelled) => rtt.max(least),
                Some(_) => least,
            };
            stamp = at;
        }
        (cost * decay(stamp, now_ns)).max(least)
    }

    fn cancelled(&self) -> usize {
        let since = self.ended.rsplit(|e| e.2.is_none()).next().unwrap_or_default();
        since.iter().filter(|e| e.2 == Some(Kind::Cancelled)).count().min(16)
    }

    fn failed(&self) -> bool {
        let counts = |o: &Outcome| !matches!(o, Some(Kind::BadRequest | Kind::Cancelled));
        self.ended.iter().rev().map(|e| e.2).find(counts).flatten().is_some()
    }
}

impl Sample {
    fn load(&self, weight: f64, now_ns: u64) -> f64 {
        self.cost_ms(now_ns) * (self.in_flight as usize + self.cancelled() + 1) as f64 / weight
    }
}

/// What the model takes of two, in the order drawn; `None` where only rounding tells them apart.
fn of_two([a, b]: [&Sample; 2], weights: [f64; 2], draw: Key, now_ns: u64) -> Option<usize> {
    let loads = [a.load(weights[0], now_ns), b.load(weights[1], now_ns)];
    match (a.failed(), b.failed()) {
        (true, false) => Some(usize::from(draw.unit() >= weights[0] / weights[1])),
        (false, true) => Some(0),
        _ if a.cancelled() > 0 && a.in_flight == 0 && draw.unit() < 1.0 / 64.0 => Some(0),
        _ if (loads[0] - loads[1]).abs() < 1e-9 * loads[0] => None,
        _ => Some(usize::from(loads[1] < loads[0])),
    }
}

/// Costs and picks are the model's whatever happens, in whatever order.
#[test]
fn it_agrees_with_a_model_that_remembers_everything() {
    let weights = [1.0, 2.0, 1.0, 0.5, 0.0];
    let (mut doubted, mut decided) = (0, 0);
    for seed in 0..20u64 {
        let mut lb = PeakEwma::new(&weights, 10 * S, 30 * MS);
        let mut seen = vec![Sample::default(); 5];
        let mut now = 0;
        for step in 0..600 {
            let draw = Key::new(seed).with(step);
            now += draw.nth(90).below(300) * MS;
            let t = draw.nth(91).below(4) as usize;
            if seen[t].in_flight > 0 && draw.nth(92).below(2) == 0 {
                let rtt_ms = draw.nth(93).below(60) * draw.nth(94).below(2);
                let ends = [None, None, Some(Kind::Cancelled), Some(Kind::Status5xx), Some(Kind::BadRequest)];
                let outcome = ends[draw.nth(95).below(5) as usize];
                lb.done(TargetId(t as u32), now, rtt_ms * MS, outcome);
                seen[t].in_flight -= 1;
                seen[t].ended.push((now, rtt_ms as f64, outcome));
            }
            let mut drawn: Vec<usize> = Vec::new();
            for trial in 0..TRIALS {
                let t = draw.nth(trial).below(4) as usize;
                if drawn.len() < 2 && !drawn.contains(&t) {
                    drawn.push(t);
                }
            }
            let pair = [drawn[0], drawn[1]];
            let want = of_two(pair.map(|t| &seen[t]), pair.map(|t| weights[t]), draw.nth(DOUBT), now);
            let got = lb.pick_where(draw, now, |_| false).unwrap().index();
            assert!(
                pair.contains(&got) && want.is_none_or(|at| pair[at] == got),
                "{pair:?}, {want:?}: {got}"
            );
            doubted += u32::from(pair.iter().any(|t| seen[*t].failed() || seen[*t].cancelled() > 0));
            decided += u32::from(want.is_some());
            seen[got].in_flight += 1;
            for (t, seen) in (0u32..4).zip(&seen) {
                let (got, want) = (lb.cost_ns(TargetId(t), now) / 1e6, seen.cost_ms(now));
                assert!((got - want).abs() < 1e-9 * (1.0 + want), "{got} ms, not {want}");
            }
        }
    }
    assert!(doubted > 5000 && decided > 11_000, "of 12,000 {doubted} with doubts, {decided} decided");
}
