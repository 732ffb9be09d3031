//! `lb.prequal` against the paper's figures and plain models.

use super::*;

const DEFAULT: PrequalArgs =
    PrequalArgs { probes: 3.0, pool: 16, age_ns: 1_000_000_000, q_rif: 0.84, remove: 1.0, delta: 1.0 };

fn reading(in_flight: u32, latency_ns: u64) -> Reading {
    Reading { in_flight, latency_ns }
}

fn lb(n: usize, how: PrequalArgs) -> Prequal {
    Prequal::new(&vec![1.0; n], how)
}

fn mean_uses(n: usize, pool: u32) -> f64 {
    let lb = lb(n, PrequalArgs { pool, ..DEFAULT });
    (0..20_000).map(|i| f64::from(lb.uses(Key::new(1).with(i)))).sum::<f64>() / 20_000.0
}

/// The notes' worked figures: 1.316 with a pool of 16 of 100, 3.57 with 48, unlimited with 4 of 6.
#[test]
fn the_reuse_budget_is_the_papers() {
    assert!((mean_uses(100, 16) - 1.316).abs() < 0.02);
    assert!((mean_uses(100, 48) - 3.571).abs() < 0.02);
    assert_eq!(lb(6, PrequalArgs { pool: 4, ..DEFAULT }).uses(Key::new(1)), u32::MAX);
}

fn keep() -> PrequalArgs {
    PrequalArgs { remove: 0.0, probes: 0.0, ..DEFAULT }
}

/// With a threshold of 5: of (RIF 10, 1 ms), (2, 50 ms) and (3, 20 ms) the third; of two hot ones the less loaded.
#[test]
fn hot_ones_are_avoided_and_the_fastest_cold_one_taken() {
    let mut three = lb(4, keep());
    (0..100).for_each(|_| three.remember(5));
    for (t, rif, ms) in [(0, 10, 1), (1, 2, 50), (2, 3, 20)] {
        three.probed(0, Key::new(1), TargetId(t), reading(rif, ms * 1_000_000));
    }
    assert_eq!(three.threshold(), 5.0);
    assert_eq!(three.clone().pick_where(Key::new(1), 0, |_| false), Some(TargetId(2)));
    assert_eq!(three.clone().pick_where(Key::new(1), 0, |t| t == TargetId(2)), Some(TargetId(1)));
    let mut hot = lb(4, keep());
    (0..100).for_each(|_| hot.remember(5));
    hot.probed(0, Key::new(1), TargetId(0), reading(10, 1));
    hot.probed(0, Key::new(1), TargetId(1), reading(8, 9));
    assert_eq!(hot.pick_where(Key::new(1), 0, |_| false), Some(TargetId(1)));
    assert_eq!(hot.pool[1].rif, 9, "and is one fuller now");
}

#[test]
fn the_ends_of_the_quantile_are_rif_alone_and_latency_alone() {
    for (q_rif, want) in [(0.0, 1), (1.0, 0)] {
        let mut two = lb(3, PrequalArgs { q_rif, ..keep() });
        two.probed(0, Key::new(1), TargetId(0), reading(10, 1));
        two.probed(0, Key::new(1), TargetId(1), reading(2, 50));
        assert_eq!(two.pick_where(Key::new(1), 0, |_| false), Some(TargetId(want)));
    }
}

/// The quantile against one of a plain sorted copy.
#[test]
fn the_threshold_is_that_of_the_last_answers() {
    let mut lb = lb(3, DEFAULT);
    let mut all = Vec::new();
    for i in 0..500u64 {
        let rif = Key::new(2).with(i).below(40) as u32;
        all.push(rif);
        lb.remember(rif);
        let mut last = all[all.len().saturating_sub(REMEMBERED)..].to_vec();
        last.sort_unstable();
        let rank = (0.84 * last.len() as f64).ceil() as usize - 1;
        assert_eq!(lb.threshold(), f64::from(last[rank]));
    }
}

