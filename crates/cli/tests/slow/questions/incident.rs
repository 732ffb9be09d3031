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

/// How long p99 was above a second, s.
fn above_a_second(of: &Value) -> usize {
    let parts = of["over_time"]["latency_ms"]["p99"].as_array().expect("parts");
    parts.iter().filter_map(Value::as_f64).filter(|ms| *ms > 1_000.0).count()
}

/// The table of all rows, whose figures the article names.
pub(super) fn incident() -> String {
    let args = [FILE, "-p", "judged=False", "--replications", "1"];
    let got = run_of(&args);
    let by_name = |wanted: &str| got.iter().find(|of| name(of) == wanted).expect("a row of the file");
    let (calm, spike) = (by_name("no deploy"), by_name("Application"));
    for figure in ["p95", "p99", "p999", "max"] {
        assert!(peak(spike, figure) > 15_000.0, "{figure} of the article is above 15 s");
    }
    let newcomer = most(&spike["over_time"]["watched"][0]).expect("connections");
    assert!(newcomer >= 10.0 * most(&spike["over_time"]["others"]).expect("connections"));
    for cured in ["Classic", "least_conn, slow start"] {
        assert!(peak(by_name(cured), "p99") <= 1.2 * peak(calm, "p99"), "{cured}");
    }
    for cured in ["gate", "gate of the article"] {
        let of = by_name(cured);
        assert!(peak(of, "p95") <= 1.1 * peak(calm, "p95") && peak(of, "p99") <= 1.1 * peak(calm, "p99"));
        assert!(peak(of, "max") <= 2.0 * peak(calm, "max"), "{cured}");
    }
    for half in ["prewarmed", "more threads", "both"] {
        let greatest = peak(by_name(half), "p99");
        assert!(greatest < peak(spike, "p99") && greatest > 1_000.0, "{half}: smaller, and still there");
    }
    assert_eq!(above_a_second(by_name("without warm-up")), 0);
    let row = |of: &Value| {
        let watched = &of["over_time"]["watched"][0];
        let regained = of["over_time"]["regained_s"][0]["value"]["value"].as_f64();
        [
            name(of).to_owned(),
            format!("{:.0}", peak(of, "p95")),
            format!("{:.0}", peak(of, "p99")),
            format!("{:.0}", peak(of, "max")),
            above_a_second(of).to_string(),
            most(watched).map_or(String::new(), |n| format!("{n:.0}")),
            regained.map_or(String::new(), |s| format!("{s:.0}")),
        ]
    };
    let heading = [
        "row",
        "p95 of the worst second, ms",
        "p99",
        "greatest",
        "seconds with p99 above 1 s",
        "connections of the newcomer",
        "its share back after, s",
    ];
    format!("```\nweir sim {}\n```\n\n{}", args.join(" "), table(heading, got.iter().map(row).collect()))
}
