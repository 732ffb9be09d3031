//! Bytes that are looked for eight at a time: where values and lines end.

const ONES: u64 = 0x0101_0101_0101_0101;

/// Marks the high bit of the lowest byte of `x` that is zero. Of the bytes above it some may be marked wrongly.
fn zeros(x: u64) -> u64 {
    x.wrapping_sub(ONES) & !x & (ONES << 7)
}

/// The first byte below 0x20, or 0x7f.
pub(crate) fn control(bytes: &[u8]) -> Option<usize> {
    let below = |x: u64| x.wrapping_sub(ONES * 0x20) & !x & (ONES << 7);
    first(bytes, |x| below(x) | zeros(x ^ (ONES * 0x7f)), |b| b < 0x20 || b == 0x7f)
}

/// The first such byte.
pub(crate) fn find(bytes: &[u8], byte: u8) -> Option<usize> {
    first(bytes, |x| zeros(x ^ (ONES * u64::from(byte))), |b| b == byte)
}

/// The first byte that is marked, eight at a time; the last few one by one.
fn first(bytes: &[u8], eight: impl Fn(u64) -> u64, one: impl Fn(u8) -> bool) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = bytes[at..].first_chunk::<8>() {
        let marked = eight(u64::from_le_bytes(*word));
        if marked != 0 {
            return Some(at + marked.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    bytes[at..].iter().position(|&b| one(b)).map(|i| at + i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_found_at_every_place() {
        for b in 0..=255u8 {
            for fill in [b' ', b'~', 0x80, 0xff] {
                for at in 0..20 {
                    let mut bytes = [fill; 24];
                    bytes[at] = b;
                    bytes[22] = 0x7f;
                    let expected = if b < 0x20 || b == 0x7f { at } else { 22 };
                    assert_eq!(control(&bytes), Some(expected), "{b:#x} at {at} in {fill:#x}");
                }
            }
        }
        assert_eq!(control(b"abcdefghij"), None);
        assert_eq!(
            (find(b"0123456789:", b':'), find(b"01:3456789:", b':'), find(b"", b':')),
            (Some(10), Some(2), None)
        );
    }
}
