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
    /// An empty one.
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

    /// Counts the first duration of a bucket beyond those that there are.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, bucket: usize) {
        self.buckets.resize((bucket / PER_OCTAVE + 1) * PER_OCTAVE, 0);
        self.buckets[bucket] = 1;
    }

    /// Adds all that another one counted.
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

    /// The same, and how far off it may be: the samples of a bucket are not told apart.
    pub fn quantile_within(&self, q: f64) -> Option<Within> {
        if (self.total as f64) * (1.0 - q) < 10.0 - 1e-9 {
            return None;
        }
        let rank = q * (self.total - 1) as f64;
        let low = rank as u64;
        let part = rank - low as f64;
        let a = self.order_statistic(low);
        let b = if part > 0.0 { self.order_statistic(low + 1) } else { a };
        Some(Within { value: a.value + (b.value - a.value) * part, off: a.off + (b.off - a.off) * part })
    }

    /// The k-th least (from 0), its bucket's members spread evenly, between the true extremes.
    fn order_statistic(&self, k: u64) -> Within {
        let (min, max) = (self.min as f64, self.max as f64);
        let mut below = 0;
        for (b, &n) in self.buckets.iter().enumerate() {
            if below + n > k {
                let (least, span) = bounds(b);
                let within = if span == 1 { 0.0 } else { ((k - below) as f64 + 0.5) / n as f64 };
                let value = (least as f64 + within * span as f64).clamp(min, max);
                let (first, last) = ((least as f64).max(min), ((least + (span - 1)) as f64).min(max));
                return Within { value, off: (value - first).max(last - value).max(0.0) };
            }
            below += n;
        }
        Within { value: max, off: 0.0 }
    }
}

/// A quantile as a histogram knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Within {
    /// Its value.
    pub value: f64,
    /// The exact one is at most so far away.
    pub off: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn an_empty_one_takes_any_least() {
        let mut h = Histogram::default();
        h.record(7);
        assert_eq!((h.min(), h.max()), (Some(7), Some(7)));
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
}
