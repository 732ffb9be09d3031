//! Traffic with a varying rate, against the rates that it must have.

use super::super::{Arrivals, Traffic};
use super::*;

const S: u64 = 1_000_000_000;

fn schedule(points: &[(f64, f64)], repeat: bool) -> Traffic {
    let points = points.iter().map(|(s, rate)| ((s * 1e9) as u64, *rate)).collect();
    Traffic::Schedule { points, repeat }
}

fn arrivals(traffic: &Traffic, seed: u64) -> impl Iterator<Item = u64> {
    let mut arrivals = Arrivals::new(traffic, Key::new(seed));
    std::iter::from_fn(move || arrivals.next_ns())
}

/// The rate's integral by thin slices: obvious, and slow.
fn integral(points: &[(f64, f64)], period: Option<f64>, to: f64) -> f64 {
    let rate = |at: f64| {
        let at = period.map_or(at, |p| at % p);
        let after = points.partition_point(|(t, _)| *t <= at);
        match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
            (None, _) => 0.0,
            (Some((_, rate)), None) => rate,
            (Some((t, rate)), Some((u, next))) => rate + (next - rate) * (at - t) / (u - t),
        }
    };
    let slices = 200_000;
    let width = to / f64::from(slices);
    (0..slices).map(|i| rate((f64::from(i) + 0.5) * width) * width).sum()
}

/// With the integral as the clock the arrivals are those of rate 1: numbers in windows have mean and variance of a
/// Poisson distribution, for every shape (ramps, jumps, rest, a held end, periods).
#[test]
fn a_schedule_has_the_arrivals_of_its_integral() {
    let ramp: &[(f64, f64)] = &[(1.0, 0.0), (3.0, 80.0), (4.0, 10.0)];
    let jumps: &[(f64, f64)] =
        &[(0.0, 30.0), (2.0, 30.0), (2.0, 90.0), (2.0, 0.0), (5.0, 0.0), (5.0, 20.0), (6.0, 40.0)];
    for (points, repeat) in [(ramp, false), (ramp, true), (jumps, false), (jumps, true)] {
        let traffic = schedule(points, repeat);
        let period = repeat.then(|| points[points.len() - 1].0);
        for (from, to) in [(0.0, 0.9), (0.0, 2.0), (1.5, 3.5), (2.1, 4.9), (3.0, 6.0), (5.5, 25.0)] {
            let want = integral(points, period, to) - integral(points, period, from);
            let runs = 2000u64;
            let (mut sum, mut squares) = (0.0, 0.0);
            for seed in 0..runs {
                let all = Arrivals::new(&traffic, Key::new(seed));
                let until = |s: f64| all.count(Some((s * 1e9) as u64), None);
                let n = (until(to) - until(from)) as f64;
                sum += n;
                squares += n * n;
            }
            let mean = sum / runs as f64;
            let variance = squares / runs as f64 - mean * mean;
            let slack = 5.0 * (want / runs as f64).sqrt() + 0.01 * want.min(0.2);
            assert!((mean - want).abs() <= slack, "{points:?} {repeat} {from}-{to}: {mean}, want {want}");
            assert!((variance - want).abs() <= 0.17 * want + 0.01, "{from}-{to}: {variance}, want {want}");
        }
    }
}

/// Arrival k is where the integral is the sum of the first k exponentials: exactly, from closed forms.
#[test]
fn the_integral_is_inverted_exactly() {
    // A ramp from 0 at time 0 to 200 per second at 10 s: 10 t², then 200 held.
    let traffic = schedule(&[(0.0, 0.0), (10.0, 200.0)], false);
    let key = traffic.mix(Key::new(3));
    let mut sum = 0.0;
    for (k, at) in (1..).zip(arrivals(&traffic, 3)).take(400_000) {
        sum -= math::ln(key.nth(k).unit());
        let want = if sum < 1000.0 { (sum / 10.0).sqrt() } else { 10.0 + (sum - 1000.0) / 200.0 };
        assert!((at as f64 - want * 1e9).abs() < 1.0 + want * 1e-3, "{k}: {at}, want {want}");
    }
}

/// The same rate written in another way: a schedule that holds from the start is Poisson traffic with its own draws.
#[test]
fn a_single_point_is_poisson_from_then_on() {
    let at: Vec<u64> = arrivals(&schedule(&[(5.0, 1000.0)], false), 1).take(500_000).collect();
    assert!(at[0] > 5 * S && at[0] < 5 * S + S / 50);
    let last = at[at.len() - 1] - 5 * S;
    assert!((last as f64 / 5e11 - 1.0).abs() < 0.007, "{last}");
    let below = at.windows(2).filter(|w| w[1] - w[0] < S / 1000).count() as f64 / at.len() as f64;
    assert!((below - (1.0 - math::exp(-1.0))).abs() < 0.004, "gaps below their mean: {below}");
    assert!(at.windows(2).all(|w| w[0] <= w[1]));
}

