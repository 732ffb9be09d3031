//! Questions about picks: random layers, coordination, knowledge, several routers, rings, long and short requests.

use crate::shared::answers::{Answer, find, list, more, ms, name, run_of, sign};
use crate::shared::figures::{Estimate, figure, named};
use crate::shared::pages::{lower, shown, table};
use serde_json::Value;

const DYNO_MS: f64 = 120.0;

/// Mean latency of the post's dyno behind its cable, ms, with `per_s` requests per second: Pollaczek and Khinchine.
fn dyno_alone(per_s: f64) -> f64 {
    let rate = per_s / 1000.0;
    4.0 + DYNO_MS + rate * 24_400.0 / (2.0 * (1.0 - rate * DYNO_MS))
}

fn covers(e: Estimate, value: f64) -> bool {
    (e.value - value).abs() <= e.half
}

pub(crate) fn random_over_random() -> Answer {
    let args = vec!["examples/timelike/questions/01-random-over-random.star"];
    let got = run_of(&args);
    let of = |name: &str| named(&got, name);
    let theory = |s: &Value| match name(s) {
        "uneven_blocks" => (dyno_alone(5.0) + dyno_alone(10.0 / 3.0)) / 2.0,
        _ => dyno_alone(4.0),
    };
    let rows = got.iter().map(|s| {
        let theory = format!("{:.1}", theory(s));
        [format!("`{}`", name(s)), ms(s, "mean"), theory, ms(s, "p50"), ms(s, "p95"), ms(s, "p99")]
    });
    let heading = ["scenario", "mean ms", "M/G/1", "p50 ms", "p95 ms", "p99 ms"];
    // The widest that any of the four may differ, of both arrangements.
    let apart = |layers: &str| {
        let stats = ["mean", "p50", "p95", "p99"].map(|stat| {
            let d = more(of(layers), of("one_layer"), stat);
            (d.value.abs() + d.half) / figure(of("one_layer"), stat).value
        });
        stats.into_iter().fold(0.0, f64::max)
    };
    let widest = apart("two_layers").max(apart("ten_blocks"));
    assert!(widest < 0.02, "the layers may differ by {widest}");
    assert!(got.iter().all(|s| covers(figure(s, "mean"), theory(s))), "theory lies outside");
    assert_eq!(lower(figure(of("one_layer"), "p99"), figure(of("uneven_blocks"), "p99")), Some(true));
    let verdict = format!(
        "yes: over the same dynos or over blocks of equal size, mean, p50, p95 and p99 of two layers differ from those of one \
         by less than {:.1} %, and all means are those of M/G/1; only blocks of unequal size make \
         another system of it (p99 {} instead of {} ms).",
        (widest * 1000.0).ceil() / 10.0,
        ms(of("uneven_blocks"), "p99"),
        ms(of("one_layer"), "p99"),
    );
    Answer { name: "01", commands: vec![args], table: table(heading, rows.collect()), verdict }
}

pub(crate) fn coordination_delay() -> Answer {
    const CLAIMED: f64 = 200.0;
    let args = vec!["examples/timelike/questions/02-coordination-delay.star"];
    let got = run_of(&args);
    let (random, free) = (find(&got, "random", "agree", "0s"), find(&got, "least_conn", "agree", "0s"));
    let delayed = find(&got, "least_conn", "agree", "200ms");
    let (mut rows, mut each, mut yes, mut no) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (stat, says) in [("p50", "the median"), ("mean", "the mean"), ("p95", "p95"), ("p99", "p99")] {
        let gap = more(random, free, stat);
        // A delay that is the same for all adds itself, so the gap is what may be paid.
        let added = more(delayed, free, stat);
        assert!((added.value - CLAIMED).abs() < 0.002 * CLAIMED, "{stat} grows by {}", added.value);
        match lower(Estimate { value: CLAIMED, half: 0.0 }, gap) {
            Some(true) => yes.push(says.to_owned()),
            Some(false) => no.push(says.to_owned()),
            None => panic!("{stat}: cannot be told"),
        }
        each.push(format!("{} ms by {says}", shown(gap)));
        rows.push([says.to_owned(), ms(random, stat), ms(free, stat), ms(delayed, stat), shown(gap)]);
    }
    let heading = ["by", "random, ms", "least connections", "the same after 200 ms", "worth a delay of"];
    let verdict = format!(
        "least connections may cost {} before random is better: the post's 200 ms holds for {} and not for {}.",
        list(&each),
        list(&yes),
        list(&no),
    );
    Answer { name: "02", commands: vec![args], table: table(heading, rows), verdict }
}