#[test]
fn answers_age_are_spent_and_removed() {
    let mut lb = lb(100, DEFAULT);
    for t in 0..40 {
        lb.probed(u64::from(t), Key::new(1), TargetId(t), reading(t, 1));
        assert!(lb.pooled() <= 16);
    }
    lb.probed(50, Key::new(1), TargetId(39), reading(0, 1));
    assert_eq!(lb.pooled(), 16, "the newest of each target only");
    lb.pick_where(Key::new(1), 50, |_| false);
    assert!((14..16).contains(&lb.pooled()), "one removed, perhaps one spent");
    lb.done(TargetId(38), 5, Some(Kind::Reset));
    assert!(lb.pool.iter().all(|a| a.target != TargetId(38)));
    lb.pick_where(Key::new(1), 2_000_000_000, |_| false);
    assert_eq!(lb.pooled(), 0);
}

#[test]
fn probes_go_to_distinct_targets_evenly() {
    let mut lb = lb(7, PrequalArgs { probes: 2.5, ..DEFAULT });
    let (mut out, mut seen, mut first, mut sent) = (Vec::new(), [0; 7], [0; 7], 0);
    for i in 0..14_000 {
        lb.to_probe(Key::new(5).with(i), &mut out);
        sent += out.len();
        assert!((2..=3).contains(&out.len()));
        first[out[0].index()] += 1;
        out.iter().for_each(|&t| seen[t.index()] += 1);
        out.sort_unstable();
        assert!(out.windows(2).all(|w| w[0] < w[1]));
    }
    assert_eq!(sent, 35_000);
    assert!(seen.iter().all(|c| (4700..5300).contains(c)), "{seen:?}");
    assert!(first.iter().all(|c| (1850..2150).contains(c)), "and as often as the first of them: {first:?}");
    lb.refresh(&[1.0, 0.0], |t| t == TargetId(0));
    lb.to_probe(Key::new(1), &mut out);
    assert_eq!(out, [TargetId(0)]);
}

#[test]
fn probes_tell_the_fast_from_the_slow() {
    let mut lb = lb(4, DEFAULT);
    let read = |t| reading(0, if t == TargetId(2) { 1 } else { 100 });
    let picks = (0..1000u64).filter(|&i| {
        let draw = Key::new(3).with(i);
        lb.probe(i, draw, read);
        lb.pick_where(draw, i, |_| false) == Some(TargetId(2))
    });
    let picked = picks.count();
    assert!(picked > 700, "{picked}: as often as it is probed, three times in four");
}

/// Without answers it draws by weight; what left the set is not picked from old answers.
#[test]
fn without_two_answers_it_is_random() {
    let mut lb = Prequal::new(&[3.0, 1.0, 0.0], DEFAULT);
    let mut seen = [0; 3];
    for i in 0..10_000 {
        seen[lb.pick_where(Key::new(1).with(i), 0, |_| false).unwrap().index()] += 1;
    }
    assert!((7_250..7_750).contains(&seen[0]) && seen[2] == 0, "{seen:?}");
    lb.probed(0, Key::new(1), TargetId(0), reading(0, 1));
    lb.probed(0, Key::new(1), TargetId(1), reading(0, 1));
    lb.refresh(&[0.0, 1.0, 1.0], |t| t != TargetId(0));
    assert_eq!(lb.pooled(), 1);
    lb.probed(0, Key::new(1), TargetId(0), reading(0, 1));
    assert_eq!(lb.pooled(), 1, "a late answer of one that left");
    assert_eq!(lb.pick_where(Key::new(1), 0, |_| true), None);
}

/// The share of picks that each target gets from one state.
fn shares(lb: &Prequal, picks: u64, barred: impl Fn(TargetId) -> bool + Copy) -> Vec<f64> {
    let mut seen = vec![0u32; lb.weights.len()];
    for i in 0..picks {
        seen[lb.clone().pick_where(Key::new(8).with(i), 0, barred).unwrap().index()] += 1;
    }
    seen.iter().map(|n| f64::from(*n) / picks as f64).collect()
}

