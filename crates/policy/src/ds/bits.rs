//! A set of targets as one bit each: those that a pick leaves out, those that are eligible.
//!
//! Cost: O(1) to read and to change, n/64 words to search. It grows on request only, never on the path of a request.

/// A set of indices below a length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    len: u32,
    ones: u32,
}

impl Bits {
    /// The empty set of indices below `len`.
    pub fn new(len: u32) -> Bits {
        Bits { words: vec![0; len.div_ceil(64) as usize], len, ones: 0 }
    }

    /// The number of indices that it can hold.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether no index is in it.
    pub fn is_empty(&self) -> bool {
        self.ones == 0
    }

    /// The number of indices in it.
    pub fn ones(&self) -> u32 {
        self.ones
    }

    /// Makes room for indices below `len`; it never shrinks.
    pub fn grow(&mut self, len: u32) {
        if len > self.len {
            self.len = len;
            self.words.resize(len.div_ceil(64) as usize, 0);
        }
    }

    /// Whether the index is in it.
    #[inline]
    pub fn has(&self, index: u32) -> bool {
        self.words.get(index as usize / 64).is_some_and(|w| w >> (index % 64) & 1 == 1)
    }

    /// Adds or removes the index. Returns whether that changed the set.
    #[inline]
    pub fn set(&mut self, index: u32, present: bool) -> bool {
        let Some(word) = self.words.get_mut(index as usize / 64) else { return false };
        let bit = 1u64 << (index % 64);
        let changed = (*word & bit != 0) != present;
        if changed {
            *word ^= bit;
            self.ones = if present { self.ones + 1 } else { self.ones - 1 };
        }
        changed
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.words.iter_mut().for_each(|w| *w = 0);
        self.ones = 0;
    }

    /// The indices in it, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(w, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(w as u32 * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_stats::Key;

    #[test]
    fn agrees_with_a_plain_array() {
        let mut bits = Bits::new(130);
        let mut naive = [false; 130];
        for step in 0..2000u64 {
            let draw = Key::new(1).with(step);
            let (i, on) = (draw.below(130) as u32, draw.nth(1).unit() < 0.5);
            assert_eq!(bits.set(i, on), naive[i as usize] != on);
            naive[i as usize] = on;
            assert_eq!(bits.ones() as usize, naive.iter().filter(|b| **b).count());
            let all: Vec<u32> = (0..130).filter(|&i| naive[i as usize]).collect();
            assert_eq!(bits.iter().collect::<Vec<_>>(), all);
            assert!((0..140).all(|i| bits.has(i) == naive.get(i as usize).copied().unwrap_or(false)));
        }
        bits.grow(200);
        assert!(bits.set(199, true) && bits.has(199));
        bits.clear();
        assert!(bits.is_empty() && bits.len() == 200 && !bits.set(999, true));
    }
}