pub(crate) fn distance_from_knowing() -> Answer {
    let args = vec!["examples/timelike/questions/03-distance-from-knowing.star"];
    let got = run_of(&args);
    let of = |name: &str, busy: f64| find(&got, name, "utilisation", busy);
    let loads = [0.5, 0.8, 0.95];
    let times = |name: &str, busy: f64, stat: &str| {
        figure(of(name, busy), stat).value / figure(of("least_work", busy), stat).value
    };
    let policies = ["least_work", "least_conn", "prequal", "p2c", "peak_ewma", "round_robin", "random"];
    let rows = policies.map(|policy| {
        let cell = |busy: f64| {
            let s = of(policy, busy);
            let factor = |stat: &str| format!("{:.2}", times(policy, busy, stat));
            format!("{} (×{}) / {} (×{})", ms(s, "mean"), factor("mean"), ms(s, "p99"), factor("p99"))
        };
        [format!("`{policy}`"), cell(0.5), cell(0.8), cell(0.95)]
    });
    let heading = ["policy", "mean / p99 ms, 50 % busy", "80 %", "95 %"];
    // One queue, to the last bit.
    let mut level = Vec::new();
    for busy in loads {
        assert_eq!(of("one_queue", busy)["latency_ms"], of("least_work", busy)["latency_ms"], "{busy}");
        for policy in &policies[1..] {
            match sign(more(of(policy, busy), of("least_work", busy), "mean")) {
                Some(true) => {}
                None if busy == 0.5 => level.push(format!("`{policy}`")),
                _ => panic!("{policy} at {busy} is not certainly slower"),
            }
        }
    }
    let level = match level[..] {
        [] => String::new(),
        _ => format!("with servers half idle nothing is to be gained on {}; ", list(&level)),
    };
    let mut order: Vec<&str> = policies[1..].to_vec();
    order.sort_by(|a, b| times(a, 0.8, "mean").total_cmp(&times(b, 0.8, "mean")));
    let each: Vec<String> =
        order.iter().map(|policy| format!("`{policy}` {:.2}", times(policy, 0.8, "mean"))).collect();
    let verdict = format!(
        "{level}at 80 % the mean latency is, times that of who knows the work, {}; at 95 % the nearest (`{}`) takes {:.2} times as \
         long and `random` {:.0} times; and who knows is as good as one queue before all servers, to the nanosecond.",
        list(&each),
        order[0],
        times(order[0], 0.95, "mean"),
        times("random", 0.95, "mean"),
    );
    Answer { name: "03", commands: vec![args], table: table(heading, rows.to_vec()), verdict }
}

pub(crate) fn bounded_by_random() -> Answer {
    let args = vec!["examples/timelike/questions/04-bounded-by-random.star"];
    let got = run_of(&args);
    let counts = [1, 2, 4, 8, 16, 32, 64];
    let of = |name: &str, n: i32| find(&got, name, "routers", n);
    let rows = counts.map(|n| {
        let both = |name: &str| format!("{} / {}", ms(of(name, n), "mean"), ms(of(name, n), "p99"));
        [n.to_string(), both("ties_random"), both("ties_first"), both("random_router")]
    });
    let heading = [
        "routers",
        "mean / p99 ms, ties at random",
        "the first of equals",
        "one router at random, for comparison",
    ];
    let stats = ["mean", "p50", "p95", "p99"];
    let below = |name: &str, n: i32| {
        stats.iter().all(|stat| sign(more(of(name, n), of("random_router", n), stat)) == Some(false))
    };
    assert!(counts.iter().all(|n| below("ties_random", *n)), "not certainly below random");
    let broken = counts.iter().find(|n| {
        stats
            .iter()
            .all(|stat| sign(more(of("ties_first", **n), of("random_router", **n), stat)) == Some(true))
    });
    let broken = broken.expect("the first of equals breaks the bound");
    let share = |n: i32| {
        let p99 = |name: &str| figure(of(name, n), "p99").value;
        100.0 * p99("ties_random") / p99("random_router")
    };
    let verdict = format!(
        "yes, where ties are broken at random: with 1 to 64 routers mean, p50, p95 and p99 stay certainly below a random \
         router's ({:.0} % of its p99 with 16 and {:.0} % with 64); where the first of equals is taken, as in the post's code, \
         no: {broken} routers are worse than random by all four, and 64 have {:.0} times its p99.",
        share(16),
        share(64),
        figure(of("ties_first", 64), "p99").value / figure(of("random_router", 64), "p99").value,
    );
    Answer { name: "04", commands: vec![args], table: table(heading, rows.to_vec()), verdict }
}

