//! Latencies of single replications and of all replications together.
//!
//! Quantiles are those of the samples of all replications pooled; the quantiles of the single replications give the
//! interval (sectioning). Samples are added up as replications finish, in any order: counts and integer sums do not
//! depend on it.

use crate::results::result::AtQuantile;
use serde::{Deserialize, Serialize};
use weir_stats::{BoundedQuantile, Counts, Estimate, Histogram, Latency};

const NS_PER_MS: f64 = 1e6;

/// The quantiles of a curve: close together where the axis is, which is linear in nines. They include those of a
/// result.
const CURVE: [f64; 30] = [
    0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.985,
    0.99, 0.992, 0.994, 0.995, 0.997, 0.998, 0.999, 0.9992, 0.9995, 0.9997, 0.9999,
];

/// The quantiles of a result by name, and their indices in a curve.
const QUANTILES: [(&str, usize); 5] = [("p50", 5), ("p90", 11), ("p95", 14), ("p99", 19), ("p99.9", 25)];

/// The latencies of selected requests that succeeded, and of all, in all replications so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "[StoredHistogram; 2]", into = "[StoredHistogram; 2]")]
pub(crate) struct Pooled {
    ok: Option<Histogram>,
    failed: Option<Histogram>,
}

/// A histogram in a shard's file: buckets and counts, the sum's high and low half, the least, the greatest.
#[derive(Serialize, Deserialize)]
struct StoredHistogram(Vec<(usize, u64)>, [u64; 2], u64, u64);

impl From<Pooled> for [StoredHistogram; 2] {
    fn from(pooled: Pooled) -> [StoredHistogram; 2] {
        [pooled.ok, pooled.failed].map(|h| {
            let Counts { buckets, sum, min, max } = h.unwrap_or_default().counts();
            StoredHistogram(buckets, [(sum >> 64) as u64, sum as u64], min, max)
        })
    }
}

impl TryFrom<[StoredHistogram; 2]> for Pooled {
    type Error = &'static str;

    fn try_from(kept: [StoredHistogram; 2]) -> Result<Pooled, &'static str> {
        let [ok, failed] = kept.map(|StoredHistogram(buckets, [high, low], min, max)| {
            let sum = u128::from(high) << 64 | u128::from(low);
            Histogram::from_counts(&Counts { buckets, sum, min, max })
        });
        match (ok, failed) {
            (Some(ok), Some(failed)) => Ok(Pooled { ok: Some(ok), failed: Some(failed) }),
            _ => Err("the counts of a histogram do not add up"),
        }
    }
}

impl Pooled {
    /// Adds the latencies of a replication.
    pub fn add(&mut self, ok: Histogram, failed: Histogram) {
        let add = |sum: &mut Option<Histogram>, more: Histogram| match sum {
            Some(sum) => sum.merge(&more),
            None => *sum = Some(more),
        };
        add(&mut self.ok, ok);
        add(&mut self.failed, failed);
    }

    /// Adds the latencies of further replications.
    pub fn join(&mut self, more: Pooled) {
        let Pooled { ok, failed } = more;
        self.add(ok.unwrap_or_default(), failed.unwrap_or_default());
    }

    /// The latencies of successes, and of all requests.
    pub fn into_parts(self) -> (Histogram, Histogram) {
        let ok = self.ok.unwrap_or_default();
        let mut all = ok.clone();
        all.merge(&self.failed.unwrap_or_default());
        (ok, all)
    }
}

/// The latencies of one replication, ms.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReplicationLatency {
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    curve: [Option<f64>; CURVE.len()],
}

impl ReplicationLatency {
    pub fn new(h: &Histogram) -> ReplicationLatency {
        let ms = |ns: f64| ns / NS_PER_MS;
        ReplicationLatency {
            min: h.min().map(|ns| ms(ns as f64)),
            max: h.max().map(|ns| ms(ns as f64)),
            mean: h.mean().map(ms),
            curve: h.quantiles_within(CURVE).map(|within| within.map(|within| ms(within.value))),
        }
    }
}

