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
