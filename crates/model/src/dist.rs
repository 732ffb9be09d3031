//! Distributions of durations, as a topology file names them (`dist.`).

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A distribution of durations in nanoseconds. Its arguments are checked where it is built from a file: finite, not
/// negative, in range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "dist", rename_all = "snake_case")]
pub enum Dist {
    /// Always the same.
    Fixed {
        /// The duration.
        ns: u64,
    },
    /// Exponential.
    Exponential {
        /// Its mean.
        mean_ns: u64,
    },
    /// Uniform between two bounds.
    Uniform {
        /// The lower bound.
        low_ns: u64,
        /// The upper bound.
        high_ns: u64,
    },
    /// Log-normal by mean and coefficient of variation.
    Lognormal {
        /// Its mean.
        mean_ns: u64,
        /// Standard deviation over mean.
        cv: f64,
    },
    /// Pareto (type I).
    Pareto {
        /// The least value.
        minimum_ns: u64,
        /// The tail exponent; the mean is infinite at 1 and below.
        alpha: f64,
    },
    /// The sum of k exponentials.
    Erlang {
        /// How many.
        k: u32,
        /// The mean of the sum.
        mean_ns: u64,
    },
    /// A mixture of exponentials.
    Hyperexponential {
        /// Probability and mean (ns) of each phase; the probabilities add up to 1.
        phases: Vec<(f64, u64)>,
    },
    /// Resampled from data.
    Empirical {
        /// Where the values come from: a file's name, or `None` for values in the topology file.
        source: Option<String>,
        /// The values in the order given, ns.
        values_ns: Arc<[u64]>,
    },
    /// The sum of two independent draws.
    Sum {
        /// The first.
        a: Box<Dist>,
        /// The second.
        b: Box<Dist>,
    },
    /// Each draw rounded half up to a multiple.
    Rounded {
        /// What is drawn.
        of: Box<Dist>,
        /// The multiple.
        to_ns: u64,
    },
}
