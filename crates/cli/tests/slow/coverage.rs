//! The honesty of the intervals: of a thousand simulations with as many seeds, the 95 % intervals hold the truth in 930
//! to
//! 970. Where runs are too short for that, pooled quantiles are hardly biased, and results warn.

use crate::shared::simulated::{figure, options, plan, simulate};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_sim::{Options, run};

const SEEDS: u64 = 1000;

/// How many of the thousand intervals of each figure hold what theory says.
fn held(source: &str, theory: &[(&str, f64)]) -> Vec<u64> {
    let plan = plan(source);
    let next = AtomicU64::new(1);
    let held: Vec<AtomicU64> = theory.iter().map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > SEEDS {
                        break;
                    }
                    let options = Options { seed, replications: 10, threads: 1, ..options() };
                    let got = run(&plan, &options, &|_, _| {}, &AtomicBool::new(false)).expect("it runs");
                    for ((stat, want), held) in theory.iter().zip(&held) {
                        let e = figure(&got.scenarios[0], stat);
                        held.fetch_add(u64::from((e.value - want).abs() <= e.half), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    held.into_iter().map(AtomicU64::into_inner).collect()
}

#[track_caller]
fn assert_honest(source: &str, theory: &[(&str, f64)]) {
    let held = held(source, theory);
    println!("{theory:?}: {held:?}");
    for ((stat, _), held) in theory.iter().zip(held) {
        assert!((930..=970).contains(&held), "the intervals of {stat} hold the truth in {held} of {SEEDS}");
    }
}

/// Mean and 99 % quantile of M/M/1 at 0.5, after the warm-up that the window drops.
#[test]
fn intervals_of_a_queue() {
    let source = "scenario(\"x\", queue(delay(dist.exponential(10 * ms), server())), traffic.poisson(every = 20 * ms), requests = 16000)\n";
    assert_honest(source, &[("mean", 20.0), ("p99", 20.0 * 100f64.ln())]);
}

/// What hundreds of short simulations of one queue say of its 99 % quantile.
#[derive(Debug)]
struct Tail {
    /// Of the mean over seeds, as a share of the truth.
    bias: f64,
    /// Shares of the seeds: whose interval holds the truth; of the others those that warn; and those that warn at all.
    held: f64,
    missed_and_warned: f64,
    warned: f64,
}

/// Whether a warning names that quantile (and not only `p99.9`).
fn names_p99(warning: &str) -> bool {
    let (names, _) = warning.split_once(':').unwrap_or_default();
    names.split([' ', ',']).any(|name| name == "p99")
}

/// M/M/1 with a mean service of 10 ms at this load, ten replications of `requests` requests.
fn tail(load: f64, requests: u64, seeds: u64) -> Tail {
    let every = 10.0 / load;
    let plan = plan(&format!(
        "scenario(\"x\", queue(delay(dist.exponential(10 * ms), server())), traffic.poisson(every = {every} * ms), requests = {requests})\n"
    ));
    let truth = 10.0 / (1.0 - load) * 100f64.ln();
    let next = AtomicU64::new(1);
    let seen = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > seeds {
                        break;
                    }
                    let options = Options { seed, replications: 10, threads: 1, ..options() };
                    let got = run(&plan, &options, &|_, _| {}, &AtomicBool::new(false)).expect("it runs");
                    let s = &got.scenarios[0];
                    let e = figure(s, "p99");
                    let short = |w: &String| w.starts_with("too short for") && names_p99(w);
                    let warned = s.warnings.iter().any(short);
                    seen.lock().unwrap().push((e.value, (e.value - truth).abs() <= e.half, warned));
                }
            });
        }
    });
    let seen = seen.into_inner().unwrap();
    let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
    let missed: Vec<_> = seen.iter().filter(|s| !s.1).collect();
    Tail {
        bias: seen.iter().map(|s| s.0).sum::<f64>() / seen.len() as f64 / truth - 1.0,
        held: share(seen.len() - missed.len(), seen.len()),
        missed_and_warned: share(missed.iter().filter(|s| s.2).count(), missed.len()),
        warned: share(seen.iter().filter(|s| s.2).count(), seen.len()),
    }
}

/// In runs that are too short the pooled quantile is hardly biased, its interval holds the truth more often than not,
/// and where it does not the result mostly says so. Ten times as long, it holds it, and says nothing where that is
/// long: at 0.95 requests hang together sixteen times as long as at 0.8.
#[test]
fn tails_of_short_runs_are_honest() {
    for (load, requests, seeds, bias, held, warned) in
        [(0.8, 4_000, 400, 0.02, 0.75, 0.1), (0.95, 20_000, 200, 0.03, 0.65, 0.5)]
    {
        let t = tail(load, requests, seeds);
        println!("{load} {requests}: {t:?}");
        assert!(t.bias.abs() < bias, "{load}: {t:?}");
        assert!(t.held >= held, "{load}: {t:?}");
        assert!(t.missed_and_warned >= 0.5, "{load}: {t:?}");
        let t = tail(load, 10 * requests, 100);
        println!("{load} {}: {t:?}", 10 * requests);
        assert!(t.held >= 0.9, "{load}, ten times as long: {t:?}");
        assert!(t.warned <= warned, "{load}, ten times as long: {t:?}");
    }
}

/// The success of requests to a node that is down a tenth of the time, with twenty outages in the window and forty in
/// the run.
#[test]
fn intervals_of_a_success_under_faults() {
    let source = "scenario(\"x\", faulty(450 * ms, 50 * ms, server()), traffic.poisson(every = 5 * ms), requests = 4000)\n";
    assert_honest(source, &[("success", 0.9)]);
    let s = &simulate(source, &Options { replications: 10, ..options() })[0];
    assert!(!s.warnings.iter().any(|w| w.starts_with("few outages")), "{:?}", s.warnings);
}

/// With fewer outages the result says so, and how many it has seen, in any mode.
#[test]
fn rare_outages_are_called_few() {
    for mode in ["refuse", "crash"] {
        let source = format!(
            "scenario(\"x\", faulty(9 * s, 1 * s, server(), mode = \"{mode}\"), traffic.poisson(every = 10 * ms), requests = 4000)\n"
        );
        let s = &simulate(&source, &Options { replications: 10, ..options() })[0];
        let said = s.warnings.iter().find(|w| w.starts_with("few outages")).expect("a warning");
        let seen: f64 = said.split_whitespace().nth(3).unwrap().parse().expect("how many");
        // Four outages in 40 s, ten times, half of them in the window: within four standard deviations of Poisson.
        assert!((seen - 20.0).abs() < 2.0 * 40f64.sqrt(), "{said}");
    }
}
