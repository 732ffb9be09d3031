//! The value of a quantity and its precision.

use crate::BoundedQuantile;

/// A mean over replications (or a quantile of all of them together) with its 95 % Student interval; `None` if
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The mean over replications, or the quantile of all their samples.
    pub value: Option<f64>,
    /// Lower bound of the interval; `None` with a single replication.
    pub low: Option<f64>,
    /// Upper bound of the interval; `None` with a single replication.
    pub high: Option<f64>,
}

/// Latencies of a set of requests in milliseconds. `min` and `max` run over all replications.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// The least of all replications.
    pub min: Option<f64>,
    /// The mean.
    pub mean: Estimate,
    /// The median (quantiles interpolate linearly between order statistics, type 7 of Hyndman and Fan 1996).
    pub p50: Estimate,
    /// The 90 % quantile.
    pub p90: Estimate,
    /// The 95 % quantile.
    pub p95: Estimate,
    /// The 99 % quantile.
    pub p99: Estimate,
    /// The 99.9 % quantile.
    pub p999: Estimate,
    /// The greatest of all replications.
    pub max: Option<f64>,
}

impl Estimate {
    /// From the values of independent replications. If one of them has none, there is no estimate: a quantile that
    /// only some replications have would be biased.
    pub fn new(values: impl IntoIterator<Item = Option<f64>>) -> Estimate {
        let Some(values) = values.into_iter().collect::<Option<Vec<f64>>>() else {
            return Estimate::default();
        };
        let n = values.len();
        if n == 0 || values.iter().any(|v| !v.is_finite()) {
            return Estimate::default();
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        if n == 1 {
            return Estimate { value: Some(mean), low: None, high: None };
        }
        let variance = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1) as f64;
        let half = crate::student::t95(n as u32 - 1) * (variance / n as f64).sqrt();
        Estimate { value: Some(mean), low: Some(mean - half), high: Some(mean + half) }
    }

    /// From a quantile of the samples of all replications together and each replication's own (sectioning: Asmussen
    /// and Glynn, Stochastic Simulation, III.5). The mean of the replications' own would be biased with correlated
    /// samples. The interval is no narrower than the resolution of the histogram. If one replication has none, there
    /// is no estimate.
    pub fn sectioned(
        pooled: Option<BoundedQuantile>,
        own: impl IntoIterator<Item = Option<f64>>,
    ) -> Estimate {
        let own = own.into_iter().collect::<Option<Vec<f64>>>();
        let (Some(BoundedQuantile { value, off }), Some(own)) = (pooled, own) else {
            return Estimate::default();
        };
        let n = own.len() as f64;
        if own.len() < 2 {
            return Estimate { value: Some(value), low: None, high: None };
        }
        let squares = own.iter().map(|v| (v - value) * (v - value)).sum::<f64>();
        let half = crate::student::t95(own.len() as u32 - 1) * (squares / (n * (n - 1.0))).sqrt();
        let half = half.max(off);
        Estimate { value: Some(value), low: Some(value - half), high: Some(value + half) }
    }

    /// The interval of a quantile that lies on a step, where sectioning would give values that no sample has: from the
    /// least to the greatest of the pooled quantile, its bounds by binomial ranks, and the order statistics of the
    /// replications' own between which their median lies with 95 % (David and Nagaraja 2003, Order Statistics, 7.1; of
    /// fewer than six replications all of them).
    pub fn ranked(value: f64, bounds: (f64, f64), own: &[f64]) -> Estimate {
        if own.len() < 2 {
            return Estimate { value: Some(value), low: None, high: None };
        }
        let mut own = own.to_vec();
        own.sort_by(f64::total_cmp);
        let cut = outer_ranks(own.len());
        let low = value.min(bounds.0).min(own[cut]);
        let high = value.max(bounds.1).max(own[own.len() - 1 - cut]);
        Estimate { value: Some(value), low: Some(low), high: Some(high) }
    }

