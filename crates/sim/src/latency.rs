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

/// Values closer than this share of one are the same to a histogram.
const SAME: f64 = 1e-3;

/// The quantiles that single replications are too short for: there what samples hang together by has not faded, so the mean
/// of their own ones lies away from that of all together by much of the interval.
pub(crate) fn too_short(latency: &Latency, own: &[&Own]) -> Vec<&'static str> {
    let estimates = [&latency.p50, &latency.p90, &latency.p95, &latency.p99, &latency.p999];
    let named = QUANTILES.iter().zip(estimates).enumerate();
    let apart = named.filter(|(i, (_, e))| {
        let own: Option<Vec<f64>> = own.iter().map(|o| o.quantiles[*i]).collect();
        own.is_some_and(|own| lie_apart(e, &own))
    });
    apart.map(|(_, ((name, _), _))| *name).collect()
}

/// Whether the mean of the own ones differs from the pooled one by more than a quarter of the interval's half. Where samples
/// lie apart themselves (whole milliseconds; what fails at once and what is served) the own ones are often equal and jump,
/// and their mean lies between the next of them and the pooled one: that is no bias.
fn lie_apart(e: &Estimate, own: &[f64]) -> bool {
    let (Some(pooled), Some(half)) = (e.value, e.half_width()) else { return false };
    let n = own.len() as f64;
    let bias = own.iter().sum::<f64>() / n - pooled;
    if bias.abs() <= half / 4.0 * (n / 10.0).sqrt() {
        return false;
    }
    let mut sorted = own.to_vec();
    sorted.sort_by(f64::total_cmp);
    let equal = sorted.windows(2).filter(|w| w[1] - w[0] <= pooled * SAME).count();
    let steps = own.iter().map(|o| (o - pooled) * bias.signum());
    let next = steps.filter(|step| *step > pooled * SAME).fold(f64::INFINITY, f64::min);
    4 * equal < own.len() || bias.abs() > next
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Own quantiles all below the pooled one are biased; on a lattice some are one step above.
    #[test]
    fn a_bias_is_told_from_a_step() {
        let apart = |pooled: f64, own: &[f64]| {
            let e =
                Estimate::sectioned(Some(Within { value: pooled, off: 0.02 }), own.iter().map(|o| Some(*o)));
            lie_apart(&e, own)
        };
        assert!(apart(100.0, &[70.0, 75.0, 80.0, 85.0, 86.0, 88.0, 90.0, 91.0, 99.0, 140.0]));
        assert!(!apart(100.0, &[70.0, 75.0, 80.0, 90.0, 99.0, 102.0, 110.0, 121.0, 124.0, 131.0]));
        assert!(!apart(103.0, &[103.0, 103.01, 103.0, 103.02, 103.0, 104.0, 104.0, 104.01, 104.0, 103.0]));
        assert!(!apart(0.0, &[0.0, 30.0, 0.0, 30.0, 0.0, 30.0, 0.0, 0.0, 30.0, 0.0]), "a jump");
    }
}
