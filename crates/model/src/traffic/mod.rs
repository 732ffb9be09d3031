//! When requests arrive, as a topology file specifies it (`traffic.`).

mod arrivals;
mod thinking;
mod varying;

pub use arrivals::Arrivals;
pub use thinking::Thinking;

use crate::Dist;
use serde::{Deserialize, Serialize};
use weir_stats::Key;

/// An arrival process. Equal values have equal arrivals in all scenarios of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "traffic", rename_all = "snake_case")]
pub enum Traffic {
    /// Exponential gaps; `every=` and `rate=` are two ways to write the mean gap.
    Poisson {
        /// The mean gap, ns; positive and finite (a rate of 3 has a gap that is not a whole number).
        gap_ns: f64,
    },
    /// Equal gaps.
    Constant {
        /// The gap, ns; positive and finite. The k-th arrival comes at k times the gap, rounded.
        gap_ns: f64,
    },
    /// Independent gaps of any distribution.
    Renewal {
        /// The gap.
        gap: Dist,
    },
    /// A Poisson process whose rate changes: each state holds for an exponential time, then the next one begins,
    /// cyclically.
    Mmpp {
        /// Rate per second (not negative, not all 0) and mean stay, ns (positive).
        states: Vec<(f64, u64)>,
    },
    /// A Poisson process whose rate is piecewise linear: 0 before the first point, the last rate after the last point.
    Schedule {
        /// Time, ns, ascending (two equal times are a jump), and rate per second there, not negative.
        points: Vec<(u64, f64)>,
        /// Whether it repeats from the last point's time on.
        repeat: bool,
    },
    /// A number of users, each of which thinks, sends a request, waits for its answer, and thinks again.
    Closed {
        /// At least 1.
        users: u32,
        /// The think time of a user.
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

impl Traffic {
    /// Mixes the meaning of the traffic into a key: equal for equal traffic, in any notation and from any file.
    fn mix(&self, key: Key) -> Key {
        // Equal numbers may have other bits: 0 and -0.
        let bits = |rate: f64| (rate + 0.0).to_bits();
        match self {
            Traffic::Poisson { gap_ns } => key.with(1).with(gap_ns.to_bits()),
            Traffic::Constant { gap_ns } => key.with(2).with(gap_ns.to_bits()),
            Traffic::Renewal { gap } => gap.mix(key.with(3)),
            Traffic::Mmpp { states } => {
                let key = key.with(4).with(states.len() as u64);
                states.iter().fold(key, |key, (rate, stay)| key.with(bits(*rate)).with(*stay))
            }
            Traffic::Schedule { points, repeat } => {
                let key = key.with(5).with(points.len() as u64).with(u64::from(*repeat));
                points.iter().fold(key, |key, (at, rate)| key.with(*at).with(bits(*rate)))
            }
            Traffic::Closed { users, think } => think.mix(key.with(6).with(u64::from(*users))),
            Traffic::Trace { arrivals_ns, .. } => {
                let key = key.with(7).with(arrivals_ns.len() as u64);
                arrivals_ns.iter().fold(key, |key, at| key.with(*at))
            }
        }
    }

    /// Arrivals per second in the long run, if there is such a mean: not in a closed loop or a trace, nor for a
    /// schedule that is not repeated.
    pub fn rate_per_s(&self) -> Option<f64> {
        let gap_ns = match self {
            Traffic::Poisson { gap_ns } | Traffic::Constant { gap_ns } => *gap_ns,
            Traffic::Renewal { gap } => gap.mean_ns()?,
            Traffic::Mmpp { states } => {
                let time: f64 = states.iter().map(|(_, stay)| *stay as f64).sum();
                let arrivals: f64 = states.iter().map(|(rate, stay)| rate * *stay as f64).sum();
                return (time > 0.0).then(|| arrivals / time);
            }
            Traffic::Schedule { points, repeat: true } => {
                let period = points.last().map_or(0, |(at, _)| *at);
                let area = |w: &[(u64, f64)]| (w[1].0 - w[0].0) as f64 * (w[0].1 + w[1].1) / 2.0;
                let arrivals: f64 = points.windows(2).map(area).sum();
                return (period > 0).then(|| arrivals / period as f64);
            }
            _ => return None,
        };
        (gap_ns > 0.0).then(|| 1e9 / gap_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_traffic_has_equal_keys_and_other_traffic_others() {
        let trace = |file: &str, at| Traffic::Trace { file: file.to_owned(), arrivals_ns: vec![1, at] };
        let closed = |users, ns| Traffic::Closed { users, think: Dist::Fixed { ns } };
        let schedule = |rate, repeat| Traffic::Schedule { points: vec![(0, rate), (9, 1.0)], repeat };
        let all = [
            Traffic::Poisson { gap_ns: 5.0 },
            Traffic::Poisson { gap_ns: 6.0 },
            Traffic::Constant { gap_ns: 5.0 },
            Traffic::Renewal { gap: Dist::Fixed { ns: 5 } },
            Traffic::Mmpp { states: vec![(1.0, 5)] },
            Traffic::Mmpp { states: vec![(1.0, 6)] },
            Traffic::Mmpp { states: vec![(2.0, 5)] },
            Traffic::Mmpp { states: vec![(1.0, 5), (1.0, 5)] },
            schedule(0.0, false),
            schedule(0.0, true),
            schedule(2.0, true),
            closed(3, 5),
            closed(4, 5),
            closed(3, 6),
            trace("a", 7),
            trace("a", 8),
            Traffic::Trace { file: "a".to_owned(), arrivals_ns: vec![1, 7, 7] },
        ];
        let key = |traffic: &Traffic| traffic.mix(Key::new(1)).bits();
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| key(a) != key(b)), "{a:?}");
            assert_ne!(key(a), a.mix(Key::new(2)).bits(), "the seed counts");
        }
        assert_eq!(key(&trace("a", 7)), key(&trace("b", 7)), "the file's name does not");
        assert_eq!(key(&schedule(0.0, true)), key(&schedule(-0.0, true)));
    }

    #[test]
    fn long_run_rates() {
        let rate = |traffic: Traffic| traffic.rate_per_s();
        assert_eq!(rate(Traffic::Poisson { gap_ns: 1e6 }), Some(1000.0));
        assert_eq!(rate(Traffic::Renewal { gap: Dist::Pareto { minimum_ns: 5, alpha: 1.0 } }), None);
        // 9 s at 10 and 1 s at 110 per second.
        let states = vec![(10.0, 9_000_000_000), (110.0, 1_000_000_000)];
        assert_eq!(rate(Traffic::Mmpp { states }), Some(20.0));
        // Nothing for 2 s, up to 100 in 4 s, a jump to 30 held for 2 s: (200 + 60)/8.
        let points: Vec<(u64, f64)> =
            [(2, 0.0), (6, 100.0), (6, 30.0), (8, 30.0)].map(|(s, rate)| (s * 1_000_000_000, rate)).to_vec();
        assert_eq!(rate(Traffic::Schedule { points: points.clone(), repeat: true }), Some(32.5));
        assert_eq!(rate(Traffic::Schedule { points, repeat: false }), None);
        assert_eq!(rate(Traffic::Schedule { points: vec![(0, 3.0)], repeat: true }), None);
        assert_eq!(rate(Traffic::Closed { users: 3, think: Dist::Fixed { ns: 5 } }), None);
        assert_eq!(rate(Traffic::Trace { file: String::new(), arrivals_ns: vec![5] }), None);
    }
}
