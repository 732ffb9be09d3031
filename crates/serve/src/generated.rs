//! Generated input for tests: random numbers from a seed, and mutations of a corpus.

/// xorshift64*: the same numbers everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n.max(1)
    }

    /// Changes one to four places: a byte, a bit, a piece that is removed, doubled or moved.
    pub fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            if bytes.is_empty() {
                return;
            }
            let at = self.below(bytes.len());
            let to = (at + 1 + self.below(8)).min(bytes.len());
            match self.below(6) {
                0 => bytes[at] = self.next() as u8,
                1 => bytes[at] ^= 1 << self.below(8),
                2 => drop(bytes.drain(at..to)),
                3 => {
                    let piece = bytes[at..to].to_vec();
                    let elsewhere = self.below(bytes.len());
                    bytes.splice(elsewhere..elsewhere, piece);
                }
                4 => bytes.insert(at, b" \r\n\0:.09\xff"[self.below(9)]),
                _ => bytes.truncate(to),
            }
        }
    }
}

/// The messages of a file, a line of hexadecimal digits each.
pub fn corpus(text: &str) -> Vec<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let line = |line: &str| line.as_bytes().chunks(2).map(|pair| byte(pair).expect("digits")).collect();
    text.lines().map(line).collect()
}
