//! A server that is slow until it has warmed up: caches to fill, code to compile.
//!
//! - In virtual time and in the proxy: called when a request enters; its work is multiplied by the result.
//! - Draws: nothing.
//! - Formula: from `factor` linearly to 1 over the first `requests`, or over `time` since the start (of the run, or
//!   after a crash); with both, whichever is further.

/// What all members of a site have in common.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    factor: f64,
    requests: Option<u64>,
    time_ns: Option<u64>,
}

impl Law {
    /// `factor` for the very first request; at least one of the others should be given (without either it is warm).
    pub fn new(factor: f64, requests: Option<u64>, time_ns: Option<u64>) -> Law {
        Law { factor, requests, time_ns }
    }
}

/// The state of one node; at first cold at time 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Warmup {
    since_ns: u64,
    entered: u64,
}

impl Warmup {
    /// The factor for the work of a request that enters now.
    #[inline]
    pub fn enter(&mut self, law: &Law, now_ns: u64) -> f64 {
        let by_count = law.requests.map(|n| share(self.entered, n));
        let by_time = law.time_ns.map(|time| share(now_ns.saturating_sub(self.since_ns), time));
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
        *self = Warmup { since_ns: now_ns, entered: 0 };
    }
}

/// done / of, 1 at most; 1 if `of` is 0.
fn share(done: u64, of: u64) -> f64 {
    if done >= of { 1.0 } else { done as f64 / of as f64 }
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
