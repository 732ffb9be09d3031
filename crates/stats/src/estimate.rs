//! What a result says of a quantity: its value and how far it can be trusted.

/// A mean over replications with its 95 % Student interval; `None` is what cannot be said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The mean over replications.
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
    /// From the values of independent replications. If one of them cannot say, nothing is said: a quantile that only some
    /// replications have would be biased.
    pub fn of(values: impl IntoIterator<Item = Option<f64>>) -> Estimate {
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

    /// Half the width of the interval, if there is one.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let e = Estimate::of([1.0, 2.0, 3.0, 4.0, 5.0].map(Some));
        assert_eq!(e.value, Some(3.0));
        // sd sqrt(2.5), t(4) = 2.776445
        assert!((e.half_width().unwrap() - 2.776_445 * (2.5f64 / 5.0).sqrt()).abs() < 1e-6);
    }

    #[test]
    fn what_cannot_be_said_is_none() {
        assert_eq!(Estimate::of([Some(7.0)]), Estimate { value: Some(7.0), low: None, high: None });
        assert_eq!(Estimate::of([Some(7.0), None]), Estimate::default());
        assert_eq!(Estimate::of([]), Estimate::default());
    }
}
