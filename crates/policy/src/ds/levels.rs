//! Targets sorted by their number of requests in flight: one bitmap per level, so the least loaded is found in
//! constant time for any number of targets.
//!
//! Idea: a target at level c has c requests in flight; bit i of level c's bitmap is set if target i is there. The
//! least non-empty level is kept, so a pick is a choice among the set bits of one bitmap and a count changes two
//! bits.
//! Cost: O(1) for random ties at any size (trials on the bitmap, then selection by blocks of 4,096), a scan of at most
//! n/64 words otherwise. Measured equal to an array partitioned by count at 250 targets, faster at 250,000
//! (`docs/spec/background.md#counts-by-level`). State per target: a count of a byte, one bit per level in use.

use weir_stats::Key;

const BLOCK_WORDS: usize = 64;
/// Draws that may miss the least level before it is searched.
const TRIALS: u64 = 12;

/// The value in [`Levels::narrow`] of a target that is absent, or has more in flight than fits a byte.
const APART: u8 = u8::MAX;

/// In-flight counts of the targets 0..n of one balancer (or of one class of equal weight).
#[derive(Clone, Debug, Default)]
pub struct Levels {
    /// Counts of targets that are present, up to 254; [`APART`]: see `wide`. A byte each, so that even 250,000 stay
    /// in the cache, and one read gives everything that a change of a count must know.
    narrow: Vec<u8>,
    words: usize,
    bits: Vec<u64>,
    sizes: Vec<u32>,
    least: usize,
    /// Members per block of 64 words and level; empty if a level is a single block.
    blocks: Vec<u32>,
    /// Counts and presence of targets marked [`APART`]; empty until there is one, then as long as `narrow`.
    apart: Vec<(u32, bool)>,
    /// The number of present targets.
    open: u32,
}

impl Levels {
    /// All targets at level 0. `present[i]` is false for one that is never picked.
    pub fn new(present: Vec<bool>) -> Levels {
        let n = present.len();
        let mut levels = Levels { narrow: vec![0; n], words: n.div_ceil(64), ..Levels::default() };
        levels.add_level();
        for (i, present) in present.into_iter().enumerate() {
            if present {
                levels.put(i, 0);
            } else {
                levels.set(i, 0, false);
            }
        }
        levels
    }

    fn blocks_per_level(&self) -> usize {
        if self.words > BLOCK_WORDS { self.words.div_ceil(BLOCK_WORDS) } else { 0 }
    }

    fn add_level(&mut self) {
        self.sizes.push(0);
        self.bits.resize(self.sizes.len() * self.words, 0);
        self.blocks.resize(self.sizes.len() * self.blocks_per_level(), 0);
    }

    fn put(&mut self, index: usize, level: usize) {
        self.bits[level * self.words + index / 64] |= 1 << (index % 64);
        self.sizes[level] += 1;
        self.open += 1;
        if !self.blocks.is_empty() {
            let per = self.blocks_per_level();
            self.blocks[level * per + index / (64 * BLOCK_WORDS)] += 1;
        }
    }

    fn take(&mut self, index: usize, level: usize) {
        self.bits[level * self.words + index / 64] &= !(1 << (index % 64));
        self.sizes[level] -= 1;
        self.open -= 1;
        if !self.blocks.is_empty() {
            let per = self.blocks_per_level();
            self.blocks[level * per + index / (64 * BLOCK_WORDS)] -= 1;
        }
    }

    /// The bits and blocks of a target that moves from one level to another.
    #[inline(always)]
    fn shift(&mut self, index: usize, from: usize, to: usize) {
        let (word, bit) = (index / 64, 1 << (index % 64));
        self.bits[from * self.words + word] &= !bit;
        self.bits[to * self.words + word] |= bit;
        if !self.blocks.is_empty() {
            self.shift_blocks(word / BLOCK_WORDS, from, to);
        }
    }

    /// Out of line, so that the rest is inlined.
    #[inline(never)]
    fn shift_blocks(&mut self, block: usize, from: usize, to: usize) {
        let per = self.blocks_per_level();
        self.blocks[from * per + block] -= 1;
        self.blocks[to * per + block] += 1;
    }

    /// Requests in flight at a target.
    #[inline]
    pub fn count(&self, index: u32) -> u32 {
        match self.narrow[index as usize] {
            APART => self.apart[index as usize].0,
            count => u32::from(count),
        }
    }

