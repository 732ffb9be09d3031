//! How keys and targets become numbers: the same in every loop, process, version and world, for ever.
//!
//! A key's hash is 64 bits. The low half is the CRC-32 that nginx's `hash ... consistent` uses, so that
//! `lb.ring_hash` agrees with it key by key; the high half is FNV-1a through a finalizer, and [`spread`] mixes both
//! for users that divide (Maglev's table, `split`). A simulated key that is a number stands for its decimal digits.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The hash of a key.
pub fn hash(key: &[u8]) -> u64 {
    spread(fnv1a(key)) & !0xffff_ffff | u64::from(crc32(key))
}

/// The hash of a key that is a number: that of its decimal digits.
pub fn hash_number(mut key: u64) -> u64 {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (key % 10) as u8;
        key /= 10;
        if key == 0 {
            return hash(&digits[at..]);
        }
    }
}

/// Mixes a hash so that all bits depend on all bits (MurmurHash3's 64-bit finalizer, a bijection).
#[inline]
pub fn spread(hash: u64) -> u64 {
    let mut h = hash;
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo).
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// CRC-32 (IEEE 802.3), as in zlib and nginx.
pub fn crc32(bytes: &[u8]) -> u32 {
    !crc32_update(!0, bytes)
}

/// The register of a CRC-32 after more bytes: starts as all ones, and is inverted at the end.
pub fn crc32_update(register: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(register, |r, b| (r >> 8) ^ CRC_TABLE[((r ^ u32::from(*b)) & 0xff) as usize])
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let (mut r, mut bit) = (i as u32, 0);
        while bit < 8 {
            r = if r & 1 == 1 { 0xedb8_8320 ^ (r >> 1) } else { r >> 1 };
            bit += 1;
        }
        table[i] = r;
        i += 1;
    }
    table
};

/// The names by which targets are hashed: an address, else a server's name; the i-th repeat (from 1) gets `#i`.
pub fn distinct(names: &[impl AsRef<str>]) -> Vec<String> {
    let mut taken = TakenNames::default();
    names.iter().map(|name| taken.take(name.as_ref())).collect()
}

/// The names that targets have, so that those of others differ from them.
#[derive(Debug, Default)]
pub struct TakenNames<'a> {
    taken: BTreeSet<Cow<'a, str>>,
    /// By name, the number of its last repeat: lower ones are taken.
    repeats: BTreeMap<String, u64>,
}

impl<'a> TakenNames<'a> {
    /// These are taken.
    pub fn new(names: impl Iterator<Item = &'a str>) -> TakenNames<'a> {
        TakenNames { taken: names.map(Cow::Borrowed).collect(), repeats: BTreeMap::new() }
    }

    /// Takes a name for one more target: the name itself, or the first of its repeats that is free.
    pub fn take(&mut self, name: &str) -> String {
        let mut own = name.to_owned();
        if self.taken.contains(name) {
            let last = self.repeats.entry(own).or_default();
            // A name that looks like a repeat of another is skipped: it came first.
            own = loop {
                *last += 1;
                let own = format!("{name}#{last}");
                if !self.taken.contains(&*own) {
                    break own;
                }
            };
        }
        self.taken.insert(Cow::Owned(own.clone()));
        own
    }

    /// Frees the name of a removed target.
    pub fn free(&mut self, name: &str) {
        self.taken.remove(name);
        self.repeats.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of CRC-32, FNV's own vectors, and ours: a change would move every user of a cache to another
    /// target.
    #[test]
    fn values_are_pinned() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(hash(b"user-0"), 891_071_719_683_487_362);
        assert_eq!(hash_number(0), hash(b"0"));
        assert_eq!(hash_number(u64::MAX), hash(b"18446744073709551615"));
    }

    /// Thousandths of the range of the spread hash of consecutive keys are hit evenly.
    #[test]
    fn consecutive_keys_are_spread() {
        let mut cells = vec![0f64; 1000];
        for i in 0..100_000 {
            cells[((u128::from(spread(hash_number(i))) * 1000) >> 64) as usize] += 1.0;
        }
        let chi: f64 = cells.iter().map(|c| (c - 100.0) * (c - 100.0) / 100.0).sum();
        assert!((chi - 999.0).abs() < 5.0 * (2.0f64 * 999.0).sqrt(), "{chi}");
    }

    #[test]
    fn repeated_names_are_told_apart() {
        assert_eq!(distinct(&["a", "b", "a", "a"]), ["a", "b", "a#1", "a#2"]);
        assert_eq!(distinct(&["a", "a#1", "a", "a"]), ["a", "a#1", "a#2", "a#3"]);
        let mut taken = TakenNames::new(["a", "b", "a#2"].into_iter());
        assert_eq!(["a", "c", "a", "a"].map(|name| taken.take(name)), ["a#1", "c", "a#3", "a#4"]);
        taken.free("a#1");
        assert_eq!(["a", "a"].map(|name| taken.take(name)), ["a#1", "a#5"]);
        taken.free("a");
        assert_eq!(taken.take("a"), "a");
    }
}
