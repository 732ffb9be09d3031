//! A histogram of durations with relative width 2^-11: quantiles to within 0.05 %, memory that does not grow.

/// Bits of a value that its bucket keeps besides the leading one.
const PRECISION: u32 = 11;
const PER_OCTAVE: usize = 1 << PRECISION;

/// Counts of durations in ns. Below 4096 ns every value has a bucket of its own, above that 2048 per octave.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Vec<u64>,
    total: u64,
    sum: u128,
    min: u64,
    max: u64,
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    let octave = (63 - (ns | PER_OCTAVE as u64).leading_zeros()) - PRECISION;
    octave as usize * PER_OCTAVE + (ns >> octave) as usize
}

/// The samples with which the quantile `q` is known: ten lie beyond it (`docs/spec/language.md#sim-json`), since fewer
/// make it noise.
pub fn samples_needed(q: f64) -> u64 {
    const BEYOND: f64 = 10.0;
    // 1 - 0.9 is a little less than a tenth.
    const ROUNDING: f64 = 1e-9;
    ((BEYOND - ROUNDING) / (1.0 - q)).ceil() as u64
}

/// The least value of a bucket, and how many values it spans.
fn bounds(bucket: usize) -> (u64, u64) {
    let octave = (bucket / PER_OCTAVE).saturating_sub(1);
    (((bucket - octave * PER_OCTAVE) as u64) << octave, 1 << octave)
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram { buckets: Vec::new(), total: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let b = bucket_of(ns);
        match self.buckets.get_mut(b) {
            Some(n) => *n += 1,
            None => self.grow(b),
        }
        self.total += 1;
        self.sum += u128::from(ns);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// Counts the first duration of a bucket beyond the allocated ones.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, bucket: usize) {
        self.buckets.resize((bucket / PER_OCTAVE + 1) * PER_OCTAVE, 0);
        self.buckets[bucket] = 1;
    }

    /// Adds all counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.total += other.total;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The least and the greatest value of each bucket that has any, with their number, ascending.
    pub fn classes(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let filled = self.buckets.iter().enumerate().filter(|(_, n)| **n > 0);
        filled.map(|(bucket, n)| {
            let (low, width) = bounds(bucket);
            (low, low + (width - 1), *n)
        })
    }

    /// All its contents, for storage.
    pub fn counts(&self) -> Counts {
        let filled = self.buckets.iter().enumerate().filter(|(_, n)| **n > 0);
        Counts {
            buckets: filled.map(|(b, n)| (b, *n)).collect(),
            sum: self.sum,
            min: self.min,
            max: self.max,
        }
    }

    /// A histogram with these contents; `None` if no histogram could have them.
    pub fn from_counts(counts: &Counts) -> Option<Histogram> {
        let most = bucket_of(u64::MAX);
        if counts.buckets.iter().any(|(b, n)| *b > most || *n == 0) {
            return None;
        }
        let len = counts.buckets.iter().map(|(b, _)| b / PER_OCTAVE + 1).max().unwrap_or(0) * PER_OCTAVE;
        let mut made = Histogram { buckets: vec![0; len], total: 0, ..Histogram::new() };
        for (bucket, n) in &counts.buckets {
            made.buckets[*bucket] = *n;
            made.total = made.total.checked_add(*n)?;
        }
        (made.sum, made.min, made.max) = (counts.sum, counts.min, counts.max);
        Some(made)
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Their exact sum, ns.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The least, ns; `None` if empty.
    pub fn min(&self) -> Option<u64> {
        (self.total > 0).then_some(self.min)
    }

    /// The greatest, ns; `None` if empty.
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }

    /// The exact mean, ns; `None` if empty.
    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// The quantile `q` (0 to 1), ns, interpolated linearly between order statistics (type 7 of Hyndman and Fan 1996)
    /// to within 0.05 %; `None` where fewer than ten samples lie beyond it, since then it would be noise.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        Some(self.quantile_within(q)?.value)
    }

    /// The value that the share `q` (0 to 1) of all values does not exceed, ns (nearest rank), for any number of
    /// values: for measurements that are complete and not a sample.
    pub fn of_all(&self, q: f64) -> Option<f64> {
        let rank = (q * self.total as f64).ceil() as u64;
        (self.total > 0).then(|| self.order_statistic(rank.max(1) - 1, &mut Place::default()).value)
    }

    /// The same, and its error bound: the samples within a bucket are not distinguished.
    pub fn quantile_within(&self, q: f64) -> Option<BoundedQuantile> {
        self.quantiles_within([q])[0]
    }

    /// Several quantiles, the lower ones first, in one pass over the buckets.
    pub fn quantiles_within<const N: usize>(&self, ascending: [f64; N]) -> [Option<BoundedQuantile>; N] {
        let mut at = Place::default();
        ascending.map(|q| {
            if self.total < samples_needed(q) {
                return None;
            }
            let rank = q * (self.total - 1) as f64;
            let low = rank as u64;
            let part = rank - low as f64;
            let a = self.order_statistic(low, &mut at);
            // The next quantile may begin at the lower of the two again.
            let b = if part > 0.0 { self.order_statistic(low + 1, &mut at.clone()) } else { a };
            Some(BoundedQuantile {
                value: a.value + (b.value - a.value) * part,
                off: a.off + (b.off - a.off) * part,
            })
        })
    }

    /// The values between which the quantile `q` lies with 95 % if samples are independent (binomial ranks: David and
    /// Nagaraja 2003, Order Statistics, 7.1), ns; `None` if empty.
    pub fn rank_bounds(&self, q: f64) -> Option<(f64, f64)> {
        const NORMAL_975: f64 = 1.96;
        let n = self.total as f64;
        let half = NORMAL_975 * (n * q * (1.0 - q)).sqrt();
        let last = self.total.checked_sub(1)?;
        let rank = |r: f64| (r.max(0.0) as u64).min(last);
        let (low, high) = (rank((n * q - half).floor()), rank((n * q + half).ceil()));
        let mut at = Place::default();
        let low = self.order_statistic(low, &mut at).value;
        Some((low, self.order_statistic(high, &mut at).value))
    }

    /// The longest stretch between `low` and `high` in which no sample lies, ns. Nothing is said of where the ten least
    /// and the ten greatest samples lie: they are apart by chance.
    pub fn widest_gap(&self, low: f64, high: f64) -> f64 {
        const EXTREME: u64 = 10;
        let Some(last) = self.total.checked_sub(EXTREME + 1) else { return 0.0 };
        let mut at = Place::default();
        let low = low.max(self.order_statistic(EXTREME.min(last), &mut at).value);
        let high = high.min(self.order_statistic(last.max(EXTREME), &mut Place::default()).value);
        let (from, to) = (bucket_of(low as u64), bucket_of(high.max(0.0) as u64));
        let (mut widest, mut end) = (0.0, low);
        for bucket in (from..=to).filter(|b| self.buckets.get(*b).is_some_and(|n| *n > 0)) {
            let (least, span) = bounds(bucket);
            widest = f64::max(widest, least as f64 - end);
            end = ((least + (span - 1)) as f64).max(low);
        }
        f64::max(widest, high - end)
    }

    /// The k-th least (from 0), its bucket's members spread evenly, between the true extremes. The search starts at
    /// `from` and never goes back.
    fn order_statistic(&self, k: u64, from: &mut Place) -> BoundedQuantile {
        let (min, max) = (self.min as f64, self.max as f64);
        while let Some(&n) = self.buckets.get(from.bucket) {
            if from.below + n > k {
                let (least, span) = bounds(from.bucket);
                let within = if span == 1 { 0.0 } else { ((k - from.below) as f64 + 0.5) / n as f64 };
                let value = (least as f64 + within * span as f64).clamp(min, max);
                let (first, last) = ((least as f64).max(min), ((least + (span - 1)) as f64).min(max));
                return BoundedQuantile { value, off: (value - first).max(last - value).max(0.0) };
            }
            from.below += n;
            from.bucket += 1;
        }
        BoundedQuantile { value: max, off: 0.0 }
    }
}