#[test]
fn schedules_that_end() {
    let n = |points: &[(f64, f64)], repeat| arrivals(&schedule(points, repeat), 1).take(1000).count();
    assert_eq!(n(&[], false), 0);
    assert_eq!(n(&[(3.0, 0.0)], false), 0);
    assert_eq!(n(&[(3.0, 9.0)], true), 0, "a period that is over when its only point comes");
    assert_eq!(n(&[(0.0, 0.0), (9.0, 0.0)], true), 0);
    assert_eq!(n(&[(0.0, 9.0), (0.0, 0.0)], false), 0, "a jump has no length");
    assert_eq!(n(&[(0.0, 9.0), (0.0, 5.0)], true), 1000, "no period: the rate is held");
    let ends = schedule(&[(0.0, 100.0), (2.0, 100.0), (2.0, 0.0)], false);
    let mut all = Arrivals::new(&ends, Key::new(1));
    let n = all.count(None, None);
    assert!((140..260).contains(&n), "{n}");
    let got: Vec<u64> = std::iter::from_fn(|| all.next_ns()).collect();
    assert!(got.len() as u64 == n && got.iter().all(|at| *at <= 2 * S));
    assert!((0..5).all(|_| all.next_ns().is_none()), "and stay at their end");
}

/// Periods with hardly any arrival are skipped, and rates of any size stay within time.
#[test]
fn extremes() {
    let rare = schedule(&[(0.0, 1e-3), (1e-9, 1e-3)], true);
    let last = arrivals(&rare, 1).take(10_000).last().unwrap() as f64;
    assert!((last / 1e16 - 1.0).abs() < 0.06, "{last}");
    for rate in [1e-10, 1e15, f64::MAX] {
        let at: Vec<u64> = arrivals(&schedule(&[(0.0, rate)], false), 2).take(5000).collect();
        assert!(at.len() == 5000 && at.windows(2).all(|w| w[0] <= w[1]));
    }
    let late = Traffic::Schedule { points: vec![(u64::MAX, 5.0)], repeat: false };
    assert_eq!(arrivals(&late, 1).take(3).collect::<Vec<_>>(), [u64::MAX; 3]);
    let never = Traffic::Mmpp { states: vec![(0.0, S), (0.0, 1)] };
    assert_eq!(arrivals(&never, 1).count(), 0);
    assert_eq!(arrivals(&Traffic::Mmpp { states: vec![] }, 1).count(), 0);
}

/// The rate in the long run is the mean by stays, and the arrivals are more bursty than Poisson's.
#[test]
fn an_mmpp_has_its_mean_rate() {
    let states = vec![(2000.0, S / 2), (100.0, 2 * S), (0.0, S / 2)];
    let traffic = Traffic::Mmpp { states };
    let want = traffic.rate_per_s().unwrap();
    assert!((want - 400.0).abs() < 1e-9);
    let n = 4_000_000;
    let last = arrivals(&traffic, 1).take(n).last().unwrap();
    // About 3,300 rounds: a relative deviation of 1.6 %.
    assert!((n as f64 / (last as f64 / 1e9) / want - 1.0).abs() < 0.05);
    // Shares of arrivals by state: gaps of a fast state are short.
    let gaps: Vec<u64> = {
        let at: Vec<u64> = arrivals(&traffic, 2).take(n).collect();
        at.windows(2).map(|w| w[1] - w[0]).collect()
    };
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    let square =
        gaps.iter().map(|g| (*g as f64 / mean) * (*g as f64 / mean)).sum::<f64>() / gaps.len() as f64;
    assert!(square - 1.0 > 2.0, "squared variation {}", square - 1.0);
}

/// It starts in the first state, cycles in order, and its stays do not depend on its rates.
#[test]
fn an_mmpp_goes_round_from_the_first() {
    let at = |rates: [f64; 3]| {
        let states = rates.iter().map(|rate| (*rate, S)).collect::<Vec<_>>();
        let mut course = Varying::mmpp(&states, Key::new(6));
        (0..9)
            .filter_map(move |_| course.following())
            .map(|s| (s.length_ns, s.from * 1e9))
            .collect::<Vec<_>>()
    };
    let (a, b) = (at([5.0, 1.0, 0.0]), at([7.0, 2.0, 3.0]));
    assert!(a.iter().zip(&b).all(|(a, b)| a.0 == b.0));
    let rates: Vec<f64> = b.iter().map(|(_, rate)| rate.round()).collect();
    assert_eq!(rates, [7.0, 2.0, 3.0, 7.0, 2.0, 3.0, 7.0, 2.0, 3.0]);
    // The stays do not reuse the arrivals' exponentials.
    let key = Key::new(6);
    let drawn = |(j, (length, _)): (u64, &(u64, f64))| {
        (0..20).any(|k| whole(-math::ln(key.nth(j + k).unit()) * 1e9) == *length)
    };
    assert!(!(0..).zip(&a).any(drawn));
    // A first state that practically lasts for ever makes it Poisson.
    let one = Traffic::Mmpp { states: vec![(1000.0, 1_000_000 * S), (0.0, S)] };
    let n = 500_000;
    let last = arrivals(&one, 1).take(n).last().unwrap();
    assert!((last as f64 / 5e11 - 1.0).abs() < 0.007, "{last}");
}

/// Equal traffic has equal arrivals, and counting consumes none.
#[test]
fn counting_changes_nothing() {
    let traffic = Traffic::Mmpp { states: vec![(50.0, S), (500.0, S)] };
    let mut a = Arrivals::new(&traffic, Key::new(1));
    let all: Vec<u64> = arrivals(&traffic, 1).take(1000).collect();
    for (i, at) in all.iter().enumerate().step_by(97) {
        let n = a.count(Some(*at), None);
        assert_eq!(n as usize, all.partition_point(|b| b <= at) - i, "{i}");
        assert_eq!(a.count(Some(*at), Some(0)), 0);
        assert!((0..97).map_while(|_| a.next_ns()).eq(all.iter().copied().skip(i).take(97)) || i + 97 > 1000);
    }
}