    /// Stores a target's count and presence.
    fn set(&mut self, index: usize, count: u32, present: bool) {
        if present && count < u32::from(APART) {
            self.narrow[index] = count as u8;
        } else {
            self.apart.resize(self.narrow.len(), (0, false));
            self.apart[index] = (count, present);
            self.narrow[index] = APART;
        }
    }

    /// Whether no target is present.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// The least level, and how many targets are at it; `None` if no target is present.
    #[inline]
    pub fn least(&self) -> Option<(u32, u32)> {
        let size = *self.sizes.get(self.least)?;
        (size > 0).then_some((self.least as u32, size))
    }

    /// Adds a request in flight at a target.
    #[inline(always)]
    pub fn up(&mut self, index: u32) {
        let i = index as usize;
        let count = self.narrow[i];
        let level = usize::from(count);
        if count >= APART - 1 || level + 1 >= self.sizes.len() {
            return self.up_apart(i);
        }
        self.narrow[i] = count + 1;
        self.shift(i, level, level + 1);
        self.sizes[level + 1] += 1;
        let left = &mut self.sizes[level];
        *left -= 1;
        if *left == 0 && level == self.least {
            // The moved target is at the next level, so that is not empty.
            self.least = level + 1;
        }
    }

    /// Removes one. A target with none in flight is left as it is: the caller miscounted, which its own checks
    /// report.
    #[inline(always)]
    pub fn down(&mut self, index: u32) {
        let i = index as usize;
        let count = self.narrow[i];
        if count == 0 || count == APART {
            return self.down_apart(i);
        }
        let level = usize::from(count);
        self.narrow[i] = count - 1;
        self.shift(i, level, level - 1);
        self.sizes[level] -= 1;
        self.sizes[level - 1] += 1;
        self.least = self.least.min(level - 1);
    }

    /// As [`Levels::up`], for a target that is marked [`APART`] or a level that does not exist yet.
    #[cold]
    #[inline(never)]
    fn up_apart(&mut self, i: usize) {
        let (count, present) = (self.count(i as u32), self.is_present(i as u32));
        if present {
            let level = count as usize;
            if level + 1 == self.sizes.len() {
                self.add_level();
            }
            self.shift(i, level, level + 1);
            self.sizes[level] -= 1;
            self.sizes[level + 1] += 1;
            if self.sizes[self.least] == 0 {
                self.least += 1;
            }
        }
        self.set(i, count + 1, present);
    }

    /// As [`Levels::down`], for a target that is marked [`APART`].
    #[cold]
    #[inline(never)]
    fn down_apart(&mut self, i: usize) {
        let (count, present) = (self.count(i as u32), self.is_present(i as u32));
        debug_assert!(count > 0, "a target with nothing in flight released a request");
        if count == 0 {
            return;
        }
        if present {
            let level = count as usize;
            self.shift(i, level, level - 1);
            self.sizes[level] -= 1;
            self.sizes[level - 1] += 1;
            self.least = self.least.min(level - 1);
        }
        self.set(i, count - 1, present);
    }

    /// Whether a target can be chosen.
    pub fn is_present(&self, index: u32) -> bool {
        self.narrow[index as usize] != APART || self.apart[index as usize].1
    }

    /// Removes a target from the choice, or returns it; its count continues.
    pub fn set_present(&mut self, index: u32, present: bool) {
        let i = index as usize;
        if self.is_present(index) == present {
            return;
        }
        let count = self.count(index);
        let level = count as usize;
        while self.sizes.len() <= level {
            self.add_level();
        }
        if present {
            self.put(i, level)
        } else {
            self.take(i, level)
        }
        self.set(i, count, present);
        self.least = self.sizes.iter().position(|&s| s > 0).unwrap_or(0);
    }

    /// Makes room for targets up to `n`, absent and with nothing in flight. Not for the path of a request.
    pub fn grow(&mut self, n: u32) {
        let n = n as usize;
        if n <= self.narrow.len() {
            return;
        }
        self.narrow.resize(n, APART);
        self.apart.resize(n, (0, false));
        let (before, words) = (self.words, n.div_ceil(64));
        if words == before {
            return;
        }
        let mut bits = vec![0; self.sizes.len() * words];
        for (level, row) in bits.chunks_exact_mut(words).enumerate() {
            row[..before].copy_from_slice(&self.bits[level * before..(level + 1) * before]);
        }
        (self.bits, self.words) = (bits, words);
        self.count_blocks();
    }