/// From any state: a target that failed last gets one in n at most and no more than its weight's share, never more than
/// those that did not fail leave it; and something is picked wherever anything may be.
#[test]
fn a_target_that_failed_last_gets_one_in_n_at_most() {
    let mut tight = 0;
    for case in 0..300u64 {
        let draw = Key::new(7).with(case);
        let n = 2 + draw.below(9) as usize;
        let weights: Vec<f64> = (0..n as u64).map(|t| 0.25 + draw.nth(t).below(4) as f64).collect();
        let mut lb =
            Prequal::new(&weights, PrequalArgs { q_rif: [0.0, 0.84, 1.0][case as usize % 3], ..DEFAULT });
        for step in 0..60 {
            let draw = draw.with(step);
            let (t, rif) = (TargetId(draw.below(n as u64) as u32), draw.nth(1).below(4) as u32);
            match draw.nth(2).below(4) {
                0 => lb.done(t, 0, (draw.nth(3).below(2) == 0).then_some(Kind::Status5xx)),
                1 => lb.done(t, draw.nth(4).below(100), Some(Kind::Cancelled)),
                _ => lb.probed(0, draw, t, reading(rif, draw.nth(5).below(50))),
            }
        }
        let total: f64 = weights.iter().sum();
        let is_barred = |t: TargetId| draw.nth(50 + u64::from(t.0)).below(6) == 0;
        let good = TargetId::all(n as u32).filter(|&t| !is_barred(t) && !lb.doubts.get(t).failed()).count();
        if good == 0 {
            continue;
        }
        let got = shares(&lb, 4000, is_barred);
        for (t, share) in (0..).map(TargetId).zip(&got).filter(|(t, _)| lb.doubts.get(*t).failed()) {
            let most = (1.0 / n as f64).min(weights[t.index()] / total);
            // 4.5 standard errors.
            assert!(*share < most + 4.5 * (most / 4000.0).sqrt(), "case {case}, {t} of {n}: {share}, {most}");
            tight += u32::from(*share > most * 0.8);
        }
        assert!(TargetId::all(n as u32).all(|t| got[t.index()] == 0.0 || !is_barred(t)));
    }
    assert!(tight > 100, "{tight} get about that: they are tried");
}

/// The share of the first of `n` targets that answer probes and are busy four fifths of the time, with one request
/// after another: while it is like the others, while it fails at once, and afterwards.
fn shares_of_one_that_fails(n: usize, seed: u64) -> [f64; 3] {
    let (mut lb, mut busy) = (lb(n, DEFAULT), vec![Busy::default(); n]);
    let mut open: Vec<(u64, TargetId, u16, u64)> = Vec::new();
    let mut free_at = vec![0; n];
    let shares =
        [(0..10_000, false), (10_000..30_000, true), (30_000..40_000, false)].map(|(times, fails)| {
            let (requests, mut to_first) = (times.end - times.start, 0);
            for i in times {
                let (now, draw) = (i * 12_500_000 / n as u64, Key::new(seed).with(i));
                for (_, t, met, took) in open.extract_if(.., |(at, .., took)| *at + *took <= now) {
                    let outcome = (took == 0).then_some(Kind::Status5xx);
                    busy[t.index()].left(met, took, outcome);
                    lb.done(t, took, outcome);
                }
                lb.probe(now, draw, |t| busy[t.index()].reading());
                let t = lb.pick_where(draw, now, |_| false).unwrap();
                let met = busy[t.index()].entered();
                let work = (10e6 * -weir_stats::math::ln(draw.nth(70).unit())) as u64 + 1;
                let is_failure = t == TargetId(0) && fails;
                if !is_failure {
                    free_at[t.index()] = free_at[t.index()].max(now) + work;
                }
                open.push((now, t, met, if is_failure { 0 } else { free_at[t.index()] - now }));
                to_first += u64::from(t == TargetId(0));
            }
            to_first as f64 / requests as f64
        });
    assert!(!lb.doubts.any());
    shares
}

