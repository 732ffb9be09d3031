//! Numbers that begin in the low bits of an octet (RFC 7541 §5.1).

use super::HpackError;

/// The octets that may follow the prefix: enough for 32 bits.
const CONTINUATION: u32 = 5;

/// Reads the number that begins in the low `prefix` bits of `block[*at]`.
#[inline]
pub(super) fn read_integer(block: &[u8], at: &mut usize, prefix: u32) -> Result<u32, HpackError> {
    let mask = (1u32 << prefix) - 1;
    let first = u32::from(*block.get(*at).ok_or(HpackError::Truncated)?) & mask;
    *at += 1;
    if first < mask { Ok(first) } else { read_rest(block, at, mask) }
}

#[inline(never)]
fn read_rest(block: &[u8], at: &mut usize, mask: u32) -> Result<u32, HpackError> {
    let mut value = u64::from(mask);
    for i in 0..CONTINUATION {
        let octet = *block.get(*at).ok_or(HpackError::Truncated)?;
        *at += 1;
        value += u64::from(octet & 0x7f) << (7 * i);
        if octet & 0x80 == 0 {
            return u32::try_from(value).map_err(|_| HpackError::Integer);
        }
    }
    Err(HpackError::Integer)
}

/// Writes a number behind the high bits of `pattern`, in its low `prefix` bits and what follows.
#[inline]
pub(super) fn write_integer(value: usize, pattern: u8, prefix: u32, out: &mut Vec<u8>) {
    let mask = (1usize << prefix) - 1;
    if value < mask {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(octets: &[u8], prefix: u32) -> Result<(u32, usize), HpackError> {
        let mut at = 0;
        read_integer(octets, &mut at, prefix).map(|value| (value, at))
    }

    #[test]
    fn the_examples_of_the_rfc() {
        // RFC 7541 C.1.
        assert_eq!(read(&[0b1110_1010], 5), Ok((10, 1)));
        assert_eq!(read(&[0b1111_1111, 0b1001_1010, 0b0000_1010], 5), Ok((1337, 3)));
        assert_eq!(read(&[0b0010_1010], 8), Ok((42, 1)));
    }

    #[test]
    fn what_is_written_is_read() {
        for prefix in 4..=7 {
            for value in (0..1000).chain([16_383, 16_384, 65_535, 1 << 28, u32::MAX]) {
                let mut out = Vec::new();
                write_integer(value as usize, 0, prefix, &mut out);
                assert_eq!(read(&out, prefix), Ok((value, out.len())), "{value} in {prefix} bits");
                for n in 0..out.len() {
                    assert_eq!(read(&out[..n], prefix), Err(HpackError::Truncated));
                }
            }
        }
    }

    #[test]
    fn too_large_and_too_long() {
        // 2^32 - 1, and one more.
        assert_eq!(read(&[0x7f, 0x80, 0xff, 0xff, 0xff, 0x0f], 7), Ok((u32::MAX, 6)));
        assert_eq!(read(&[0x7f, 0x81, 0xff, 0xff, 0xff, 0x0f], 7), Err(HpackError::Integer));
        assert_eq!(read(&[0x7f, 0xff, 0xff, 0xff, 0xff, 0x7f], 7), Err(HpackError::Integer));
        // Zeros count as well.
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00], 7), Ok((127, 6)));
        assert_eq!(read(&[0x7f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00], 7), Err(HpackError::Integer));
    }
}