pub(crate) fn rings_at_zero() -> Answer {
    let args = vec!["examples/timelike/questions/05-rings-at-zero.star"];
    let got = run_of(&args);
    let counts = [1, 4, 16, 64];
    let of = |name: &str, n: i32| find(&got, name, "routers", n);
    let kinds = ["drawn_anywhere", "drawn_at_zero", "ring_anywhere", "ring_at_zero"];
    let rows = counts.map(|n| {
        let [a, b, c, d] =
            kinds.map(|kind| format!("{} / {}", ms(of(kind, n), "mean"), ms(of(kind, n), "p99")));
        [n.to_string(), a, b, c, d]
    });
    let heading = [
        "routers",
        "mean / p99 ms: router drawn, cursors anywhere",
        "drawn, cursors at 0",
        "router in turn, cursors anywhere",
        "in turn, cursors at 0",
    ];
    let p99 = |name: &str, n: i32| figure(of(name, n), "p99");
    for n in [16, 64] {
        for (zero, anywhere) in [("drawn_at_zero", "drawn_anywhere"), ("ring_at_zero", "ring_anywhere")] {
            assert_eq!(sign(more(of(zero, n), of(anywhere, n), "p99")), Some(true), "{zero} with {n}");
        }
        assert_eq!(lower(p99("random_router", n), p99("ring_at_zero", n)), Some(true));
    }
    let verdict = format!(
        "cursors that all start at 0 go round together: with 64 routers p99 is {} instead of {} ms where the router is drawn, and \
         {} instead of {} ms where routers take turns; with 16, {} and {} ms, where a random router has {} ms.",
        shown(p99("drawn_at_zero", 64)),
        shown(p99("drawn_anywhere", 64)),
        shown(p99("ring_at_zero", 64)),
        shown(p99("ring_anywhere", 64)),
        shown(p99("drawn_at_zero", 16)),
        shown(p99("ring_at_zero", 16)),
        shown(p99("random_router", 16)),
    );
    Answer { name: "05", commands: vec![args], table: table(heading, rows.to_vec()), verdict }
}

pub(crate) fn long_and_short() -> Answer {
    let args = vec!["examples/timelike/questions/10-long-and-short.star"];
    let got = run_of(&args);
    let shapes = ["alike", "exponential", "one_in_100_long", "heavy_tail"];
    let policies = ["random", "round_robin", "p2c", "peak_ewma", "prequal", "least_conn", "least_work"];
    let of = |shape: &str, policy: &str| named(&got, &format!("{shape}_{policy}"));
    let rows = policies.map(|policy| {
        let [a, b, c, d] = shapes.map(|shape| {
            let s = of(shape, policy);
            format!("{} / {} / {}", ms(s, "p50"), ms(s, "p95"), ms(s, "p99"))
        });
        [format!("`{policy}`"), a, b, c, d]
    });
    let heading = ["policy", "p50 / p95 / p99 ms, all alike", "exponential", "one in 100 long", "heavy tail"];
    let p95 = |shape: &str, policy: &str| figure(of(shape, policy), "p95");
    let long = "one_in_100_long";
    // What one long request in a hundred does to the 95 % quantile, which is a short request's: who knows the work has
    // hardly anybody wait.
    let (mut suffer, mut spared) = (Vec::new(), Vec::new());
    for policy in policies {
        let times = p95(long, policy).value / p95(long, "least_work").value;
        let says = format!("`{policy}` ({:.0} ms)", p95(long, policy).value);
        if times >= 2.0 { &mut suffer } else { &mut spared }.push(says);
    }
    assert_eq!(lower(p95(long, "least_conn"), p95(long, "random")), Some(true));
    let verdict = format!(
        "the short ones, under whoever does not see the lines: where one request in a hundred takes 2 s and the rest 30 ms on average, \
         p95 is more than twice that of who knows the work under {}, and not under {}.",
        list(&suffer),
        list(&spared),
    );
    Answer { name: "10", commands: vec![args], table: table(heading, rows.to_vec()), verdict }
}
