//! The result of a run, as plain data.

use std::collections::BTreeMap;
use weir_plan::{Metric, Value};
use weir_policy::Kind;
use weir_stats::{Estimate, Histogram};
use weir_workload::parts::SliceSums;

/// The result of a run (`weir.load/1`).
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Where requests went.
    pub to: String,
    /// The scenario's name.
    pub scenario: String,
    /// Its parameters.
    pub params: Vec<(String, Value)>,
    /// Seed of all random draws.
    pub seed: u64,
    /// The number of requests.
    pub requests: Requests,
    /// Requests per second between the first and the last arrival that count; `None`: fewer than two do.
    pub rate_per_s: Option<f64>,
    /// Latencies of all requests that count, ns.
    pub all: Histogram,
    /// Latencies of requests that succeeded.
    pub ok: Histogram,
    /// How late requests were sent.
    pub lag: Lag,
    /// Connections that were made.
    pub connections: u64,
    /// Why the figures are invalid, if they are.
    pub void: Option<String>,
    /// Notes for reading them.
    pub warnings: Vec<String>,
    /// What the file expects of the scenario, and whether it holds.
    pub expectations: Vec<Verdict>,
    /// Each request, if they were kept.
    pub rows: Vec<Row>,
    /// The run part by part, if that was wanted.
    pub over_time: Option<OverTime>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
}

/// A run part by part: all requests, by the instants at which they were due.
#[derive(Clone, Debug)]
pub struct OverTime {
    /// The length of a part, ns; the last one ends with the arrivals.
    pub every_ns: u64,
    /// What was counted of each.
    pub parts: Vec<SliceSums>,
}

/// An expectation and whether it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The condition: `p99<300ms`.
    pub expect: String,
    /// The figure and its bounds, in the unit of the JSON.
    pub value: Estimate,
    /// The metric, which implies the unit.
    pub metric: Metric,
    /// Whether all within the bounds meets the condition, or nothing does; `None`: that cannot be decided.
    pub holds: Option<bool>,
    /// Where the file states it, `file:line:column`.
    pub span: String,
}

/// Counts of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// All requests sent.
    pub total: u64,
    /// Requests that count.
    pub selected: u64,
    /// Counted requests that succeeded.
    pub ok: u64,
    /// Counted requests that failed, by kind.
    pub errors: BTreeMap<Kind, u64>,
}

impl Requests {
    /// Counted requests that failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// How long after their intended times requests were sent, ns: the delay that the generator itself adds. It excludes
/// waiting for a free connection, and making one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lag {
    /// The median.
    pub p50_ns: Option<f64>,
    /// The 99 % quantile.
    pub p99_ns: Option<f64>,
    /// The largest.
    pub max_ns: Option<u64>,
}

/// Latencies for people and programs, ms; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// The shortest.
    pub min: Option<f64>,
    /// The mean.
    pub mean: Option<f64>,
    /// Quantiles 0.5, 0.9, 0.95, 0.99, 0.999: `None` with fewer than ten samples beyond.
    pub quantiles: [Option<f64>; 5],
    /// The longest.
    pub max: Option<f64>,
}

impl Latency {
    /// The quantiles that are reported.
    pub const QUANTILES: [(&'static str, f64); 5] =
        [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

    /// Of these samples.
    pub fn new(samples: &Histogram) -> Latency {
        let ms = |ns: f64| ns / 1e6;
        let quantile = |q: f64| samples.quantile(q).map(ms);
        Latency {
            min: samples.min().map(|ns| ms(ns as f64)),
            mean: samples.mean().map(ms),
            quantiles: Latency::QUANTILES.map(|(_, q)| quantile(q)),
            max: samples.max().map(|ns| ms(ns as f64)),
        }
    }
}

/// One request, as it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number.
    pub request: u64,
    /// Its intended time, ns after the run's start.
    pub intended_ns: u64,
    /// When it was sent; `None`: never.
    pub sent_ns: Option<u64>,
    /// When its last byte arrived, or it failed.
    pub ended_ns: u64,
    /// The status of its answer; 0: none.
    pub status: u16,
    /// How it failed; `None`: it did not.
    pub error: Option<Kind>,
    /// Whether it counts.
    pub selected: bool,
}