/// The state of a search: a bucket, and the number counted in those below.
#[derive(Clone, Debug, Default)]
struct Place {
    bucket: usize,
    below: u64,
}

/// The contents of a histogram: non-empty buckets with their counts, the exact sum, the least and the greatest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bucket and count, ascending.
    pub buckets: Vec<(usize, u64)>,
    /// The sum, ns.
    pub sum: u128,
    /// The least, ns.
    pub min: u64,
    /// The greatest, ns.
    pub max: u64,
}

/// A quantile to the resolution of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BoundedQuantile {
    /// Its value.
    pub value: f64,
    /// The bound on its distance from the exact quantile.
    pub off: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn a_quantile_needs_ten_samples_beyond_it() {
        let needed = [0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999].map(samples_needed);
        assert_eq!(needed, [10, 20, 100, 200, 1_000, 10_000, 100_000]);
        assert_eq!((samples_needed(0.985), samples_needed(1.0)), (667, u64::MAX));
        for q in [0.5, 0.9, 0.95, 0.99, 0.999] {
            let mut h = Histogram::new();
            (1..samples_needed(q)).for_each(|ns| h.record(ns));
            assert_eq!(h.quantile(q), None, "{q}");
            h.record(1);
            assert!(h.quantile(q).is_some(), "{q}");
        }
    }

    #[test]
    fn an_empty_one_takes_any_least() {
        let mut h = Histogram::default();
        h.record(7);
        assert_eq!((h.min(), h.max()), (Some(7), Some(7)));
    }

    #[test]
    fn gaps_are_where_no_sample_is() {
        let mut h = Histogram::new();
        for ns in [2_000_000, 4_000_000, 50_000_000, 1_800_000_000] {
            (0..20).for_each(|_| h.record(ns));
        }
        h.record(9_000_000_000);
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-3 * b;
        assert!(near(h.widest_gap(2e6, 50e6), 46e6));
        assert!(near(h.widest_gap(-785e6, 885e6), 835e6), "to the end");
        assert!(near(h.widest_gap(3e6, 4.5e6), 1e6), "from the beginning");
        assert!(h.widest_gap(1_790e6, 20_000e6) < 11e6, "one sample far above the others is chance");
        (0..1_000).for_each(|i| h.record(10_000_000 + i * 1_000));
        assert!(h.widest_gap(10.2e6, 10.8e6) < 20e3, "none among samples that lie close");
        assert_eq!(Histogram::new().widest_gap(0.0, 1e9), 0.0);
    }

    /// Of 1,000 samples the 95th per mille has rank 950 ± 1.96 sqrt(47.5), so 936 to 964.
    #[test]
    fn bounds_have_binomial_ranks() {
        let mut h = Histogram::new();
        (0..1_000).for_each(|ns| h.record(ns));
        assert_eq!(h.rank_bounds(0.95), Some((936.0, 964.0)));
        assert_eq!(h.rank_bounds(0.999), Some((997.0, 999.0)));
        assert_eq!(Histogram::new().rank_bounds(0.5), None);
    }

    #[test]
    fn buckets_and_bounds_agree() {
        let mut last = None;
        for ns in (0..20_000).chain((20..63).flat_map(|e| [(1 << e) - 1, 1 << e, (1 << e) + (1 << (e - 1))]))
        {
            let (least, span) = bounds(bucket_of(ns));
            assert!(least <= ns && ns - least < span, "{ns}: {least} {span}");
            assert!(span == 1 || span as f64 / least as f64 <= 1.0 / 2048.0);
            assert!(last.is_none_or(|l| bucket_of(ns) >= l));
            last = Some(bucket_of(ns));
        }
    }

    #[test]
    fn quantiles_agree_with_sorted_samples() {
        let mut h = Histogram::new();
        let mut all: Vec<u64> =
            (0..50_001u64).map(|i| (-crate::math::ln(Key::new(9).nth(i).unit()) * 1e8) as u64).collect();
        all.iter().for_each(|&x| h.record(x));
        all.sort_unstable();
        for q in [0.0, 0.5, 0.9, 0.95, 0.99, 0.999] {
            let rank = q * (all.len() - 1) as f64;
            let (a, b) = (all[rank as usize] as f64, all[(rank as usize + 1).min(all.len() - 1)] as f64);
            let exact = a + (b - a) * rank.fract();
            let got = h.quantile_within(q).unwrap();
            assert!((got.value - exact).abs() <= 0.001 * exact + 1.0, "{q}: {got:?} {exact}");
            assert!((got.value - exact).abs() <= got.off + 1e-6 * exact, "{q}: {got:?} {exact}");
        }
        assert_eq!(h.mean().unwrap(), all.iter().sum::<u64>() as f64 / all.len() as f64);
    }

    #[test]
    fn of_all_values_something_can_always_be_said() {
        let mut h = Histogram::new();
        assert_eq!(h.of_all(0.99), None);
        (1..=10).for_each(|i| h.record(i));
        assert_eq!([0.0, 0.1, 0.5, 0.91, 1.0].map(|q| h.of_all(q)), [1.0, 1.0, 5.0, 10.0, 10.0].map(Some));
    }

    /// Several quantiles at once equal those computed alone, also if they share a bucket or lie between the same two
    /// samples.
    #[test]
    fn several_quantiles_are_those_of_each() {
        let several = [0.0, 0.1, 0.5, 0.5, 0.500_000_1, 0.9, 0.99, 0.999, 0.9999];
        for n in [0u64, 11, 40, 5_000, 100_001] {
            let mut h = Histogram::new();
            (0..n).for_each(|i| h.record(Key::new(3).nth(i).below(if n == 40 { 5 } else { 1 << 30 })));
            assert_eq!(h.quantiles_within(several), several.map(|q| h.quantile_within(q)), "{n}");
        }
    }

    #[test]
    fn what_a_bucket_hides_is_said() {
        let mut h = Histogram::new();
        (0..100).for_each(|_| h.record(100_000_000));
        let exact = h.quantile_within(0.5).unwrap();
        assert_eq!((exact.value, exact.off), (1e8, 0.0), "all are equal, and known");
        h.record(50_000_000);
        h.record(200_000_000);
        let hidden = h.quantile_within(0.5).unwrap();
        assert!(hidden.off > 0.0 && (hidden.value - 1e8).abs() <= hidden.off, "{hidden:?}");
        assert!(hidden.off < 0.0005 * 1e8, "{hidden:?}");
    }

    #[test]
    fn a_quantile_with_too_few_samples_beyond_is_not_given() {
        let mut h = Histogram::new();
        (0..999).for_each(|i| h.record(i));
        assert!(h.quantile(0.99).is_none());
        h.record(999);
        assert!(h.quantile(0.99).is_some());
        assert!(h.quantile(0.999).is_none());
        assert!(Histogram::new().quantile(0.5).is_none());
    }

    #[test]
    fn merging_is_counting_together() {
        let (mut a, mut b, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for i in 0..5000u64 {
            let x = Key::new(2).nth(i).below(1 << 40);
            if i % 3 == 0 {
                a.record(x)
            } else {
                b.record(x)
            }
            both.record(x);
        }
        a.merge(&b);
        assert_eq!(
            (a.total, a.sum, a.min, a.max, a.quantile(0.5)),
            (both.total, both.sum, both.min, both.max, both.quantile(0.5))
        );
    }

    #[test]
    fn what_was_kept_comes_back() {
        let mut h = Histogram::new();
        assert_eq!(Histogram::from_counts(&h.counts()).unwrap().counts(), h.counts(), "an empty one");
        (0..5000u64).for_each(|i| h.record(Key::new(4).nth(i).below(1 << 40)));
        let again = Histogram::from_counts(&h.counts()).unwrap();
        assert_eq!((again.counts(), again.count()), (h.counts(), h.count()));
        assert_eq!(again.quantile_within(0.99), h.quantile_within(0.99));
        assert!(
            Histogram::from_counts(&Counts { buckets: vec![(usize::MAX, 1)], ..Counts::default() }).is_none()
        );
    }
}