    /// Counts the members of all blocks, whose number has changed.
    fn count_blocks(&mut self) {
        self.blocks.clear();
        if self.blocks_per_level() > 0 {
            let rows = self.bits.chunks_exact(self.words);
            let blocks = rows.flat_map(|row| row.chunks(BLOCK_WORDS));
            self.blocks.extend(blocks.map(|words| words.iter().map(|word| word.count_ones()).sum::<u32>()));
        }
    }

    /// Requests in flight at each target.
    pub fn counts(&self) -> Vec<u32> {
        (0..self.narrow.len() as u32).map(|t| self.count(t)).collect()
    }

    /// Sets a target's count, for example from another set of levels.
    pub fn assign(&mut self, index: u32, count: u32) {
        let present = self.is_present(index);
        self.set_present(index, false);
        self.set(index as usize, count, false);
        self.set_present(index, present);
    }

    /// A target at the least level, chosen uniformly; the level must not be empty.
    #[inline]
    pub fn pick_random(&self, draw: Key) -> u32 {
        let n = self.narrow.len() as u64;
        let level = self.bits.get(self.least * self.words..).unwrap_or(&[]);
        for trial in 0..TRIALS {
            let i = draw.nth(trial).below(n) as usize;
            if level[i / 64] >> (i % 64) & 1 == 1 {
                return i as u32;
            }
        }
        self.select(draw.nth(TRIALS).below(u64::from(self.sizes[self.least])) as u32)
    }

    /// The k-th target (from 0, by index) of the least level.
    pub fn select(&self, mut k: u32) -> u32 {
        let mut word = 0;
        let per = self.blocks_per_level();
        for b in 0..per {
            let size = self.blocks[self.least * per + b];
            if k < size {
                break;
            }
            k -= size;
            word += BLOCK_WORDS;
        }
        let level = &self.bits[self.least * self.words..][..self.words];
        while let Some(&bits) = level.get(word) {
            // If few are left most words are empty, and counting ones takes a dozen instructions.
            if bits == 0 {
                word += 1;
                continue;
            }
            let ones = bits.count_ones();
            if k < ones {
                return word as u32 * 64 + select_in_word(bits, k);
            }
            k -= ones;
            word += 1;
        }
        unreachable!("the level has fewer targets than its size says")
    }

    /// The targets of the least level, in order.
    pub fn least_members(&self) -> impl Iterator<Item = u32> + '_ {
        let level = self.bits.get(self.least * self.words..).unwrap_or(&[]);
        let words = (0..).zip(level.iter().take(self.words));
        words.flat_map(|(word, &bits): (u32, &u64)| {
            let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|b| *b != 0);
            let each = std::iter::successors(Some(bits).filter(|b| *b != 0), rest);
            each.map(move |bits| word * 64 + bits.trailing_zeros())
        })
    }

    /// The first target of the least level at or after `from`, cyclically; the level must not be empty.
    pub fn next_from(&self, from: u32) -> u32 {
        let level = &self.bits[self.least * self.words..][..self.words];
        let (start, bit) = (from as usize / 64, from % 64);
        let masked = |w: usize| if w == start { level[w] & (!0 << bit) } else { level[w] };
        let after = (start..self.words).find(|&w| masked(w) != 0).map(|w| (w, masked(w)));
        let found = after.or_else(|| (0..self.words).find(|&w| level[w] != 0).map(|w| (w, level[w])));
        found.map_or(0, |(w, bits)| w as u32 * 64 + bits.trailing_zeros())
    }
}