/// The answers of a target that failed last do not count, and compete again once it has made up for its errors.
#[test]
fn failing_fast_draws_no_traffic() {
    for n in [2usize, 10] {
        let all: Vec<[f64; 3]> = (0..12).map(|seed| shares_of_one_that_fails(n, seed)).collect();
        let even = 1.0 / n as f64;
        for [_, failing, _] in &all {
            assert!(*failing < even + 0.015, "{n}: {failing}, 4 standard errors at most above {even}");
        }
        let mean = |at: usize| all.iter().map(|shares| shares[at]).sum::<f64>() / all.len() as f64;
        let close = |share: f64| (share - even).abs() < 0.1 * even;
        assert!(close(mean(0)) && close(mean(2)), "{n}: {} before, {} after", mean(0), mean(2));
    }
}

#[test]
fn as_many_successes_as_errors_are_needed_to_be_believed() {
    let mut three = lb(3, keep());
    (0..3).for_each(|_| three.done(TargetId(0), 0, Some(Kind::Status5xx)));
    (0..3).for_each(|t| three.probed(0, Key::new(1), TargetId(t), reading(0, 100 * u64::from(t))));
    for left in [3, 2, 1] {
        assert!((shares(&three, 8000, |_| false)[0] - 1.0 / 3.0).abs() < 0.02, "{left} to make up for");
        three.done(TargetId(0), 100, None);
    }
    assert_eq!(shares(&three, 100, |_| false), [1.0, 0.0, 0.0], "the fastest again");
    three.done(TargetId(0), 0, Some(Kind::BadRequest));
    assert_eq!(three.pooled(), 3, "the client's mistake");
    three.done(TargetId(0), 0, Some(Kind::Refused));
    assert_eq!(three.pooled(), 2);
    // What is hot with requests in flight is not tried; with nothing in flight it is, whatever the quantile.
    (0..100).for_each(|_| three.remember(5));
    three.probed(0, Key::new(1), TargetId(0), reading(6, 0));
    assert_eq!(shares(&three, 1000, |_| false)[0], 0.0);
    three.probed(0, Key::new(1), TargetId(0), reading(5, 0));
    assert!(shares(&three, 1000, |_| false)[0] > 0.25);
    three.how.q_rif = 0.0;
    assert_eq!(shares(&three, 1000, |_| false)[0], 0.0);
    three.probed(0, Key::new(1), TargetId(0), reading(0, 0));
    assert!(shares(&three, 1000, |_| false)[0] > 0.25);
    three.forget(TargetId(0));
    assert!(!three.doubts.any() && three.pooled() == 2);
}

#[test]
fn where_too_few_answers_are_believed_those_that_failed_are_left_out() {
    let mut four = Prequal::new(&[3.0, 1.0, 1.0, 1.0], keep());
    [0, 1].into_iter().for_each(|t| four.done(TargetId(t), 0, Some(Kind::Reset)));
    let got = shares(&four, 20_000, |_| false);
    // One draw in four for the heavy one, two thirds of it for the light one; the others share the rest.
    let want = [0.25, 1.0 / 6.0, 7.0 / 24.0, 7.0 / 24.0];
    assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 0.015), "{got:?}");
    let got = shares(&four, 20_000, |t| t > TargetId(1));
    assert!((got[0] - 0.75).abs() < 0.12 && got[2] + got[3] == 0.0, "nobody else is left: {got:?}");
}

