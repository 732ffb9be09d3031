//! Distributions of durations, as a topology file names them (`dist.`).

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_stats::Key;

/// A distribution of durations in nanoseconds. Its arguments are checked where it is built from a file: finite, not
/// negative, in range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "dist", rename_all = "snake_case")]
pub enum Dist {
    /// A constant.
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
        /// The number of exponentials.
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
        /// The source of the values: a file's name, or `None` for values in the topology file.
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
        /// The distribution that is rounded.
        of: Box<Dist>,
        /// The multiple.
        to_ns: u64,
    },
}

impl Dist {
    /// The mean, ns; `None` where it is infinite.
    pub fn mean_ns(&self) -> Option<f64> {
        Some(match self {
            Dist::Fixed { ns } => *ns as f64,
            Dist::Exponential { mean_ns }
            | Dist::Lognormal { mean_ns, .. }
            | Dist::Erlang { mean_ns, .. } => *mean_ns as f64,
            Dist::Uniform { low_ns, high_ns } => (*low_ns as f64 + *high_ns as f64) / 2.0,
            Dist::Pareto { alpha, .. } if *alpha <= 1.0 => return None,
            Dist::Pareto { minimum_ns, alpha } => *minimum_ns as f64 * alpha / (alpha - 1.0),
            Dist::Hyperexponential { phases } => phases.iter().map(|(p, mean)| p * *mean as f64).sum(),
            Dist::Empirical { values_ns, .. } => {
                values_ns.iter().map(|v| *v as f64).sum::<f64>() / values_ns.len().max(1) as f64
            }
            Dist::Sum { a, b } => a.mean_ns()? + b.mean_ns()?,
            Dist::Rounded { of, to_ns } => match &**of {
                // Rounded half up to a multiple of 1 it has the mean e^-h / (1 - e^-2h), h = 1/(2m).
                Dist::Exponential { mean_ns } => {
                    let h = *to_ns as f64 / (2.0 * *mean_ns as f64);
                    *to_ns as f64 * libm::exp(-h) / (1.0 - libm::exp(-2.0 * h))
                }
                other => other.mean_ns()?,
            },
        })
    }

