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
pub(crate) struct LatencySummary {
    pub latency: Latency,
    pub curve: Vec<AtQuantile>,
    /// The quantiles for which single replications are too short: the correlation of samples has not faded there, so
    /// the mean of the single ones is off the pooled one by much of the interval.
    pub too_short: Vec<&'static str>,
}

impl LatencySummary {
    pub fn new(pooled: &Histogram, own: &[&ReplicationLatency]) -> LatencySummary {
        let within = pooled.quantiles_within(CURVE);
        let at = |i: usize| PooledQuantile::new(pooled, CURVE[i], within[i], own.iter().map(|o| o.curve[i]));
        let all: Vec<PooledQuantile> = (0..CURVE.len()).map(at).collect();
        let quantile = |i: usize| all[QUANTILES[i].1].estimate;
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
        let biased = QUANTILES.iter().filter(|(_, at)| all[*at].is_biased);
        LatencySummary {
            latency,
            curve: CURVE.iter().zip(&all).map(|(q, of)| AtQuantile { q: *q, ms: of.estimate }).collect(),
            too_short: biased.map(|(name, _)| *name).collect(),
        }
    }
}

/// A quantile of the samples of all replications, ms.
struct PooledQuantile {
    estimate: Estimate,
    /// Whether the mean of the single ones differs from it by more than chance.
    is_biased: bool,
}

impl PooledQuantile {
    fn new(
        pooled: &Histogram,
        q: f64,
        within: Option<BoundedQuantile>,
        own: impl Iterator<Item = Option<f64>>,
    ) -> PooledQuantile {
        let unknown = PooledQuantile { estimate: Estimate::default(), is_biased: false };
        let own: Option<Vec<f64>> = own.collect();
        let (Some(within), Some(own), Some(min), Some(max), Some(bounds)) =
            (within, own, pooled.min(), pooled.max(), pooled.rank_bounds(q))
        else {
            return unknown;
        };
        let BoundedQuantile { value, off } =
            BoundedQuantile { value: within.value / NS_PER_MS, off: within.off / NS_PER_MS };
        let sectioned =
            Estimate::sectioned(Some(BoundedQuantile { value, off }), own.iter().copied().map(Some));
        let (min, max) = (min as f64 / NS_PER_MS, max as f64 / NS_PER_MS);
        let within = sectioned.within(min, max);
        if !is_on_step(pooled, &within) {
            return PooledQuantile { estimate: within, is_biased: is_biased(&sectioned, &own) };
        }
        let bounds = (bounds.0 / NS_PER_MS, bounds.1 / NS_PER_MS);
        let ranked = Estimate::ranked(value, bounds, &own);
        let estimate = Estimate {
            low: ranked.low.map(|low| low.min(value - off)),
            high: ranked.high.map(|high| high.max(value + off)),
            ..ranked
        };
        PooledQuantile { estimate: estimate.within(min, max), is_biased: false }
    }
}

/// Whether a quantile lies where samples have only some values (whole milliseconds; instant failures among served
/// requests): a quarter of the interval has no sample. Replications jump there from one value to the next.
fn is_on_step(pooled: &Histogram, e: &Estimate) -> bool {
    let (Some(low), Some(high)) = (e.low, e.high) else { return false };
    let gap_ms = pooled.widest_gap(low * NS_PER_MS, high * NS_PER_MS) / NS_PER_MS;
    gap_ms > (high - low) / 4.0 && high - low > SAME * e.value.unwrap_or(0.0)
}

/// Values closer than this share of one are equal to a histogram.
const SAME: f64 = 1e-3;

/// Whether the mean of the single ones differs from the pooled one by more than a quarter of the interval's half.
fn is_biased(e: &Estimate, own: &[f64]) -> bool {
    let (Some(pooled), Some(half)) = (e.value, e.half_width()) else { return false };
    let n = own.len() as f64;
    let bias = own.iter().sum::<f64>() / n - pooled;
    bias.abs() > (half / 4.0 * (n / 10.0).sqrt()).max(SAME * pooled)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_of_a_result_are_on_the_curve() {
        let on_it = QUANTILES.map(|(name, at)| (name, CURVE[at]));
        assert_eq!(on_it, [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)]);
        assert!(CURVE.is_sorted_by(|a, b| a < b));
    }

    /// Ten replications of five thousand samples each: `of` gives the quantile u of replication r, ms.
    fn sampled(of: impl Fn(u64, f64) -> f64) -> (Estimate, Vec<&'static str>) {
        const SAMPLES: u64 = 5_000;
        let mut pooled = Histogram::new();
        let own: Vec<ReplicationLatency> = (0..10)
            .map(|r| {
                let mut own = Histogram::new();
                let levels = (0..SAMPLES).map(|i| (i as f64 + 0.5) / SAMPLES as f64);
                levels.for_each(|u| own.record((of(r, u) * NS_PER_MS) as u64));
                pooled.merge(&own);
                ReplicationLatency::new(&own)
            })
            .collect();
        let together = LatencySummary::new(&pooled, &own.iter().collect::<Vec<_>>());
        (together.latency.p99, together.too_short)
    }

    /// 98.5 to 99.4 % of samples are short, the others take 1,800 ms.
    #[test]
    fn a_quantile_on_a_step_is_bounded_by_what_was_seen() {
        let (p99, too_short) = sampled(|r, u| match u {
            ..0.5 => 2.0,
            ..0.7 => 4.0,
            u if u < 0.985 + 0.001 * r as f64 => 50.0,
            _ => 1_800.0,
        });
        let near = |of: Option<f64>, seen: f64| of.is_some_and(|of| (of - seen).abs() <= SAME * seen);
        assert!(near(p99.low, 50.0) && near(p99.high, 1_800.0), "{p99:?}");
        assert!(too_short.is_empty(), "{too_short:?}");
        let (p99, _) = sampled(|r, u| if u < 0.992 + 0.001 * (r % 2) as f64 { 76.0 } else { 77.0 });
        assert!(p99.high.unwrap() - p99.low.unwrap() < 0.1, "all have 76: {p99:?}");
    }

    /// Nine replications lie far below the one that decides the pooled quantile.
    #[test]
    fn single_replications_below_the_pooled_one_are_too_short() {
        let (p99, too_short) = sampled(|r, u| u * if r == 9 { 4_000.0 } else { 100.0 });
        assert!(too_short.contains(&"p99"), "{p99:?}, {too_short:?}");
        let exponential = |u: f64| -100.0 * weir_stats::math::ln(1.0 - u);
        let (p99, too_short) = sampled(|r, u| exponential(u) * (1.0 + 0.01 * (r as f64 - 4.5)));
        assert!(too_short.is_empty() && (p99.value.unwrap() - 460.5).abs() < 6.0, "{p99:?}, {too_short:?}");
    }
}