    /// The same interval, where it goes beyond these values cut off there.
    pub fn within(self, min: f64, max: f64) -> Estimate {
        Estimate { low: self.low.map(|x| x.max(min)), high: self.high.map(|x| x.min(max)), ..self }
    }

    /// Half the width of the interval, if there is one.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

/// How many order statistics at each end lie outside of the 95 % interval of the median of `n`.
fn outer_ranks(n: usize) -> usize {
    // Beyond this 2^-n is no number, and the normal approximation is exact to a rank.
    if n > 1_000 {
        return (0.5 * n as f64 - 0.98 * (n as f64).sqrt()) as usize;
    }
    // P(fewer than k of n fair coins) <= 0.025: the sum of C(n, i) / 2^n, without large numbers.
    let mut term = crate::math::exp(-crate::math::ln(2.0) * n as f64);
    let (mut below, mut cut) = (term, 0);
    while below <= 0.025 && 2 * cut + 2 < n {
        cut += 1;
        term *= (n - cut + 1) as f64 / cut as f64;
        below += term;
    }
    cut.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let e = Estimate::new([1.0, 2.0, 3.0, 4.0, 5.0].map(Some));
        assert_eq!(e.value, Some(3.0));
        // sd sqrt(2.5), t(4) = 2.776445
        assert!((e.half_width().unwrap() - 2.776_445 * (2.5f64 / 5.0).sqrt()).abs() < 1e-6);
    }

    /// The spread is around the pooled quantile, so the bias of the replications' own widens it.
    #[test]
    fn sectioning_spreads_around_the_pooled_quantile() {
        let pooled = |off: f64| Some(BoundedQuantile { value: 10.0, off });
        let e = Estimate::sectioned(pooled(0.0), [8.0, 9.0, 9.0].map(Some));
        assert_eq!(e.value, Some(10.0));
        // t(2) = 4.302653, squares 4 + 1 + 1
        assert!((e.half_width().unwrap() - 4.302_653 * (6.0f64 / 6.0).sqrt()).abs() < 1e-6);
        let e = Estimate::sectioned(pooled(0.5), [10.0, 10.0].map(Some));
        assert_eq!((e.low, e.high), (Some(9.5), Some(10.5)), "no narrower than the histogram");
        assert_eq!(Estimate::sectioned(pooled(0.5), [Some(10.0)]).low, None);
        assert_eq!(Estimate::sectioned(pooled(0.5), [Some(10.0), None]), Estimate::default());
        assert_eq!(Estimate::sectioned(None, [Some(10.0)]), Estimate::default());
    }

    /// Tables of the sign test: of 10 values the second and the ninth bound the median, of 20 the sixth and the
    /// fifteenth, of 100 the fortieth and the sixty-first.
    #[test]
    fn a_median_lies_between_these_ranks() {
        assert_eq!([2, 5, 6, 10, 20, 100].map(outer_ranks), [0, 0, 0, 1, 5, 39]);
        assert_eq!([1_000, 1_001].map(outer_ranks), [468, 469]);
    }

    #[test]
    fn the_interval_at_a_step_has_values_that_were_seen() {
        let own = [50.0, 50.0, 1_800.0, 50.0, 50.0, 1_800.0, 50.0, 1_800.0, 4.0, 50.0];
        let e = Estimate::ranked(50.0, (50.0, 50.0), &own);
        assert_eq!((e.value, e.low, e.high), (Some(50.0), Some(50.0), Some(1_800.0)));
        assert_eq!(Estimate::ranked(50.0, (4.0, 50.0), &own).low, Some(4.0));
        assert_eq!(Estimate::ranked(50.0, (4.0, 50.0), &[50.0]).low, None);
    }

    #[test]
    fn what_cannot_be_said_is_none() {
        assert_eq!(Estimate::new([Some(7.0)]), Estimate { value: Some(7.0), low: None, high: None });
        assert_eq!(Estimate::new([Some(7.0), None]), Estimate::default());
        assert_eq!(Estimate::new([]), Estimate::default());
    }
}