#[test]
fn a_cancelled_request_raises_what_is_believed_until_a_success() {
    let mut three = lb(3, keep());
    (0..3).for_each(|t| three.probed(0, Key::new(1), TargetId(t), reading(0, 100 + u64::from(t))));
    three.done(TargetId(0), 150, Some(Kind::Cancelled));
    three.done(TargetId(0), 120, Some(Kind::Cancelled));
    assert_eq!(three.pool.iter().map(|a| a.latency_ns).collect::<Vec<_>>(), [150, 101, 102]);
    three.probed(0, Key::new(1), TargetId(0), reading(0, 100));
    three.done(TargetId(0), 0, Some(Kind::Refused));
    three.probed(0, Key::new(1), TargetId(0), reading(0, 100));
    assert_eq!(three.pool[2].latency_ns, 150, "an answer and an error say nothing against it");
    three.probed(0, Key::new(1), TargetId(0), reading(0, 200));
    assert_eq!(three.pool[2].latency_ns, 200, "more than that is believed");
    three.done(TargetId(0), 100, None);
    three.probed(0, Key::new(1), TargetId(0), reading(0, 100));
    assert_eq!(three.pool[2].latency_ns, 100);
    assert_eq!(shares(&three, 100, |_| false)[0], 1.0);
    three.done(TargetId(0), 150, Some(Kind::Cancelled));
    let got = shares(&three, 40_000, |_| false);
    assert!((got[0] - 1.0 / 192.0).abs() < 0.0017, "one in 64 of a third: {got:?}");
}

/// Cold or hot, two of a pool or all of it: of equal answers each is as likely, whatever its place.
#[test]
fn equal_answers_are_drawn_at_random() {
    for q_rif in [0.0, 0.84, 1.0] {
        let mut four = lb(4, PrequalArgs { q_rif, ..keep() });
        for (t, rif, ns) in [(2, 1, 70), (0, 3, 90), (3, 1, 70), (1, 1, 70)] {
            four.probed(0, Key::new(1), TargetId(t), reading(rif, ns));
        }
        let even = |got: &[f64], want: [f64; 4]| got.iter().zip(want).all(|(g, w)| (g - w).abs() < 0.02);
        let got = shares(&four, 12_000, |_| false);
        assert!(even(&got, [0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]), "{q_rif}: {got:?}");
        let got = shares(&four, 12_000, |t| t == TargetId(3));
        assert!(even(&got, [0.0, 0.5, 0.5, 0.0]), "{q_rif}: {got:?}");
        let again = |lb: &Prequal| lb.clone().pick_where(Key::new(9), 0, |_| false);
        assert_eq!(again(&four), again(&four), "by the request's draw");
    }
}

/// Targets that all answer alike: none gets more because of its place in the list, also where the pool is smaller than
/// the set.
#[test]
fn no_place_in_the_list_is_better() {
    for (n, every_ns) in [(3usize, 10_000_000u64), (10, 300_000), (60, 150_000)] {
        let (mut lb, mut busy) = (lb(n, DEFAULT), vec![Busy::default(); n]);
        let (mut open, mut seen) = (std::collections::VecDeque::new(), vec![0.0; n]);
        let picks = 30_000;
        for i in 0..picks {
            let (now, draw) = (i * every_ns, Key::new(6).with(i));
            while let Some((at, t, met)) = open.pop_front_if(|(at, ..): &mut (u64, TargetId, u16)| *at <= now)
            {
                busy[t.index()].left(met, 5_000_000, None);
                lb.done(t, at, None);
            }
            lb.probe(now, draw, |t| busy[t.index()].reading());
            let t = lb.pick_where(draw, now, |_| false).unwrap();
            open.push_back((now + 5_000_000, t, busy[t.index()].entered()));
            seen[t.index()] += n as f64 / picks as f64;
        }
        // Relative to an even share, 4 standard errors of independent draws.
        let close = 4.0 * (n as f64 / picks as f64).sqrt();
        assert!(seen.iter().all(|share| (share - 1.0).abs() < close), "{n}: {seen:?}");
        let halves = [&seen[..n / 2], &seen[n - n / 2..]].map(|of| of.iter().sum::<f64>() / of.len() as f64);
        assert!((halves[0] - halves[1]).abs() < 0.05, "{n}: {halves:?}");
    }
}
