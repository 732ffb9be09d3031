//! The instants of an open arrival process.
//!
//! - In virtual time: the times at which requests enter; `weir load` sends at these times as well.
//! - Draws: the k-th arrival's gap, or its unit exponential where the rate changes, is a function of k.

use super::Traffic;
use super::varying::Varying;
use crate::sampler::{Sampler, whole};
use std::sync::Arc;
use weir_stats::{Key, Ratio, math};

const NS_PER_S: u32 = 1_000_000_000;

/// Arrivals in order; the first comes after one gap.
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
    Constant(Steps),
    /// A Poisson process whose rate changes.
    Varying(Box<Varying>),
    /// Recorded times.
    Trace(Arc<[u64]>),
}

/// Equal gaps that need not be whole ns: each is `whole` ns and `part` of `of`, and what is left over is carried, so
/// the k-th instant is k gaps rounded half up, for every k.
#[derive(Clone, Debug)]
struct Steps {
    whole: u64,
    part: u64,
    of: u64,
    carried: u64,
}

impl Steps {
    fn new(gap_ns: f64) -> Steps {
        let gap = Ratio::of_gap(gap_ns, NS_PER_S).unwrap_or(Ratio { over: whole(gap_ns), under: 1 });
        let of = gap.under;
        Steps { whole: gap.over / of, part: gap.over % of, of, carried: of / 2 }
    }

    /// The next gap, ns.
    #[inline(always)]
    fn next_ns(&mut self) -> u64 {
        // Both are below `of`, which is at most 10^19: the sum may pass 64 bits, the difference not.
        let is_over = self.carried >= self.of - self.part;
        self.carried = if is_over { self.carried - (self.of - self.part) } else { self.carried + self.part };
        self.whole + u64::from(is_over)
    }
}

impl Arrivals {
    /// The arrivals of this traffic for `key` (seed and replication). Equal traffic has equal arrivals. A closed loop
    /// has none by itself: see [`super::Thinking`].
    pub fn new(traffic: &Traffic, key: Key) -> Arrivals {
        let key = traffic.mix(key);
        let gap = match traffic {
            Traffic::Poisson { gap_ns } => Gap::Exponential(*gap_ns),
            Traffic::Constant { gap_ns } => Gap::Constant(Steps::new(*gap_ns)),
            Traffic::Renewal { gap } => Gap::Drawn(Sampler::new(gap)),
            Traffic::Mmpp { states } => Gap::Varying(Box::new(Varying::mmpp(states, key))),
            Traffic::Schedule { points, repeat } => {
                Gap::Varying(Box::new(Varying::schedule(points, *repeat)))
            }
            Traffic::Closed { .. } => Gap::Trace(Arc::new([])),
            Traffic::Trace { arrivals_ns, .. } => Gap::Trace(arrivals_ns.as_slice().into()),
        };
        Arrivals { gap, key, issued: 0, last_ns: 0 }
    }

    /// The next arrival, ns; saturates at the end of time. `None`: there are no more.
    // Always inline: called as a function it takes 17 ns instead of 6, since each call's first conversion to f64 then
    // waits for the value that the last call left in that register.
    #[inline(always)]
    pub fn next_ns(&mut self) -> Option<u64> {
        self.issued += 1;
        let gap = match &mut self.gap {
            Gap::Exponential(mean) => whole(-math::ln(self.key.nth(self.issued).unit()) * *mean),
            Gap::Drawn(sampler) => sampler.draw(self.key.nth(self.issued)),
            Gap::Constant(steps) => steps.next_ns(),
            Gap::Varying(_) | Gap::Trace(_) => return self.next_rare(),
        };
        self.last_ns = self.last_ns.saturating_add(gap);
        Some(self.last_ns)
    }

    /// The same; `None` if `stop` returns true while the next one is looked for.
    fn next_unless(&mut self, stop: &impl Fn() -> bool) -> Option<Option<u64>> {
        let Gap::Varying(varying) = &mut self.gap else { return Some(self.next_ns()) };
        self.issued += 1;
        varying.next_unless(-math::ln(self.key.nth(self.issued).unit()), stop)
    }

    #[cold]
    #[inline(never)]
    fn next_rare(&mut self) -> Option<u64> {
        match &mut self.gap {
            Gap::Varying(varying) => varying.next_ns(-math::ln(self.key.nth(self.issued).unit())),
            Gap::Trace(at) => at.get(self.issued as usize - 1).copied(),
            _ => None,
        }
    }

    /// The number of further arrivals at or before `until_ns`, at most `most`; none is consumed. Without any limit
    /// the traffic must be finite.
    pub fn count(&self, until_ns: Option<u64>, at_most: Option<u64>) -> u64 {
        self.count_unless(until_ns, at_most, || false).unwrap_or(0)
    }

