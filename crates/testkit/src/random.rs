//! Random numbers and mutations from a seed: the same everywhere, so that a seed in a message reproduces a failure.

/// xorshift64*.
pub struct Random(u64);

/// Bytes that mean something to a reader of messages.
const PIECES: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b" ",
    b"\t",
    b":",
    b",",
    b";",
    b".",
    b"\r\n\r\n",
    b"0\r\n\r\n",
    b"0",
    b"5",
    b"9",
    b"a",
    b"_",
    b"-",
    b"\xff",
    b"%",
    b"#",
    b"\"",
];

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 33) as usize % n.max(1)
    }

    /// True in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of some values.
    ///
    /// # Panics
    /// If there are none.
    pub fn choose<'a, T: ?Sized>(&mut self, values: &[&'a T]) -> &'a T {
        values[self.below(values.len())]
    }

    /// Changes up to `most` places: a byte or a bit is replaced, a piece is removed, repeated or inserted, the end is
    /// cut off.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>, most: usize) {
        for _ in 0..self.below(most + 1) {
            let start = self.below(bytes.len() + 1);
            let end = (start + 1 + self.below(12)).min(bytes.len());
            match self.below(7) {
                0 if start < end => drop(bytes.drain(start..end)),
                1 if start < end => drop(bytes.remove(start)),
                2 if start < end => bytes[start] = self.bits() as u8,
                3 if start < end => bytes[start] ^= 1 << self.below(8),
                4 => {
                    let piece = bytes[start..end].to_vec();
                    let target = self.below(bytes.len() + 1);
                    bytes.splice(target..target, piece);
                }
                5 if self.percent(20) => bytes.truncate(end),
                _ => drop(bytes.splice(start..start, self.choose(PIECES).iter().copied())),
            }
        }
    }
}
