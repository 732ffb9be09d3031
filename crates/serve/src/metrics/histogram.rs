//! Histograms of times with fixed bounds: from 100 us on each twice the one before, and 60 s as the last.
//!
//! An observation is a division by a constant, a count of leading zeros and two additions.

use super::native::{self, Native};
use std::cell::Cell;

/// The upper bounds, s, as both formats write them.
pub(crate) const BOUNDS: [&str; 21] = [
    "0.0001", "0.0002", "0.0004", "0.0008", "0.0016", "0.0032", "0.0064", "0.0128", "0.0256", "0.0512",
    "0.1024", "0.2048", "0.4096", "0.8192", "1.6384", "3.2768", "6.5536", "13.1072", "26.2144", "52.4288",
    "60.0",
];

/// The first bound, ns.
const FIRST_NS: u64 = 100_000;
/// The last, ns.
const LAST_NS: u64 = 60_000_000_000;
/// How many bounds double.
const DOUBLING: usize = BOUNDS.len() - 1;
/// The bounds, and what is above the last.
const BUCKETS: usize = BOUNDS.len() + 1;

/// The observations of one thread.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    counts: [Cell<u64>; BUCKETS],
    sum_ns: Cell<u64>,
    /// The same times, by more bounds.
    native: Native,
}

/// The same at one moment, to be added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HistogramCounts {
    counts: [u64; BUCKETS],
    sum_ns: u64,
    pub native: native::Counts,
}

impl Histogram {
    /// Adds a time.
    #[inline]
    pub fn observe(&self, ns: u64) {
        let count = &self.counts[bucket(ns)];
        count.set(count.get() + 1);
        self.sum_ns.set(self.sum_ns.get().wrapping_add(ns));
        self.native.observe(ns);
    }

    /// The observations so far.
    pub fn observed(&self) -> HistogramCounts {
        HistogramCounts {
            counts: std::array::from_fn(|at| self.counts[at].get()),
            sum_ns: self.sum_ns.get(),
            native: self.native.observed(),
        }
    }
}

/// The bucket of a time; a bound belongs to the bucket below it.
#[inline]
fn bucket(ns: u64) -> usize {
    let doublings = (u64::BITS - (ns.saturating_sub(1) / FIRST_NS).leading_zeros()) as usize;
    match doublings {
        0..DOUBLING => doublings,
        _ if ns <= LAST_NS => DOUBLING,
        _ => DOUBLING + 1,
    }
}

impl HistogramCounts {
    /// Adds the observations of another thread.
    pub fn add(&mut self, other: &HistogramCounts) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
        native::add(&mut self.native, &other.native);
    }

    /// The number of times up to each bound, in order; then the number of all.
    pub fn cumulative(&self) -> [u64; BUCKETS] {
        let mut sum = 0;
        self.counts.map(|count| {
            sum += count;
            sum
        })
    }

    /// The sum of all times, s.
    pub fn sum_s(&self) -> f64 {
        self.sum_ns as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bound as text, and the times beside it.
    #[test]
    fn a_time_is_in_the_first_bucket_that_has_room_for_it() {
        for (at, bound) in BOUNDS.iter().enumerate() {
            let ns = (bound.parse::<f64>().unwrap() * 1e9).round() as u64;
            assert_eq!([bucket(ns - 1), bucket(ns), bucket(ns + 1)], [at, at, at + 1], "{bound}");
        }
        assert_eq!((bucket(0), bucket(u64::MAX)), (0, BUCKETS - 1));
    }

    #[test]
    fn bounds_are_at_most_twice_the_one_before() {
        let bounds: Vec<f64> = BOUNDS.iter().map(|b| b.parse().unwrap()).collect();
        assert!(bounds.windows(2).all(|w| w[0] < w[1] && w[1] <= 2.0 * w[0] + 1e-12), "{bounds:?}");
        assert_eq!((bounds[0], bounds[20]), (0.0001, 60.0));
    }

    #[test]
    fn what_threads_observed_adds_up() {
        let (one, other) = (Histogram::default(), Histogram::default());
        [5, 150_000, LAST_NS + 1].into_iter().for_each(|ns| one.observe(ns));
        other.observe(150_000);
        let mut sum = one.observed();
        sum.add(&other.observed());
        let cumulative = sum.cumulative();
        assert_eq!((cumulative[0], cumulative[1], cumulative[20], cumulative[21]), (1, 3, 3, 4));
        assert!((sum.sum_s() - 60.000_300_006).abs() < 1e-12, "{}", sum.sum_s());
    }
}
