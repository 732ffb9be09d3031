//! A server that is slow until it has warmed up: caches to fill, code to compile.
//!
//! - In virtual time and in the proxy: called when a request enters; its work is multiplied by the result.
//! - Draws: nothing.
//! - Formula: from `factor` linearly to 1 over the first `requests`, or over `time` since the process began (with the
//!   run, as a newcomer, or after a crash); with both, whichever is further. A share of either may be done in advance, as
//!   synthetic requests before the first real one do.

use serde::{Deserialize, Serialize};

/// What runs at the start of the run is: long-running processes are warm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtStart {
    /// As cold as a process that begins then.
    #[default]
    Cold,
    /// Warm; cold whenever it begins anew.
    Warm,
}

/// What all members of a site have in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Law {
    /// How many times longer the work of the very first request takes; positive, finite.
    pub factor: f64,
    /// The requests over which the factor falls to 1.
    pub requests: Option<u64>,
    /// The time over which it does, ns. At least one of the two is given; without either it is warm.
    pub time_ns: Option<u64>,
    /// How what runs at the start of the run begins.
    #[serde(default)]
    pub at_start: AtStart,
    /// The share of `requests` and of `time_ns` that is done already when it begins cold; 0 to 1.
    #[serde(default)]
    pub prewarmed: f64,
}

impl Law {
    /// Cold at the start of the run, and nothing done in advance.
    pub fn new(factor: f64, requests: Option<u64>, time_ns: Option<u64>) -> Law {
        Law { factor, requests, time_ns, at_start: AtStart::Cold, prewarmed: 0.0 }
    }
}

/// The state of one node; at first that of a process of the start of the run, at time 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Warmup {
    since_ns: u64,
    entered: u64,
    /// Whether it has begun since the start of the run.
    is_anew: bool,
}

impl Warmup {
    /// The factor for the work of a request that enters now.
    #[inline]
    pub fn enter(&mut self, law: &Law, now_ns: u64) -> f64 {
        if law.at_start == AtStart::Warm && !self.is_anew {
            return 1.0;
        }
        let by_count = law.requests.map(|n| share(self.entered, n, law.prewarmed));
        let by_time =
            law.time_ns.map(|time| share(now_ns.saturating_sub(self.since_ns), time, law.prewarmed));
        self.entered = self.entered.saturating_add(1);
        let progress = match (by_count, by_time) {
            (Some(a), Some(b)) => a.max(b),
            (a, b) => a.or(b).unwrap_or(1.0),
        };
        // Written so that both ends are exact.
        law.factor * (1.0 - progress) + progress
    }

    /// Cold again: time and requests count from now.
    pub fn restart(&mut self, now_ns: u64) {
        *self = Warmup { since_ns: now_ns, entered: 0, is_anew: true };
    }
}

/// done / of, with this much of it done in advance; 1 at most; 1 if `of` is 0.
fn share(done: u64, of: u64, in_advance: f64) -> f64 {
    if done >= of { 1.0 } else { (in_advance + done as f64 / of as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn by_requests() {
        let law = Law::new(10.0, Some(4), None);
        let mut node = Warmup::default();
        let got: Vec<f64> = (0..6).map(|i| node.enter(&law, i * 1000 * S)).collect();
        assert_eq!(got, [10.0, 7.75, 5.5, 3.25, 1.0, 1.0]);
        node.restart(9 * S);
        assert_eq!(node.enter(&law, 9 * S), 10.0);
        // Over n requests the mean is (factor + 1)/2 + (factor - 1)/2n.
        let law = Law::new(10.0, Some(1000), None);
        let mut node = Warmup::default();
        let sum: f64 = (0..1000).map(|_| node.enter(&law, 0)).sum();
        assert!((sum / 1000.0 - 5.5 - 9.0 / 2000.0).abs() < 1e-9, "{sum}");
    }

    #[test]
    fn by_time() {
        let law = Law::new(3.0, None, Some(10 * S));
        let mut node = Warmup::default();
        let got = [0, 0, 5 * S, 10 * S, u64::MAX].map(|now| node.enter(&law, now));
        assert_eq!(got, [3.0, 3.0, 2.0, 1.0, 1.0]);
        node.restart(20 * S);
        assert_eq!([20 * S, 25 * S, 31 * S].map(|now| node.enter(&law, now)), [3.0, 2.0, 1.0]);
        // A request that enters before the restart has happened is as cold as possible, not colder.
        assert_eq!(node.enter(&law, 19 * S), 3.0);
    }

    #[test]
    fn by_whichever_is_further() {
        let law = Law::new(5.0, Some(4), Some(8 * S));
        let mut node = Warmup::default();
        let got = [0, 0, 6 * S, 6 * S, 6 * S].map(|now| node.enter(&law, now));
        assert_eq!(got, [5.0, 4.0, 2.0, 2.0, 1.0]);
    }

    #[test]
    fn what_runs_at_the_start_may_be_warm() {
        let law = Law { at_start: AtStart::Warm, ..Law::new(5.0, Some(4), None) };
        let mut node = Warmup::default();
        assert_eq!([node.enter(&law, 7 * S), node.enter(&law, 8 * S)], [1.0, 1.0]);
        node.restart(9 * S);
        assert_eq!([0; 5].map(|_| node.enter(&law, 9 * S)), [5.0, 4.0, 3.0, 2.0, 1.0]);
    }

    #[test]
    fn a_share_may_be_done_in_advance() {
        let law = Law { prewarmed: 0.5, ..Law::new(5.0, Some(4), Some(8 * S)) };
        let mut node = Warmup::default();
        assert_eq!([0, 0, 4 * S].map(|now| node.enter(&law, now)), [3.0, 2.0, 1.0]);
        node.restart(10 * S);
        assert_eq!([10 * S, 12 * S].map(|now| node.enter(&law, now)), [3.0, 2.0]);
        let law = Law { prewarmed: 1.0, ..law };
        assert_eq!(Warmup::default().enter(&law, 0), 1.0);
    }

    #[test]
    fn of_no_length_it_is_warm() {
        for law in [Law::new(9.0, Some(0), None), Law::new(9.0, None, Some(0)), Law::new(9.0, None, None)] {
            assert_eq!(Warmup::default().enter(&law, 0), 1.0);
        }
        assert_eq!(
            Warmup::default().enter(&Law::new(0.5, Some(2), None), 0),
            0.5,
            "a cold start may be the faster"
        );
    }
}