/// The latencies of all replications together, in a result's quantiles and in all quantiles of the curve.
pub(crate) fn together(pooled: &Histogram, own: &[&ReplicationLatency]) -> (Latency, Vec<AtQuantile>) {
    let ms = |w: BoundedQuantile| BoundedQuantile { value: w.value / NS_PER_MS, off: w.off / NS_PER_MS };
    let within = pooled.quantiles_within(CURVE);
    let at = |i: usize| Estimate::sectioned(within[i].map(ms), own.iter().map(|o| o.curve[i]));
    let curve: Vec<AtQuantile> =
        CURVE.iter().enumerate().map(|(i, q)| AtQuantile { q: *q, ms: at(i) }).collect();
    let quantile = |i: usize| curve[QUANTILES[i].1].ms;
    let latency = Latency {
        min: own.iter().filter_map(|o| o.min).reduce(f64::min),
        mean: Estimate::new(own.iter().map(|o| o.mean)),
        p50: quantile(0),
        p90: quantile(1),
        p95: quantile(2),
        p99: quantile(3),
        p999: quantile(4),
        max: own.iter().filter_map(|o| o.max).reduce(f64::max),
    };
    (latency, curve)
}

/// The values of single replications for every figure that all of them have, by the figure's name in the JSON.
pub(crate) fn each(own: &[&ReplicationLatency]) -> Vec<(&'static str, Vec<f64>)> {
    const NAMES: [&str; QUANTILES.len()] = ["p50", "p90", "p95", "p99", "p999"];
    let mean = ("mean", own.iter().map(|o| o.mean).collect::<Option<Vec<f64>>>());
    let quantiles = NAMES
        .iter()
        .enumerate()
        .map(|(i, name)| (*name, own.iter().map(|o| o.curve[QUANTILES[i].1]).collect()));
    std::iter::once(mean).chain(quantiles).filter_map(|(name, values)| Some((name, values?))).collect()
}

/// Values closer than this share of one are equal to a histogram.
const SAME: f64 = 1e-3;

/// The quantiles for which single replications are too short: the correlation of samples has not faded there, so the
/// mean of the single ones is off the pooled one by much of the interval.
pub(crate) fn too_short(latency: &Latency, own: &[&ReplicationLatency]) -> Vec<&'static str> {
    let estimates = [&latency.p50, &latency.p90, &latency.p95, &latency.p99, &latency.p999];
    let apart = QUANTILES.iter().zip(estimates).filter(|((_, at), e)| {
        let own: Option<Vec<f64>> = own.iter().map(|o| o.curve[*at]).collect();
        own.is_some_and(|own| lie_apart(e, &own))
    });
    apart.map(|((name, _), _)| *name).collect()
}

/// Whether the mean of the single ones differs from the pooled one by more than a quarter of the interval's half.
/// Where samples themselves lie apart (whole milliseconds; instant failures among served requests) the single ones
/// are often equal and jump, and their mean lies between the nearest of them and the pooled one: that is not a bias.
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

    #[test]
    fn the_quantiles_of_a_result_are_on_the_curve() {
        let on_it = QUANTILES.map(|(name, at)| (name, CURVE[at]));
        assert_eq!(on_it, [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)]);
        assert!(CURVE.is_sorted_by(|a, b| a < b));
    }

    /// Single quantiles that are all below the pooled one are biased; on a lattice some are one step above it.
    #[test]
    fn a_bias_is_told_from_a_step() {
        let apart = |pooled: f64, own: &[f64]| {
            let e = Estimate::sectioned(
                Some(BoundedQuantile { value: pooled, off: 0.02 }),
                own.iter().map(|o| Some(*o)),
            );
            lie_apart(&e, own)
        };
        assert!(apart(100.0, &[70.0, 75.0, 80.0, 85.0, 86.0, 88.0, 90.0, 91.0, 99.0, 140.0]));
        assert!(!apart(100.0, &[70.0, 75.0, 80.0, 90.0, 99.0, 102.0, 110.0, 121.0, 124.0, 131.0]));
        assert!(!apart(103.0, &[103.0, 103.01, 103.0, 103.02, 103.0, 104.0, 104.0, 104.01, 104.0, 103.0]));
        assert!(!apart(0.0, &[0.0, 30.0, 0.0, 30.0, 0.0, 30.0, 0.0, 0.0, 30.0, 0.0]), "a jump");
    }
}
