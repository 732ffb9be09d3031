//! Native histograms of times: eight buckets to each power of two, from 8 us to two hours.
//!
//! - Bucket i ends at 2^(i/8) s and contains the times below its end: schema 3 of Prometheus.
//! - An observation is a multiplication, a count of leading zeros, three comparisons and an addition.
//! - Its 2 KB are allocated by the first observation, once, so that the many without observations cost nothing.
//! - Source: B. Rabenstein, "Native Histograms", the specification of Prometheus.

use std::cell::{Cell, OnceCell};

/// What Prometheus calls this many buckets to a power of two: 2^3.
pub(crate) const SCHEMA: i32 = 3;
/// Times up to this are not distinguished, s: 2^-17.
pub(crate) const ZERO_S: f64 = 1.0 / 131_072.0;

/// Times are counted in units of 2^-29 s: a nanosecond in these units, times 2^64, rounded down, so that a power of
/// two belongs to the bucket below it.
const UNIT: u128 = 9_903_520_314_283_042_199;
/// The power of two of units where the buckets begin: 2^-17 s.
const FIRST: usize = 12;
/// The number of powers of two that are divided.
const POWERS: usize = 30;
/// The number of buckets, and before them the undistinguished times.
const BUCKETS: usize = 1 + 8 * POWERS;
/// 2^(j/8) for j from 0 to 7, times 2^63.
const WITHIN: [u64; 8] = [
    1 << 63,
    10_058_158_527_438_640_870,
    10_968_499_650_544_839_023,
    11_961_233_684_655_323_370,
    13_043_817_825_332_782_212,
    14_224_384_202_002_324_189,
    15_511_800_964_685_064_948,
    16_915_738_899_553_466_670,
];

/// The observations of one thread.
#[derive(Debug, Default)]
pub(crate) struct Native(OnceCell<Box<[Cell<u64>]>>);

/// The same at one moment; empty without observations.
pub(crate) type Counts = Box<[u64]>;

impl Native {
    /// Adds a time.
    #[inline]
    pub fn observe(&self, ns: u64) {
        let counts = self.0.get_or_init(|| vec![Cell::new(0); BUCKETS].into());
        if let Some(count) = counts.get(place(ns)) {
            count.set(count.get() + 1);
        }
    }

    /// The observations so far.
    pub fn observed(&self) -> Counts {
        self.0.get().map_or_else(Box::default, |counts| counts.iter().map(Cell::get).collect())
    }
}

/// The bucket of a time; times above all are in the last.
#[inline]
pub(super) fn place(ns: u64) -> usize {
    let units = ((u128::from(ns) * UNIT) >> 64) as u64;
    let zeros = units.leading_zeros() as usize;
    if zeros >= u64::BITS as usize - FIRST {
        return 0;
    }
    let (power, size) = (u64::BITS as usize - 1 - zeros, units << zeros);
    let mut within = if size >= WITHIN[4] { 4 } else { 0 };
    within += if size >= WITHIN[within + 2] { 2 } else { 0 };
    within += usize::from(size >= WITHIN[within + 1]);
    (1 + 8 * (power - FIRST) + within).min(BUCKETS - 1)
}

/// Adds the observations of another thread.
pub(crate) fn add(all: &mut Counts, more: &Counts) {
    if all.is_empty() {
        all.clone_from(more);
    } else {
        all.iter_mut().zip(more).for_each(|(count, more)| *count += more);
    }
}

/// The number of undistinguished times.
pub(crate) fn zeros(counts: &Counts) -> u64 {
    counts.first().copied().unwrap_or_default()
}

/// Runs of non-empty buckets: the Prometheus number of the first, and the counts.
pub(crate) fn runs(counts: &Counts) -> Vec<(i32, Vec<u64>)> {
    let mut runs: Vec<(i32, Vec<u64>)> = Vec::new();
    // The first one ends an eighth above 2^-17 s.
    let numbered = (1 - 8 * 17..).zip(counts.iter().skip(1));
    for (number, count) in numbered.filter(|(_, count)| **count > 0) {
        match runs.last_mut() {
            Some((first, run)) if *first + run.len() as i32 == number => run.push(*count),
            _ => runs.push((number, vec![*count])),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of the bucket at this index, s.
    fn ends_s(at: usize) -> f64 {
        two_to_the((at as f64 - 8.0 * 17.0) / 8.0)
    }

    /// 2^x for x in eighths, by square roots alone.
    fn two_to_the(x: f64) -> f64 {
        let (whole, eighths) = (x.floor(), ((x - x.floor()) * 8.0).round() as i32);
        let root = 2f64.sqrt().sqrt().sqrt();
        (0..eighths).fold(1.0, |all, _| all * root) * 2f64.powi(whole as i32)
    }

    /// Each time is above the end of the bucket before and not above its own.
    #[test]
    fn a_time_is_in_its_bucket() {
        let mut ns = 1.0f64;
        while ns < 4e12 {
            let (at, s) = (place(ns as u64), (ns as u64) as f64 / 1e9);
            // A unit is 2 ns.
            let (least, most) = (if at == 0 { 0.0 } else { ends_s(at - 1) }, ends_s(at));
            assert!(least - 3e-9 <= s && s <= most + 3e-9, "{ns}: {least}..{most}");
            ns *= 1.013;
        }
        for (ns, number) in [(500_000_000, -8), (500_000_010, -7), (1_000_000_000, 0), (8_000_000_000, 24)] {
            let counted = Native::default();
            counted.observe(ns);
            assert_eq!(runs(&counted.observed()), [(number, vec![1])], "{ns}");
        }
        assert_eq!((place(0), place(7_000), place(u64::MAX)), (0, 0, BUCKETS - 1));
    }

    #[test]
    fn what_threads_observed_adds_up_and_stands_in_runs() {
        let (one, other) = (Native::default(), Native::default());
        assert!(one.observed().is_empty(), "what observes nothing has nothing");
        [0, 1_000_000_000, 1_050_000_000, 1_100_000_000, 60_000_000_000]
            .into_iter()
            .for_each(|ns| one.observe(ns));
        other.observe(1_000_000_000);
        let mut all = Counts::default();
        add(&mut all, &one.observed());
        add(&mut all, &other.observed());
        assert_eq!((zeros(&all), runs(&all)), (1, vec![(0, vec![2, 1, 1]), (48, vec![1])]));
    }
}
