//! The honesty of the intervals: of a thousand simulations with as many seeds, the 95 % intervals hold the truth in 930 to
//! 970.

mod common;
mod figures;
mod simulated;
use simulated::{figure, options, plan, simulate};
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
fn is_honest(source: &str, theory: &[(&str, f64)]) {
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
    is_honest(source, &[("mean", 20.0), ("p99", 20.0 * 100f64.ln())]);
}

/// The success of requests to a node that is down a tenth of the time, with twenty outages in the window and forty in the
/// run.
#[test]
fn intervals_of_a_success_under_faults() {
    let source = "scenario(\"x\", faulty(450 * ms, 50 * ms, server()), traffic.poisson(every = 5 * ms), requests = 4000)\n";
    is_honest(source, &[("success", 0.9)]);
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
        let seen: f64 = said.split_whitespace().nth(2).unwrap().parse().expect("how many");
        // Four outages in 40 s, ten times: within four standard deviations of Poisson.
        assert!((seen - 40.0).abs() < 4.0 * 40f64.sqrt(), "{said}");
    }
}