    /// Whether each draw is the same.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Dist::Fixed { .. })
    }

    /// The tail exponent where the tail is that of a power: moments from that one on are infinite. Of a sum, the
    /// heavier.
    pub fn tail_exponent(&self) -> Option<f64> {
        match self {
            Dist::Pareto { alpha, .. } => Some(*alpha),
            Dist::Sum { a, b } => match (a.tail_exponent(), b.tail_exponent()) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            Dist::Rounded { of, .. } => of.tail_exponent(),
            _ => None,
        }
    }

    /// The share of draws that are longer than `ns`. Of a sum: at least one part is.
    pub fn share_beyond(&self, ns: u64) -> f64 {
        let x = ns as f64;
        let exponential = |mean_ns: u64| libm::exp(-x / mean_ns.max(1) as f64);
        match self {
            Dist::Fixed { ns: of } => f64::from(*of > ns),
            Dist::Exponential { mean_ns } => exponential(*mean_ns),
            Dist::Uniform { low_ns, high_ns } => {
                let width = high_ns.saturating_sub(*low_ns).max(1);
                high_ns.saturating_sub(ns.max(*low_ns)) as f64 / width as f64
            }
            Dist::Lognormal { mean_ns, cv } => {
                let variance = libm::log1p(cv * cv);
                let off = libm::log(x / (*mean_ns).max(1) as f64) + 0.5 * variance;
                if variance > 0.0 {
                    0.5 * libm::erfc(off / (2.0 * variance).sqrt())
                } else {
                    f64::from(*mean_ns > ns)
                }
            }
            Dist::Pareto { minimum_ns, alpha } => libm::pow(*minimum_ns as f64 / x, *alpha).min(1.0),
            Dist::Erlang { k, mean_ns } => {
                let a = x * f64::from(*k) / (*mean_ns).max(1) as f64;
                let terms = (1..*k).scan(1.0, |term, i| {
                    *term *= a / f64::from(i);
                    Some(*term)
                });
                // Where the exponential is 0 the sum may be too large for a number.
                match libm::exp(-a) {
                    0.0 => 0.0,
                    least => (least * (1.0 + terms.sum::<f64>())).min(1.0),
                }
            }
            Dist::Hyperexponential { phases } => phases.iter().map(|(p, mean)| p * exponential(*mean)).sum(),
            Dist::Empirical { values_ns, .. } => {
                values_ns.iter().filter(|v| **v > ns).count() as f64 / values_ns.len().max(1) as f64
            }
            Dist::Sum { a, b } => 1.0 - (1.0 - a.share_beyond(ns)) * (1.0 - b.share_beyond(ns)),
            Dist::Rounded { of, .. } => of.share_beyond(ns),
        }
    }

    /// Mixes the meaning of the distribution into a key: equal for equal distributions, from whichever file their
    /// values come.
    #[must_use]
    pub fn mix(&self, key: Key) -> Key {
        match self {
            Dist::Fixed { ns } => key.with(1).with(*ns),
            Dist::Exponential { mean_ns } => key.with(2).with(*mean_ns),
            Dist::Uniform { low_ns, high_ns } => key.with(3).with(*low_ns).with(*high_ns),
            Dist::Lognormal { mean_ns, cv } => key.with(4).with(*mean_ns).with(cv.to_bits()),
            Dist::Pareto { minimum_ns, alpha } => key.with(5).with(*minimum_ns).with(alpha.to_bits()),
            Dist::Erlang { k, mean_ns } => key.with(6).with(u64::from(*k)).with(*mean_ns),
            Dist::Hyperexponential { phases } => {
                phases.iter().fold(key.with(7), |key, (p, mean)| key.with(p.to_bits()).with(*mean))
            }
            Dist::Empirical { values_ns, .. } => values_ns.iter().fold(key.with(8), |key, v| key.with(*v)),
            Dist::Sum { a, b } => b.mix(a.mix(key.with(9))),
            Dist::Rounded { of, to_ns } => of.mix(key.with(10).with(*to_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heavy_tail_has_no_mean() {
        let heavy = Dist::Pareto { minimum_ns: 5, alpha: 1.0 };
        assert_eq!(heavy.mean_ns(), None);
        assert_eq!(Dist::Sum { a: Box::new(heavy), b: Box::new(Dist::Fixed { ns: 1 }) }.mean_ns(), None);
    }

    /// Counted among draws; each share is of the kind that draws can show.
    #[test]
    fn draws_beyond_a_time_are_as_many_as_said() {
        const MS: u64 = 1_000_000;
        let exponential = Dist::Exponential { mean_ns: 10 * MS };
        let dists = [
            exponential.clone(),
            Dist::Uniform { low_ns: 5 * MS, high_ns: 25 * MS },
            Dist::Lognormal { mean_ns: 15 * MS, cv: 1.5 },
            Dist::Pareto { minimum_ns: 3 * MS, alpha: 0.7 },
            Dist::Erlang { k: 3, mean_ns: 15 * MS },
            Dist::Hyperexponential { phases: vec![(0.9, 5 * MS), (0.1, 60 * MS)] },
            Dist::Empirical { source: None, values_ns: vec![MS, 30 * MS, 40 * MS].into() },
        ];
        for dist in dists {
            let sampler = crate::sampler::Sampler::new(&dist);
            let beyond = (0..20_000).filter(|i| sampler.draw(Key::new(*i)) > 20 * MS).count() as f64 / 2e4;
            let said = dist.share_beyond(20 * MS);
            assert!((beyond - said).abs() < 0.015, "{dist:?}: {said}, drawn {beyond}");
        }
        assert_eq!(Dist::Fixed { ns: 5 }.share_beyond(4), 1.0);
        let many = Dist::Erlang { k: 40, mean_ns: 10 * MS };
        assert_eq!(many.share_beyond(crate::sampler::LONGEST_NS), 0.0);
        let sum = Dist::Sum { a: Box::new(Dist::Fixed { ns: 5 }), b: Box::new(exponential) };
        assert_eq!((sum.share_beyond(4), sum.share_beyond(u64::MAX)), (1.0, 0.0));
    }

    #[test]
    fn the_source_of_values_does_not_matter_but_the_values_do() {
        let of = |source: Option<&str>, v: u64| Dist::Empirical {
            source: source.map(String::from),
            values_ns: vec![v].into(),
        };
        let key = Key::new(1);
        assert_eq!(of(Some("a.csv"), 3).mix(key), of(None, 3).mix(key));
        assert_ne!(of(None, 3).mix(key), of(None, 4).mix(key));
    }
}
