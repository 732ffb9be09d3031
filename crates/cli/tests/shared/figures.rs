//! Figures out of `--output json`, and the little statistics that judges them.

use crate::shared::common::run;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A 95 % interval: its middle and half its width.
#[derive(Clone, Copy)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) half: f64,
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/cli is two below").to_path_buf()
}

/// The scenarios of `weir sim ARGS --output json`.
#[track_caller]
pub(crate) fn scenarios(args: &[&str]) -> Vec<Value> {
    let args: Vec<&str> =
        ["sim"].into_iter().chain(args.iter().copied()).chain(["--output", "json"]).collect();
    let doc: Value = serde_json::from_str(run(&args).succeeds()).expect("one JSON document");
    doc["scenarios"].as_array().expect("a list").clone()
}

/// The one of that name.
#[track_caller]
pub(crate) fn named<'a>(scenarios: &'a [Value], name: &str) -> &'a Value {
    scenarios.iter().find(|s| s["name"] == name).unwrap_or_else(|| panic!("no scenario `{name}`"))
}

/// A figure by its name: a latency over all requests (`p99`), over successes (`ok_mean`), or one of the scenario
/// (`success`).
#[track_caller]
pub(crate) fn figure(scenario: &Value, stat: &str) -> Estimate {
    let latency = |of: &str, stat: &str| scenario["latency_ms"][of].get(stat).cloned();
    let e = match stat.strip_prefix("ok_") {
        Some(stat) => latency("ok", stat),
        None => latency("all", stat).or_else(|| scenario.get(stat).cloned()),
    };
    let e = e.unwrap_or_else(|| panic!("{}: no figure `{stat}`", scenario["name"]));
    let part = |key: &str| {
        e[key].as_f64().unwrap_or_else(|| panic!("{}: {stat} has no {key}: {e}", scenario["name"]))
    };
    let (value, low, high) = (part("value"), part("low"), part("high"));
    assert!(
        low <= value + 1e-9 && value <= high + 1e-9,
        "{}: {stat} lies outside its interval: {e}",
        scenario["name"]
    );
    Estimate { value, half: (high - low) / 2.0 }
}

/// The integral of `f` from `a` to `b`, by Simpson's rule.
pub(crate) fn integral(f: impl Fn(f64) -> f64, a: f64, b: f64) -> f64 {
    let n = 2000;
    let h = (b - a) / f64::from(n);
    let inner: f64 = (1..n).map(|i| f(a + h * f64::from(i)) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
    (f(a) + inner + f(b)) * h / 3.0
}

/// Where the increasing `f` reaches `y`, between `low` and `high`.
pub(crate) fn inverse(f: impl Fn(f64) -> f64, y: f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if f(middle) < y {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The quantile `p` > 1/2 of Student's distribution: with t = sqrt(df)·tan(a), its density is that of cos(a)^(df−1).
pub(crate) fn student(p: f64, df: i32) -> f64 {
    let up_to = |angle: f64| integral(|a| a.cos().powi(df - 1), 0.0, angle);
    let right = std::f64::consts::FRAC_PI_2;
    let whole = up_to(right);
    f64::from(df).sqrt() * inverse(|a| up_to(a) / whole, 2.0 * p - 1.0, 0.0, right).tan()
}
