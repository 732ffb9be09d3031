//! What a run found out, as plain data.

use std::collections::BTreeMap;
use weir_policy::Kind;
use weir_stats::Histogram;

/// The result of a run (`weir.load/1`).
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Where requests went.
    pub to: String,
    /// The scenario's name.
    pub scenario: String,
    /// Seed of all draws.
    pub seed: u64,
    /// How many there were.
    pub requests: Requests,
    /// Requests per second between the first and the last arrival that count; `None`: fewer than two do.
    pub rate_per_s: Option<f64>,
    /// Latencies of all requests that count, ns.
    pub all: Histogram,
    /// Of those that succeeded.
    pub ok: Histogram,
    /// How late requests were sent.
    pub lag: Lag,
    /// Connections that were made.
    pub connections: u64,
    /// Why the figures mean nothing, if they do.
    pub void: Option<String>,
    /// What to know when reading them.
    pub warnings: Vec<String>,
    /// Each request, where they were to be kept.
    pub rows: Vec<Row>,
    /// Whether it was told to stop before its end.
    pub interrupted: bool,
}

/// Counts of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// All that were sent.
    pub total: u64,
    /// Those that count.
    pub selected: u64,
    /// Those of them that succeeded.
    pub ok: u64,
    /// By kind, those of them that failed.
    pub errors: BTreeMap<Kind, u64>,
}

impl Requests {
    /// Those that count and failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// How long after their intended instants requests were sent, ns: what the generator itself adds. Not part of it: waiting for a
/// free connection, and making one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lag {
    /// Half were later.
    pub p50_ns: Option<f64>,
    /// One of a hundred was later.
    pub p99_ns: Option<f64>,
    /// The latest.
    pub max_ns: Option<u64>,
}

/// Latencies for people and programs, ms; what cannot be said is `None`.
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
    /// The quantiles that are said.
    pub const QUANTILES: [(&'static str, f64); 5] =
        [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

    /// Of these samples.
    pub fn of(samples: &Histogram) -> Latency {
        let ms = |ns: f64| ns / 1e6;
        // The rule of `docs/spec/language.md#sim-json`: n(1 - q) of at least ten; rounding must not take one away.
        let enough = |q: f64| samples.count() as f64 * (1.0 - q) >= 10.0 - 1e-9;
        let quantile = |q: f64| samples.quantile(q).filter(|_| enough(q)).map(ms);
        Latency {
            min: samples.min().map(|ns| ms(ns as f64)),
            mean: samples.mean().map(ms),
            quantiles: Latency::QUANTILES.map(|(_, q)| quantile(q)),
            max: samples.max().map(|ns| ms(ns as f64)),
        }
    }
}

/// One request, as it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its number.
    pub request: u64,
    /// When it was to be sent, ns after the run's begin.
    pub intended_ns: u64,
    /// When it was sent; `None`: never.
    pub sent_ns: Option<u64>,
    /// When its last byte had come, or it had failed.
    pub ended_ns: u64,
    /// The status of its answer; 0: none.
    pub status: u16,
    /// How it failed; `None`: it did not.
    pub error: Option<Kind>,
    /// Whether it counts.
    pub selected: bool,
}
