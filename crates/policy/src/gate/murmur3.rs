//! MurmurHash3 x86_32: a fast hash of short texts with a seed, not safe against an adversary.
//!
//! - Source: Austin Appleby, `MurmurHash3.cpp` (public domain); Guava's `murmur3_32` of ASCII text has the same values.
//! - Not the crate `murmur3`: it reads from `std::io::Read`, and returns I/O errors where there is no I/O.

/// The hash of bytes with a seed.
pub fn murmur3_x86_32(bytes: &[u8], seed: u32) -> u32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mixed = blocks.iter().fold(seed, |hash, block| {
        (hash ^ scramble(u32::from_le_bytes(*block)))
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64)
    });
    let last = tail.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    finish(mixed ^ scramble(last) ^ bytes.len() as u32)
}

fn scramble(word: u32) -> u32 {
    word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593)
}

/// Makes each bit of the hash depend on all bits.
fn finish(mut hash: u32) -> u32 {
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors published with other implementations (SMHasher; the article on MurmurHash in Wikipedia).
    #[test]
    fn published_vectors() {
        let vectors: [(&str, u32, u32); 12] = [
            ("", 0, 0),
            ("", 1, 0x514e_28b7),
            ("", 0xffff_ffff, 0x81f1_6f39),
            ("test", 0, 0xba6b_d213),
            ("test", 0x9747_b28c, 0x704b_81dc),
            ("Hello, world!", 0, 0xc036_3e43),
            ("Hello, world!", 0x9747_b28c, 0x2488_4cba),
            ("The quick brown fox jumps over the lazy dog", 0, 0x2e4f_f723),
            ("The quick brown fox jumps over the lazy dog", 0x9747_b28c, 0x2fa8_26cd),
            ("a", 0x9747_b28c, 0x7fa0_9ea6),
            ("aa", 0x9747_b28c, 0x5d21_1726),
            ("aaa", 0x9747_b28c, 0x283e_0130),
        ];
        for (text, seed, hash) in vectors {
            assert_eq!(murmur3_x86_32(text.as_bytes(), seed), hash, "{text:?} {seed:x}");
        }
    }
}