/// The position of the k-th set bit (from 0).
fn select_in_word(word: u64, mut k: u32) -> u32 {
    let mut at = 0;
    for width in [32, 16, 8, 4, 2, 1] {
        let ones = (word >> at & ((1 << width) - 1)).count_ones();
        if k >= ones {
            k -= ones;
            at += width;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn select_in_word_finds_each_bit() {
        let word = 0x8421_0000_ffff_0103;
        let set: Vec<u32> = (0..64).filter(|b| word >> b & 1 == 1).collect();
        for (k, &at) in set.iter().enumerate() {
            assert_eq!(select_in_word(word, k as u32), at);
        }
    }

    /// Against a plain array of counts, over random moves, at sizes with and without blocks.
    #[test]
    fn agrees_with_a_plain_array() {
        for n in [1usize, 3, 64, 250, 5000] {
            let mut levels = Levels::new(vec![true; n]);
            let mut naive = vec![0u32; n];
            let mut present = vec![true; n];
            for step in 0..4000u64 {
                let draw = Key::new(n as u64).with(step);
                let t = draw.nth(50).below(n as u64) as usize;
                if draw.nth(53).unit() < 0.01 {
                    naive[t] = draw.nth(54).below(400) as u32;
                    levels.assign(t as u32, naive[t]);
                }
                match draw.nth(51).below(10) {
                    0 if n > 1 => {
                        present[t] = !present[t];
                        levels.set_present(t as u32, present[t]);
                    }
                    1..=4 if naive[t] > 0 => {
                        naive[t] -= 1;
                        levels.down(t as u32);
                    }
                    _ => {
                        naive[t] += 1;
                        levels.up(t as u32);
                    }
                }
                let least = (0..n).filter(|&i| present[i]).map(|i| naive[i]).min();
                let Some(least) = least else {
                    assert_eq!(levels.least(), None);
                    continue;
                };
                let tied: Vec<u32> =
                    (0..n as u32).filter(|&i| present[i as usize] && naive[i as usize] == least).collect();
                assert_eq!(levels.least(), Some((least, tied.len() as u32)));
                assert_eq!(levels.least_members().collect::<Vec<_>>(), tied);
                assert!(tied.contains(&levels.pick_random(draw)));
                let k = draw.nth(52).below(tied.len() as u64) as usize;
                assert_eq!(levels.select(k as u32), tied[k]);
                let next = tied.iter().copied().find(|&i| i >= t as u32).unwrap_or(tied[0]);
                assert_eq!(levels.next_from(t as u32), next);
            }
        }
    }

    #[test]
    fn growing_keeps_the_counts() {
        let mut levels = Levels::new(vec![true, false]);
        (0..300).for_each(|_| levels.up(0));
        levels.up(1);
        levels.grow(70);
        assert_eq!((levels.count(0), levels.count(1), levels.count(69)), (300, 1, 0));
        assert_eq!(levels.least(), Some((300, 1)));
        levels.set_present(69, true);
        assert_eq!((levels.least(), levels.select(0)), (Some((0, 1)), 69));
    }

    /// Also where blocks come to be counted, and with targets that are absent.
    #[test]
    fn grown_levels_are_those_that_were_large_from_the_start() {
        let present = |t: u32| t % 7 != 3;
        let count = |t: u32| t % 5 + if t == 11 { 300 } else { 0 };
        let filled = |n: u32, from: u32| {
            let mut levels = Levels::new((0..n).map(|t| t < from && present(t)).collect());
            (0..from).for_each(|t| levels.assign(t, count(t)));
            levels
        };
        let mut levels = filled(100, 100);
        for (from, n) in [(100, 101), (101, 4_000), (4_000, 5_000), (5_000, 9_000)] {
            levels.grow(n);
            let large = filled(n, from);
            assert_eq!((levels.counts(), levels.least()), (large.counts(), large.least()));
            let (_, tied) = large.least().expect("some are present");
            assert!((0..tied).all(|k| levels.select(k) == large.select(k)));
            assert_eq!((levels.open, levels.words), (large.open, large.words));
            assert!(large.bits.iter().eq(levels.bits.iter().take(large.bits.len())));
            assert!(large.blocks.iter().eq(levels.blocks.iter().take(large.blocks.len())));
            for t in from..n {
                levels.set_present(t, present(t));
                levels.assign(t, count(t));
            }
        }
    }

    /// Counts beyond what a byte holds, and back.
    #[test]
    fn long_lines_are_counted_too() {
        let mut levels = Levels::new(vec![true; 2]);
        for k in 0..1000 {
            assert_eq!(levels.count(0), k);
            levels.up(0);
        }
        assert_eq!(levels.least(), Some((0, 1)));
        for k in (0..1000).rev() {
            levels.down(0);
            assert_eq!(levels.count(0), k);
        }
        assert_eq!(levels.least(), Some((0, 2)));
    }

    /// A rare level of a large set is chosen from uniformly too, though the trials miss it.
    #[test]
    fn random_ties_are_uniform_even_where_rare() {
        let mut levels = Levels::new(vec![true; 10_000]);
        for i in 0..10_000 {
            if i % 2500 != 7 {
                levels.up(i);
            }
        }
        let mut seen = std::collections::BTreeMap::new();
        for i in 0..40_000 {
            *seen.entry(levels.pick_random(Key::new(1).with(i))).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 4);
        assert!(seen.values().all(|&c: &i32| (9_500..10_500).contains(&c)), "{seen:?}");
    }
}
