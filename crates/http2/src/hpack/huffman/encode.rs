//! Encoding: codes are gathered in 64 bits and written four bytes at a time.

use super::code::{CANON, LENGTHS};

/// The bytes of the encoded string.
pub(in crate::hpack) fn encoded_len(string: &[u8]) -> usize {
    let bits: usize = string.iter().map(|&b| usize::from(LENGTHS[usize::from(b)])).sum();
    bits.div_ceil(8)
}

/// Appends the encoded string.
pub(in crate::hpack) fn encode(string: &[u8], out: &mut Vec<u8>) {
    let (mut word, mut bits) = (0u64, 0);
    for &b in string {
        let length = u32::from(LENGTHS[usize::from(b)]);
        word = word << length | u64::from(CANON.codes[usize::from(b)]);
        bits += length;
        if bits >= 32 {
            bits -= 32;
            out.extend_from_slice(&((word >> bits) as u32).to_be_bytes());
        }
    }
    if bits > 0 {
        // The padding is ones.
        let last = ((word << (32 - bits)) as u32 | u32::MAX >> bits).to_be_bytes();
        out.extend_from_slice(&last[..bits.div_ceil(8) as usize]);
    }
}
