//! When requests arrive, as a topology file says it (`traffic.`).

use crate::Dist;
use crate::sampler::{Sampler, whole};
use serde::{Deserialize, Serialize};
use weir_stats::{Key, math};

/// An arrival process. Equal values have equal arrivals in all scenarios of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "traffic", rename_all = "snake_case")]
pub enum Traffic {
    /// Exponential gaps; `every=` and `rate=` are two ways to write the mean gap.
    Poisson {
        /// The mean gap, ns; positive and finite (a rate of 3 has a gap that is no whole number).
        gap_ns: f64,
    },
    /// Equal gaps.
    Constant {
        /// The gap, ns; positive and finite. The k-th arrival comes at k times it, rounded.
        gap_ns: f64,
    },
    /// Independent gaps of any distribution.
    Renewal {
        /// The gap.
        gap: Dist,
    },
    /// A Poisson process whose rate changes: each state holds for an exponential time, then the next one begins, round
    /// and round from the first.
    Mmpp {
        /// Rate per second (not negative, not all 0) and mean stay, ns (positive).
        states: Vec<(f64, u64)>,
    },
    /// A Poisson process whose rate is piecewise linear: 0 before the first point, the last rate after the last point.
    Schedule {
        /// Time, ns, ascending (two equal times are a jump), and rate per second there, not negative.
        points: Vec<(u64, f64)>,
        /// Whether it begins anew at the last point's time.
        repeat: bool,
    },
    /// So many users, each of whom thinks, sends a request, waits for its answer, and thinks again.
    Closed {
        /// At least 1.
        users: u32,
        /// How long a user thinks.
        think: Dist,
    },
    /// Recorded instants.
    Trace {
        /// The file's name as written.
        file: String,
        /// Ascending, ns.
        arrivals_ns: Vec<u64>,
    },
}

/// The instants of an open arrival process, in order; the first comes after one gap.
#[derive(Clone, Debug)]
pub struct Arrivals {
    gap: Gap,
    key: Key,
    issued: u64,
    last_ns: u64,
}

#[derive(Clone, Debug)]
enum Gap {
    Drawn(Sampler),
    Exponential(f64),
    Constant(f64),
}

impl Arrivals {
    /// The arrivals that `key` (seed and replication) gives this traffic. Equal traffic has equal arrivals.
    pub fn new(traffic: &Traffic, key: Key) -> Arrivals {
        let gap = match traffic {
            Traffic::Poisson { gap_ns } => Gap::Exponential(*gap_ns),
            Traffic::Constant { gap_ns } => Gap::Constant(*gap_ns),
            Traffic::Renewal { gap } => Gap::Drawn(Sampler::new(gap)),
            _ => Gap::Constant(1.0),
        };
        Arrivals { gap, key: traffic.mix(key), issued: 0, last_ns: 0 }
    }

    /// The next instant, ns. Saturates at the end of time.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        self.issued += 1;
        let gap = match &self.gap {
            Gap::Exponential(mean) => whole(-math::ln(self.key.nth(self.issued).unit()) * mean),
            Gap::Drawn(sampler) => sampler.draw(self.key.nth(self.issued)),
            Gap::Constant(gap) => {
                self.last_ns = (self.issued as f64 * gap + 0.5) as u64;
                0
            }
        };
        self.last_ns = self.last_ns.saturating_add(gap);
        self.last_ns
    }
}

impl Traffic {
    /// Mixes what the traffic means into a key: equal for equal traffic, however it is written.
    fn mix(&self, key: Key) -> Key {
        match self {
            Traffic::Poisson { gap_ns } => key.with(1).with(gap_ns.to_bits()),
            Traffic::Constant { gap_ns } => key.with(2).with(gap_ns.to_bits()),
            Traffic::Renewal { gap } => gap.mix(key.with(3)),
            _ => key,
        }
    }

    /// Arrivals per second, where there is a mean.
    pub fn rate_per_s(&self) -> Option<f64> {
        let gap_ns = match self {
            Traffic::Poisson { gap_ns } | Traffic::Constant { gap_ns } => *gap_ns,
            Traffic::Renewal { gap } => gap.mean_ns()?,
            _ => return None,
        };
        (gap_ns > 0.0).then(|| 1e9 / gap_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(traffic: &Traffic, n: u64) -> f64 {
        let mut arrivals = Arrivals::new(traffic, Key::new(1));
        let last = (0..n).map(|_| arrivals.next_ns()).last().unwrap_or(0);
        n as f64 / (last as f64 / 1e9)
    }

    #[test]
    fn rates_are_as_asked_for() {
        assert!((rate(&Traffic::Poisson { gap_ns: 1e9 / 3000.0 }, 1_000_000) / 3000.0 - 1.0).abs() < 0.005);
        assert!((rate(&Traffic::Constant { gap_ns: 1e9 / 3.0 }, 3_000_000) - 3.0).abs() < 1e-9);
        // Exponential gaps rounded to whole ms: 1042.2 per second (`notes/simulation.md`, part 1).
        let of = Box::new(Dist::Exponential { mean_ns: 1_000_000 });
        let posts = Traffic::Renewal { gap: Dist::Rounded { of, to_ns: 1_000_000 } };
        assert!((rate(&posts, 1_000_000) / 1042.2 - 1.0).abs() < 0.006);
    }

    #[test]
    fn equal_traffic_has_equal_arrivals_and_other_traffic_others() {
        let first = |gap_ns: f64, seed| Arrivals::new(&Traffic::Poisson { gap_ns }, Key::new(seed)).next_ns();
        assert_eq!(first(1e6, 1), first(1e6, 1));
        assert_ne!(first(1e6, 1), first(1e6, 2));
        assert_ne!(first(1e6, 1) * 2, first(2e6, 1));
    }
}
