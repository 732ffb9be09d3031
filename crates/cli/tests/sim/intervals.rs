//! What an interval is made of: quantiles where samples have only some values, replications that are long enough.

use crate::evidence::{simulated, warnings};
use crate::shared::common::{Scratch, run};

/// Latencies of 2, 4, 50 and 1,800 ms, the last of one in a hundred: p99 is on the step between the last two, and no
/// bound is a latency that no request had. The median is on the first step.
#[test]
fn a_quantile_on_a_step_has_bounds_that_were_seen() {
    let scratch = Scratch::new("intervals-steps");
    let source = "app = split([(50, delay(2*ms, server())), (20, delay(4*ms, server())), (29, delay(50*ms, server())),\n\
                  (1, delay(1800*ms, server()))])\n\
                  scenario(\"steps\", app, traffic.poisson(rate=100), requests=4000)\n";
    let result = simulated(&scratch, source, &[]);
    let latency = &result["scenarios"][0]["latency_ms"]["all"];
    let seen = [2.0, 4.0, 50.0, 1_800.0];
    for quantile in ["p50", "p99"] {
        for bound in ["low", "high"] {
            let value = latency[quantile][bound].as_f64().unwrap();
            assert!(
                seen.iter().any(|seen| (value - seen).abs() <= 1e-3 * seen),
                "{quantile} {bound}: {value}"
            );
        }
    }
    assert!(latency["p99"]["low"].as_f64() < latency["p99"]["high"].as_f64());
    assert_eq!(warnings(&result), "", "a step is no bias");
    let file = scratch.file("f.star", source);
    let text = run(&["sim", &file, "-q"]).succeeds().to_owned();
    assert!(text.contains("(50..1 800)"), "{text}");
}

/// M/M/1 at 0.9 has a mean of 100 ms and settles in some 3.8 s: replications of 5 s are too short, and more of them
/// would be as wrong. A length that the command line gives stays, with the warning.
#[test]
fn precision_makes_replications_longer() {
    let scratch = Scratch::new("intervals-longer");
    let source = "scenario(\"s\", queue(delay(dist.exponential(10*ms), server())), traffic.poisson(rate=90), \
                  requests=450, window=\"all\")\n";
    let long = simulated(&scratch, source, &["--precision", "mean=4%"]);
    let mean = &long["scenarios"][0]["latency_ms"]["all"]["mean"];
    let (low, high) = (mean["low"].as_f64().unwrap(), mean["high"].as_f64().unwrap());
    assert!(low - (high - low) < 100.0 && 100.0 < high + (high - low), "{mean}");
    let stretch = long["overridden"]["stretch"].as_u64().unwrap();
    assert!(stretch >= 5, "{stretch}");
    assert_eq!(
        long["scenarios"][0]["requests"]["total"].as_u64().unwrap(),
        450 * stretch * long["replications"].as_u64().unwrap()
    );
    assert!(warnings(&long).contains("made longer: ") && !warnings(&long).contains("start-up: "));
    let short = simulated(&scratch, source, &["--precision", "mean=4%", "--requests", "450"]);
    assert!(short["overridden"]["stretch"].is_null() && warnings(&short).contains("start-up: "));
    assert!(short["scenarios"][0]["latency_ms"]["all"]["mean"]["high"].as_f64().unwrap() < 90.0);
}

/// A run that is asked to trace a request of a longer replication repeats the longer one.
#[test]
fn what_is_recorded_has_the_longer_replications() {
    let scratch = Scratch::new("intervals-again");
    let source = "scenario(\"s\", queue(delay(dist.exponential(10*ms), server())), traffic.poisson(rate=90), \
                  requests=450, window=\"all\")\n";
    let file = scratch.file("f.star", source);
    let trace = scratch.path("t.jsonl");
    run(&["sim", &file, "-q", "--precision", "mean=10%", "--trace", &trace, "--trace-requests", "3000"])
        .succeeds();
    assert!(std::fs::read_to_string(&trace).unwrap().contains("\"request\":3000"));
}

/// Times beyond a century are cut there: `check` and the result say so.
#[test]
fn times_that_are_cut_off_are_told() {
    let scratch = Scratch::new("intervals-century");
    for (time, said) in [
        ("1000000*hours", "100 % are longer than 100 years"),
        ("dist.exponential(500000*hours)", "17 % are longer than 100 years"),
        ("dist.pareto(1*ms, 0.2)", "0.32 % are longer than 100 years"),
        ("dist.pareto(1*ms, 0.9)", ""),
        ("876000*hours", ""),
    ] {
        let source =
            format!("scenario(\"s\", delay({time}, server()), traffic.poisson(rate=100), requests=100)\n");
        let all = warnings(&simulated(&scratch, &source, &[]));
        let file = scratch.file("f.star", &source);
        let checked = run(&["check", &file]).err;
        for text in [all, checked] {
            assert_eq!(text.contains("longer than 100 years"), !said.is_empty(), "{time}: {text}");
            assert!(text.contains(said), "{time}: {text}");
        }
    }
}
