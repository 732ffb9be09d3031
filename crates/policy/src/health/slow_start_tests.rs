//! Ramps against the formulas of the proxies that they follow, and against what HAProxy 2.6 was seen to do.

use super::*;
use weir_stats::math::pow;

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const T: TargetId = TargetId(3);

fn config(aggression: f64) -> SlowStart {
    SlowStart { aggression, ..SlowStart::new(60 * S) }
}

fn like(like: SlowStartLike, window_ns: u64) -> SlowStart {
    SlowStart { like: Some(like), ..SlowStart::new(window_ns) }
}

/// All there are, over windows that hundredths, sixteenths and seconds do not divide.
fn all() -> Vec<SlowStart> {
    let mut all = Vec::new();
    for window_ns in [S, 2_700 * MS, 7 * S, 30 * S, 100 * S + 1] {
        for aggression in [0.5, 1.0, 2.0, 3.7] {
            all.extend([false, true].map(|limits| SlowStart {
                aggression,
                limits,
                ..SlowStart::new(window_ns)
            }));
            let min_weight = 0.035;
            all.push(SlowStart { aggression, min_weight, ..like(SlowStartLike::Envoy, window_ns) });
        }
        all.extend([SlowStartLike::Haproxy, SlowStartLike::Nginx].map(|proxy| like(proxy, window_ns)));
    }
    all
}

/// Share and room so long after it became eligible, reached from deadline to deadline.
fn run_until(config: &SlowStart, elapsed_ns: u64) -> (f64, f64) {
    let mut ramps = Ramps::new(config.clone());
    ramps.begin(5 * S, T);
    while let Some(at) = ramps.next_deadline().filter(|at| *at <= 5 * S + elapsed_ns) {
        ramps.tick(at);
    }
    (ramps.share(T), ramps.room(T))
}

/// The curve of weir's own, at the points of the notes.
#[test]
fn points_of_the_curve() {
    for (aggression, seconds, want) in [
        (1.0, 0, 0.1),
        (1.0, 6, 0.1),
        (1.0, 15, 0.25),
        (1.0, 30, 0.5),
        (1.0, 60, 1.0),
        (1.0, 600, 1.0),
        (2.0, 15, 0.5),
        (2.0, 30, 0.70),
        (0.5, 30, 0.25),
    ] {
        assert_eq!(run_until(&config(aggression), seconds * S), (want, 1.0), "{aggression} at {seconds} s");
        let limits = SlowStart { limits: true, ..config(aggression) };
        assert_eq!(run_until(&limits, seconds * S), (want, want), "{aggression} at {seconds} s");
    }
    assert_eq!(run_until(&config(2.0), 0), (0.1, 1.0));
    assert_eq!(run_until(&SlowStart { min_weight: 1.0, limits: true, ..config(1.0) }, 0), (1.0, 1.0));
}

/// HAProxy 2.6.12, `slowstart 30s weight 100`, after `maint` and `ready`: the weights of `show stat`, ⌈100 · w/16⌉, and the
/// seconds at which each was seen first.
#[test]
fn haproxy_steps_as_it_was_seen_to() {
    let seen = [
        (0, 7),
        (2, 13),
        (4, 19),
        (6, 25),
        (8, 32),
        (10, 38),
        (12, 44),
        (14, 50),
        (15, 57),
        (17, 63),
        (19, 69),
        (21, 75),
        (23, 82),
        (25, 88),
        (27, 94),
        (29, 100),
    ];
    let config = like(SlowStartLike::Haproxy, 30 * S);
    for second in 0..=60 {
        let want = seen.iter().rev().find(|(from, _)| *from <= second).map_or(0, |(_, weight)| *weight);
        for part_ns in [0, 1, S - 1] {
            let share = run_until(&config, second * S + part_ns).0;
            assert_eq!((100.0 * share).ceil() as u64, want, "at {second} s");
        }
    }
}

/// `srv_dynamic_maxconn`: max(1, maxconn · ratio / 100) in whole numbers, second by second.
#[test]
fn haproxy_lowers_limits_by_whole_hundredths() {
    for window_s in [1, 7, 30, 100, 90] {
        let config = like(SlowStartLike::Haproxy, window_s * S + 999 * MS);
        for second in 0..=window_s + 2 {
            let ratio = (100 * second / window_s).min(100);
            let room = run_until(&config, second * S + 500 * MS).1;
            for most in [1u64, 2, 7, 50, 100, 999, 1_000_000, u64::from(u32::MAX)] {
                let want = (most * ratio / 100).max(1);
                assert_eq!(
                    u64::from(limit_at(most as u32, room)),
                    want,
                    "{most} at {second} of {window_s} s"
                );
            }
        }
    }
    assert!(run_until(&like(SlowStartLike::Haproxy, 30 * S), 29 * S) == (1.0, 0.96), "the limit comes last");
}

/// A share of hundredths is exact of any limit, and nothing is left of none.
#[test]
fn limits_lose_nothing_to_rounding() {
    for hundredths in 0..100u64 {
        for most in (0..3000).chain([65_535, 1_000_001, u64::from(u32::MAX)]) {
            let want = (most * hundredths / 100).max(1).min(most);
            assert_eq!(u64::from(limit_at(most as u32, hundredths as f64 / 100.0)), want);
        }
    }
    assert_eq!([limit_at(0, 0.5), limit_at(9, 1.0), limit_at(9, 0.125)], [0, 9, 1]);
}

