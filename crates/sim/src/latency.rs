//! Latencies: what one replication says of them, and what all say together.
//!
//! Quantiles are those of the samples of all replications together; each replication's own ones give the interval
//! (sectioning). Samples are added up as replications finish, in any order: counts and whole sums do not depend on it.

use weir_stats::{Estimate, Histogram, Latency, Within};

const NS_PER_MS: f64 = 1e6;

/// The quantiles of a result, by name.
const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

/// The latencies of selected requests that succeeded, and of all, in all replications so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pooled {
    ok: Option<Histogram>,
    failed: Option<Histogram>,
}

impl Pooled {
    /// Adds those of a replication.
    pub fn add(&mut self, ok: Histogram, failed: Histogram) {
        let add = |sum: &mut Option<Histogram>, more: Histogram| match sum {
            Some(sum) => sum.merge(&more),
            None => *sum = Some(more),
        };
        add(&mut self.ok, ok);
        add(&mut self.failed, failed);
    }

    /// Those of the successes, and of all requests.
    pub fn into_parts(self) -> (Histogram, Histogram) {
        let ok = self.ok.unwrap_or_default();
        let mut all = ok.clone();
        all.merge(&self.failed.unwrap_or_default());
        (ok, all)
    }
}

/// What one replication says, ms.
pub(crate) struct Own {
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    quantiles: [Option<f64>; QUANTILES.len()],
}

impl Own {
    pub fn of(h: &Histogram) -> Own {
        let ms = |ns: f64| ns / NS_PER_MS;
        Own {
            min: h.min().map(|ns| ms(ns as f64)),
            max: h.max().map(|ns| ms(ns as f64)),
            mean: h.mean().map(ms),
            quantiles: QUANTILES.map(|(_, q)| h.quantile(q).map(ms)),
        }
    }
}

/// What all replications say together.
pub(crate) fn together(pooled: &Histogram, own: &[&Own]) -> Latency {
    let quantile = |i: usize| {
        let within = pooled.quantile_within(QUANTILES[i].1);
        let ms = |w: Within| Within { value: w.value / NS_PER_MS, off: w.off / NS_PER_MS };
        Estimate::sectioned(within.map(ms), own.iter().map(|o| o.quantiles[i]))
    };
    Latency {
        min: own.iter().filter_map(|o| o.min).reduce(f64::min),
        mean: Estimate::of(own.iter().map(|o| o.mean)),
        p50: quantile(0),
        p90: quantile(1),
        p95: quantile(2),
        p99: quantile(3),
        p999: quantile(4),
        max: own.iter().filter_map(|o| o.max).reduce(f64::max),
    }
}

/// The quantiles that single replications are too short for: there what samples hang together by has not faded, so the mean
/// of their own ones lies away from that of all together by much of the interval.
pub(crate) fn too_short(latency: &Latency, own: &[&Own]) -> Vec<&'static str> {
    let n = own.len() as f64;
    let estimates = [&latency.p50, &latency.p90, &latency.p95, &latency.p99, &latency.p999];
    let apart = |i: usize, e: &Estimate| {
        let (value, half) = (e.value?, e.half_width()?);
        let mean = own.iter().map(|o| o.quantiles[i]).sum::<Option<f64>>()? / n;
        Some((value - mean).abs() > half / 4.0 * (n / 10.0).sqrt())
    };
    let found = estimates.iter().enumerate().filter(|(i, e)| apart(*i, e) == Some(true));
    found.map(|(i, _)| QUANTILES[i].0).collect()
}
