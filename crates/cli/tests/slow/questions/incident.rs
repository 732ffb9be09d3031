//! AppOptics' incident and its cures (`examples/appoptics/incident.star`): the deploy of one cold process, row by row.

use crate::shared::answers::{name, run_of};
use crate::shared::pages::table;
use serde_json::Value;

const FILE: &str = "examples/appoptics/incident.star";

/// The greatest part of a figure over the run, ms.
fn peak(of: &Value, figure: &str) -> f64 {
    of["over_time"]["peak"][figure]["value"].as_f64().expect("a part has enough requests")
}

/// The greatest number of connections to one member, over the parts of a run.
fn most(of: &Value) -> Option<f64> {
    of["connections"].as_array()?.iter().filter_map(Value::as_f64).reduce(f64::max)
}

/// The greatest number of connections to one of those that a change moves.
fn most_of_newcomers(of: &Value) -> Option<f64> {
    of["over_time"]["watched"].as_array()?.iter().filter_map(most).reduce(f64::max)
}

/// How long p99 was above a limit, s.
fn above(of: &Value, limit_ms: f64) -> usize {
    let parts = of["over_time"]["latency_ms"]["p99"].as_array().expect("parts");
    parts.iter().filter_map(Value::as_f64).filter(|ms| *ms > limit_ms).count()
}

/// When the first newcomer has its share again, s after it runs.
fn regained(of: &Value) -> Option<f64> {
    of["over_time"]["regained_s"][0]["value"]["value"].as_f64()
}

/// How long after 90 s, when it is back, the newcomer first has this share of its peers' requests, s.
fn share_regained_after(of: &Value, share: f64) -> usize {
    let rates = |of: &Value| -> Vec<f64> {
        let rates = of["requests_per_s"].as_array().expect("parts");
        rates.iter().map(|rate| rate.as_f64().expect("a rate")).collect()
    };
    let (its, peers) = (rates(&of["over_time"]["watched"][0]), rates(&of["over_time"]["others"]));
    let has: Vec<bool> = its.iter().zip(&peers).map(|(its, peer)| *its >= share * peer).collect();
    let first = has.windows(2).skip(90).position(|pair| pair[0] && pair[1]);
    first.expect("it has its share again")
}

/// What the article says, and what its authors and others did about it, at any scale.
fn judge(got: &[Value]) {
    let by_name = |wanted: &str| got.iter().find(|of| name(of) == wanted).expect("a row of the file");
    let (calm, spike) = (by_name("no deploy"), by_name("Application"));
    for figure in ["p95", "p99", "max"] {
        assert!(peak(spike, figure) > 15_000.0, "{figure} of the article is above 15 s");
    }
    let (ten, one) = (above(spike, 10_000.0), above(spike, 1_000.0));
    assert!(ten >= 20 && (50..=150).contains(&one), "above 10 s for {ten} s, above 1 s for {one} s");
    let newcomer = most_of_newcomers(spike).expect("connections");
    assert!(newcomer >= 10.0 * most(&spike["over_time"]["others"]).expect("connections"));
    for cured in ["Classic", "least_conn, slow start", "three, least_conn, slow start", "a tier between"] {
        assert!(peak(by_name(cured), "p99") <= 1.2 * peak(calm, "p99"), "{cured}");
    }
    for cured in ["gate", "gate of the article", "three, gate of the article"] {
        let of = by_name(cured);
        assert!(peak(of, "p95") <= 1.1 * peak(calm, "p95"), "{cured}");
        assert!(peak(of, "p99") <= 1.1 * peak(calm, "p99"), "{cured}");
        assert!(peak(of, "max") <= 2.0 * peak(calm, "max"), "{cured}");
    }
    let gate = by_name("gate of the article");
    let (most_of_it, all) =
        (share_regained_after(gate, 0.7), regained(gate).expect("it has its share again"));
    assert!((38..=50).contains(&most_of_it) && (56.0..=70.0).contains(&all), "{most_of_it} s, {all} s");
    for less in ["prewarmed", "more threads", "both", "connections for nothing", "threads for nothing"] {
        let greatest = peak(by_name(less), "p99");
        assert!(greatest < peak(spike, "p99") && greatest > 1_000.0, "{less}: smaller, and still there");
    }
    assert_eq!(above(by_name("without warm-up"), 400.0), 0);
    assert_eq!(above(by_name("zone lost"), 400.0), 0);
    assert!(above(by_name("zone lost, deploy"), 1_000.0) > one);
}

/// At a tenth of the scale, in half a minute, all of that holds.
fn small() {
    judge(&run_of(&[FILE, "-p", "judged=False", "-p", "scale=0.1", "--replications", "1"]));
}

/// Two and three nodes have let a newcomer in after 60·2^(−1/n) s and half an interval of checks, in the median.
fn steps() {
    let mut seconds = [Vec::new(), Vec::new()];
    for seed in 1..=31 {
        let seed = seed.to_string();
        let rows = ["gate, 2 nodes", "gate, 3 nodes"];
        let once = ["-p", "judged=False", "-p", "scale=0.02", "--replications", "1"];
        let got = run_of(&[&[FILE][..], &rows, &once, &["--seed", seed.as_str()]].concat());
        for (seconds, of) in seconds.iter_mut().zip(&got) {
            seconds.push(regained(of).expect("it has its share again"));
        }
    }
    for (mut seconds, expected) in seconds.into_iter().zip([44.9, 50.1]) {
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        assert!((median - expected).abs() <= 4.0, "{median} s, not {expected} s");
    }
}

/// The table of all rows, whose figures the article names.
pub(super) fn incident() -> String {
    small();
    steps();
    let args = [FILE, "-p", "judged=False", "--replications", "1"];
    let got = run_of(&args);
    judge(&got);
    let spike = got.iter().find(|of| name(of) == "Application").expect("a row of the file");
    assert!(peak(spike, "p999") > 15_000.0, "p99.9 of the article is above 15 s");
    assert!(spike["requests"]["errors"]["cancelled"].as_u64() > Some(0), "agents give up");
    let row = |of: &Value| {
        [
            name(of).to_owned(),
            format!("{:.0}", peak(of, "p95")),
            format!("{:.0}", peak(of, "p99")),
            format!("{:.0}", peak(of, "max")),
            above(of, 10_000.0).to_string(),
            above(of, 1_000.0).to_string(),
            most_of_newcomers(of).map_or(String::new(), |n| format!("{n:.0}")),
            regained(of).map_or(String::new(), |s| format!("{s:.0}")),
            of["requests"]["failed"].to_string(),
        ]
    };
    let heading = [
        "row",
        "p95 of the worst second, ms",
        "p99",
        "greatest",
        "seconds with p99 above 10 s",
        "above 1 s",
        "connections of the newcomer",
        "its share back after, s",
        "failed",
    ];
    format!("```\nweir sim {}\n```\n\n{}", args.join(" "), table(heading, got.iter().map(row).collect()))
}