    /// The same; `None` if `stop`, which is called now and then, returns true before all are counted.
    pub fn count_unless(
        &self,
        until_ns: Option<u64>,
        at_most: Option<u64>,
        stop: impl Fn() -> bool,
    ) -> Option<u64> {
        const BETWEEN: u64 = 1 << 16;
        let mut ahead = self.clone();
        let until = until_ns.unwrap_or(u64::MAX);
        let most = at_most.unwrap_or(u64::MAX);
        let mut n = 0;
        while n < most {
            if n % BETWEEN == 0 && stop() {
                return None;
            }
            match ahead.next_unless(&stop)? {
                // At the end of time, where instants saturate, an endless process would never stop.
                Some(at) if at <= until && (at < u64::MAX || at_most.is_some()) => n += 1,
                _ => break,
            }
        }
        Some(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dist;

    const S: u64 = 1_000_000_000;

    fn rate(traffic: &Traffic, n: u64) -> f64 {
        let mut arrivals = Arrivals::new(traffic, Key::new(1));
        let last = (0..n).map_while(|_| arrivals.next_ns()).last().unwrap_or(0);
        n as f64 / (last as f64 / 1e9)
    }

    #[test]
    fn rates_are_as_asked_for() {
        assert!((rate(&Traffic::Poisson { gap_ns: 1e9 / 3000.0 }, 1_000_000) / 3000.0 - 1.0).abs() < 0.005);
        assert!((rate(&Traffic::Constant { gap_ns: 1e9 / 3.0 }, 3_000_000) - 3.0).abs() < 1e-9);
        // Exponential gaps rounded to whole ms: 1042.2 per second (`docs/spec/background.md#rounded-exponentials`).
        let of = Box::new(Dist::Exponential { mean_ns: 1_000_000 });
        let posts = Traffic::Renewal { gap: Dist::Rounded { of, to_ns: 1_000_000 } };
        assert!((rate(&posts, 1_000_000) / 1042.2 - 1.0).abs() < 0.006);
    }

    /// A gap of a third of a second is no whole number of ns, and no float either: neither may add up.
    #[test]
    fn constant_rates_keep_their_average_exactly() {
        let nth = |gap_ns: f64, n: u64| {
            let mut arrivals = Arrivals::new(&Traffic::Constant { gap_ns }, Key::new(1));
            (0..n).map_while(|_| arrivals.next_ns()).last()
        };
        assert_eq!(nth(1e9 / 3.0, 3_000_000), Some(1_000_000 * S));
        assert_eq!([1, 2, 3].map(|n| nth(1e9 / 3.0, n)), [Some(333_333_333), Some(666_666_667), Some(S)]);
        assert_eq!(nth(1e9 / 0.7, 700), Some(1000 * S));
        assert_eq!(nth(1e9 / 7e9, 7_000_000), Some(S / 1000));
        // Past 2^53 ns, where floats lack the odd ones.
        let mut steps = Steps::new(1e9 / 3e-5);
        let at: u64 = (0..30_003).map(|_| steps.next_ns()).sum();
        assert_eq!(at, 30_003 * 100_000 * S / 3);
        assert_eq!(nth(333_333_333.0, 3), Some(999_999_999), "`every=333333333*ns` says so");
    }

    #[test]
    fn equal_traffic_has_equal_arrivals_and_other_traffic_others() {
        let first = |gap_ns: f64, seed| {
            Arrivals::new(&Traffic::Poisson { gap_ns }, Key::new(seed)).next_ns().unwrap()
        };
        assert_eq!(first(1e6, 1), first(1e6, 1));
        assert_ne!(first(1e6, 1), first(1e6, 2));
        assert_ne!(first(1e6, 1) * 2, first(2e6, 1));
    }

    #[test]
    fn a_trace_is_replayed_and_ends() {
        let trace = Traffic::Trace { file: "t.csv".to_owned(), arrivals_ns: vec![0, 5, 5, 9] };
        let mut arrivals = Arrivals::new(&trace, Key::new(1));
        assert_eq!(arrivals.count(None, None), 4);
        assert_eq!(arrivals.count(Some(5), None), 3);
        let got: Vec<_> = (0..6).map(|_| arrivals.next_ns()).collect();
        assert_eq!(got, [Some(0), Some(5), Some(5), Some(9), None, None]);
        assert_eq!(arrivals.count(None, None), 0);
    }

    #[test]
    fn in_a_closed_loop_nothing_comes_by_itself() {
        let closed = Traffic::Closed { users: 5, think: Dist::Fixed { ns: 1 } };
        let mut arrivals = Arrivals::new(&closed, Key::new(1));
        assert_eq!((arrivals.count(None, None), arrivals.next_ns()), (0, None));
    }

    #[test]
    fn what_follows_can_be_counted() {
        let mut every = Arrivals::new(&Traffic::Constant { gap_ns: 1e9 }, Key::new(1));
        assert_eq!(every.count(Some(10 * S), None), 10, "at the end is in time");
        assert_eq!(every.count(Some(10 * S - 1), None), 9);
        assert_eq!(every.count(Some(10 * S), Some(3)), 3);
        assert_eq!(every.count(None, Some(7)), 7);
        assert_eq!(every.count(Some(0), None), 0);
        assert_eq!(every.next_ns(), Some(S));
        assert_eq!(every.count(Some(10 * S), None), 9, "of those that follow");
        // What cannot end within time saturates.
        let slow = Arrivals::new(&Traffic::Constant { gap_ns: 1e19 }, Key::new(1));
        assert_eq!(slow.count(Some(u64::MAX), None), 1);
        assert_eq!(slow.count(None, Some(5)), 5);
    }
}
