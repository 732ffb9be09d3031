//! Shares: one of several nodes, by draw or by key.
//!
//! - Idea: a share of the requests takes another node; with a key, always those of the same clients.
//! - State: none. Cost: O(log n). Formula: the number from 0 to 1 made of the draw or the key's hash, looked up in
//!   the cumulated shares; a key moves only if its share ends, so a growing share keeps its clients.
//! - In the language: `split([(weight, node), ...], key=None)`.

/// Cumulated shares.
#[derive(Clone, Debug)]
pub struct Split {
    upto: Vec<f64>,
}

impl Split {
    /// Of weights that are not negative and not all 0.
    pub fn new(weights: &[f64]) -> Split {
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let cumulate = |w: &f64| {
            sum += w / total;
            sum
        };
        let mut upto: Vec<f64> = weights.iter().map(cumulate).collect();
        // The remainder of rounding belongs to the last node with a share.
        if let Some(last) = weights.iter().rposition(|w| *w > 0.0) {
            upto[last..].fill(f64::INFINITY);
        }
        Split { upto }
    }

    /// The node for these bits, all of which must be mixed (a draw's, or [`crate::key::spread`] of a hash).
    #[inline]
    pub fn pick(&self, bits: u64) -> u32 {
        // 53 bits, as a number from 0 to 1.
        let at = (bits >> 11) as f64 / (1u64 << 53) as f64;
        self.upto.partition_point(|upto| *upto <= at) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stats::Key;

    #[test]
    fn shares_are_as_asked_for() {
        let split = Split::new(&[3.0, 0.0, 1.0, 0.0]);
        let mut counts = [0u32; 4];
        (0..40_000u64).for_each(|i| counts[split.pick(Key::new(1).with(i).bits()) as usize] += 1);
        // Four standard errors.
        assert!((f64::from(counts[0]) - 30_000.0).abs() < 4.0 * 86.6 && counts[1] == 0 && counts[3] == 0);
        assert_eq!((split.pick(0), split.pick(u64::MAX)), (0, 2));
    }

    #[test]
    fn a_growing_share_keeps_its_keys() {
        let (small, large) = (Split::new(&[1.0, 9.0]), Split::new(&[2.0, 8.0]));
        let keys = (0..1000u64).map(|i| crate::key::spread(crate::key::hash_number(i)));
        assert!(keys.filter(|k| small.pick(*k) == 0).all(|k| large.pick(k) == 0));
    }
}