/// Angie's `slow_start`: elapsed · 100 / window, cut off.
#[test]
fn nginx_has_hundredths_from_nothing() {
    for window_ms in [999, 7_000, 30_000] {
        let config = like(SlowStartLike::Nginx, window_ms * MS);
        for ms in (0..window_ms + 500).step_by(7) {
            let want = (ms * 100 / window_ms).min(100) as f64 / 100.0;
            assert_eq!(run_until(&config, ms * MS), (want, 1.0), "{ms} of {window_ms} ms");
        }
    }
}

/// Envoy's formula, which it computes at each pick; here in thousandths.
#[test]
fn envoy_begins_with_the_share_of_its_first_second() {
    for (window, aggression, min_weight) in
        [(10, 1.0, 0.1), (60, 1.0, 0.001), (60, 2.0, 0.1), (60, 0.5, 0.01), (4, 1.0, 0.1)]
    {
        let config = SlowStart { aggression, min_weight, ..like(SlowStartLike::Envoy, window * S) };
        for ms in (0..window * 1000 + 100).step_by(50) {
            // A step may come a nanosecond late.
            let elapsed_ns = ms * MS + 1;
            let elapsed = (elapsed_ns as f64 / 1e9).max(1.0) / window as f64;
            let want = pow(elapsed.min(1.0), 1.0 / aggression).max(min_weight);
            let (share, room) = run_until(&config, elapsed_ns);
            let below = want - share;
            assert!((-1e-9..0.001).contains(&below) && room == 1.0, "{share}, not {want}, at {ms} ms");
        }
    }
    let quarter = like(SlowStartLike::Envoy, 4 * S);
    assert_eq!([0, S - 1, S, 2 * S].map(|ns| run_until(&quarter, ns).0), [0.25, 0.25, 0.25, 0.5]);
    let whole = like(SlowStartLike::Envoy, S);
    assert_eq!(run_until(&whole, 0), (1.0, 1.0), "a window of a second is over at once");
}

/// From deadline to deadline: no change is missed, shares only grow, and all ends with the whole.
#[test]
fn deadlines_follow_the_curves() {
    for config in all() {
        let mut ramps = Ramps::new(config.clone());
        ramps.begin(5 * S, T);
        let mut steps = 0;
        while let Some(at) = ramps.next_deadline() {
            let before = (ramps.share(T), ramps.room(T));
            let elapsed_ns = at - 5 * S;
            // Just before the deadline nothing else held, but for the rounding of powers.
            let last = elapsed_ns.saturating_sub(10_000);
            assert_eq!(before, (curve::share(&config, last), curve::room(&config, last)), "{config:?}");
            let changed = ramps.tick(at);
            let now = (ramps.share(T), ramps.room(T));
            assert_eq!(changed, now != before);
            assert_eq!(
                now,
                (curve::share(&config, elapsed_ns), curve::room(&config, elapsed_ns)),
                "{config:?}"
            );
            assert!(now.0 >= before.0 && now.1 >= before.1, "{now:?} after {before:?}");
            steps += 1;
            assert!(steps <= 1001 && elapsed_ns <= config.window_ns.max(S), "{config:?}");
        }
        assert_eq!((ramps.share(T), ramps.room(T), ramps.is_empty()), (1.0, 1.0, true));
    }
}

#[test]
fn it_begins_anew_each_time() {
    let mut ramps = Ramps::new(config(1.0));
    assert_eq!((ramps.share(TargetId(0)), ramps.next_deadline()), (1.0, None), "never at start-up");
    ramps.begin(0, TargetId(0));
    ramps.tick(30 * S);
    assert_eq!(ramps.share(TargetId(0)), 0.5);
    ramps.end(TargetId(0));
    assert_eq!(ramps.next_deadline(), None);
    ramps.begin(40 * S, TargetId(0));
    assert_eq!(ramps.share(TargetId(0)), 0.1);
}

/// Another process goes on where this one is, with a clock of its own, which may say less than has elapsed.
#[test]
fn a_ramp_goes_on_elsewhere() {
    for config in all() {
        let mut here = Ramps::new(config.clone());
        here.begin(90 * S, T);
        let elapsed_ns = config.window_ns / 3;
        while let Some(at) = here.next_deadline().filter(|at| *at <= 90 * S + elapsed_ns) {
            here.tick(at);
        }
        let mut there = Ramps::new(config.clone());
        if let Some(known_ns) = here.elapsed_ns(90 * S + elapsed_ns, T) {
            assert_eq!(known_ns, elapsed_ns);
            there.resume(7, T, known_ns);
        }
        loop {
            assert_eq!((here.share(T), here.room(T)), (there.share(T), there.room(T)), "{config:?}");
            let (Some(a), Some(b)) = (here.next_deadline(), there.next_deadline()) else { break };
            assert_eq!(a - 90 * S - elapsed_ns, b - 7, "{config:?}");
            here.tick(a);
            there.tick(b);
        }
        assert!(here.is_empty() && there.is_empty());
    }
}

/// A reload moves no ramp back; with other arguments it goes on by those, from where it is in time.
#[test]
fn new_arguments_go_on_with_the_time() {
    let mut ramps = Ramps::new(config(1.0));
    ramps.begin(0, T);
    ramps.tick(30 * S);
    ramps.configure(config(1.0), 30 * S + 5);
    assert_eq!(ramps.share(T), 0.5);
    ramps.configure(like(SlowStartLike::Haproxy, 120 * S), 31 * S);
    assert_eq!((ramps.share(T), ramps.room(T)), (5.0 / 16.0, 0.25));
    assert_eq!(ramps.next_deadline(), Some(32 * S));
    ramps.configure(SlowStart::new(31 * S), 31 * S);
    assert_eq!((ramps.share(T), ramps.next_deadline()), (1.0, None));
}
