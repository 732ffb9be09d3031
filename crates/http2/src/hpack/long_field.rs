//! Blocks that come in parts, since they are too long to be held: of each part the fields that are whole are decoded, and
//! the rest waits for the next part. A field that is too long for that is read past, string by string; it is larger than
//! the table, which it empties if it is to be indexed (RFC 7541 §4.4).

use super::integer::read_integer;
use super::{Decoder, Field, HpackError};

/// What may be held of a field that is not whole, at least.
const HELD: usize = 16 * 1024;

/// A field that is read past. Its strings are not looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongField {
    /// Octets that follow of the string that has begun.
    left: u32,
    /// Strings that follow it: name and value.
    strings: u8,
    is_indexed: bool,
}

impl Decoder {
    /// Decodes the fields of a part of a block that are whole; returns how many of its octets were read. The next part
    /// begins with the others. `is_first`: the block begins with it.
    pub(crate) fn decode_part(
        &mut self,
        part: &[u8],
        is_first: bool,
        scratch: &mut Vec<u8>,
        mut take: impl FnMut(Field<'_>),
    ) -> Result<usize, HpackError> {
        let mut begin = if is_first { self.begin(part)? } else { 0 };
        self.read_past(part, &mut begin)?;
        while self.long.is_none()
            && let Some(&first) = part.get(begin)
        {
            let mut at = begin;
            match self.decode_field(first, part, &mut at, scratch, &mut take) {
                Ok(()) => begin = at,
                Err(HpackError::Truncated) if part.len() - begin <= self.most_held() => break,
                Err(HpackError::Truncated) => self.begin_long(first, part, &mut begin)?,
                Err(error) => return Err(error),
            }
        }
        Ok(begin)
    }

    /// Decodes the last part of a block.
    pub(crate) fn decode_last_part(&mut self, part: &[u8], scratch: &mut Vec<u8>) -> Result<(), HpackError> {
        let read = self.decode_part(part, false, scratch, |_| {})?;
        if read < part.len() || self.long.is_some() { Err(HpackError::Truncated) } else { Ok(()) }
    }

    /// A field of which more is there than this is larger than the table: Huffman's longest code has 30 bits.
    fn most_held(&self) -> usize {
        HELD.max(4 * usize::from(self.table.capacity()))
    }

    /// Begins to read past the literal at `at`.
    fn begin_long(&mut self, first: u8, part: &[u8], at: &mut usize) -> Result<(), HpackError> {
        let is_indexed = first & 0x40 != 0;
        let index = read_integer(part, at, if is_indexed { 6 } else { 4 })?;
        if index > 0 {
            self.field(index)?;
        }
        let strings = if index == 0 { 2 } else { 1 };
        self.long = Some(LongField { left: 0, strings, is_indexed });
        self.read_past(part, at)
    }

    /// Reads past the long field, if there is one, as far as it is there.
    fn read_past(&mut self, part: &[u8], at: &mut usize) -> Result<(), HpackError> {
        let Some(mut long) = self.long else { return Ok(()) };
        loop {
            let here = (part.len() - *at).min(long.left as usize);
            *at += here;
            long.left -= here as u32;
            if long.left > 0 {
                break;
            }
            if long.strings == 0 {
                if long.is_indexed {
                    self.table.clear();
                }
                self.long = None;
                return Ok(());
            }
            let mut behind = *at;
            match read_integer(part, &mut behind, 7) {
                Ok(length) => (*at, long.left, long.strings) = (behind, length, long.strings - 1),
                Err(HpackError::Truncated) => break,
                Err(error) => return Err(error),
            }
        }
        self.long = Some(long);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::integer::write_integer;
    use super::*;

    fn literal(pattern: u8, name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut field = vec![pattern];
        for string in [name, value] {
            write_integer(string.len(), 0, 7, &mut field);
            field.extend_from_slice(string);
        }
        field
    }

    /// Decodes a block in parts of this length; returns the fields, their values cut, and the most that was held.
    fn decode(
        decoder: &mut Decoder,
        block: &[u8],
        length: usize,
    ) -> Result<(Vec<String>, usize), HpackError> {
        let (mut fields, mut held, mut most) = (Vec::new(), Vec::new(), 0);
        let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(3)]).into_owned();
        let mut is_first = true;
        for piece in block.chunks(length) {
            held.extend_from_slice(piece);
            most = most.max(held.len());
            let take = |field: Field<'_>| fields.push(format!("{}={}", text(field.name), text(field.value)));
            let read = decoder.decode_part(&held, is_first, &mut Vec::new(), take)?;
            held.drain(..read);
            is_first = false;
        }
        decoder.decode_last_part(&held, &mut Vec::new())?;
        Ok((fields, most))
    }

    #[test]
    fn parts_of_any_length_give_the_fields_of_the_whole() {
        let block = [
            &[0x3f, 0xe1, 0x1f, 0x82][..],
            &literal(0x40, b"a", b"1"),
            &literal(0, b"b", &[b'x'; 300]),
            &literal(0x10, &[b'n'; 200], b"2"),
            &[0xbe, 0x84],
        ]
        .concat();
        let expected = [":me=GET", "a=1", "b=xxx", "nnn=2", "a=1", ":pa=/"];
        for length in 5..block.len() {
            let (fields, _) = decode(&mut Decoder::new(), &block, length).expect("lawful");
            assert_eq!(fields, expected, "{length}");
        }
        for cut in 5..block.len() {
            let cut_off = decode(&mut Decoder::new(), &block[..cut], 50);
            assert!(matches!(cut_off, Ok(_) | Err(HpackError::Truncated)), "{cut}");
        }
    }

    #[test]
    fn long_fields_are_read_past() {
        let long = vec![b'x'; 100_000];
        for (name, value) in [(&b"long"[..], &long[..]), (&long, b"v"), (&long, &long)] {
            for (pattern, is_kept) in [(0x40, false), (0, true), (0x10, true)] {
                for length in [1000, 16_384, 50_000] {
                    let mut decoder = Decoder::new();
                    decoder.decode(&literal(0x40, b"a", b"1"), &mut Vec::new(), |_| {}).expect("lawful");
                    let block =
                        [literal(pattern, name, value), literal(0x40, b"b", b"2"), vec![0x82]].concat();
                    let (fields, most) = decode(&mut decoder, &block, length).expect("lawful");
                    assert_eq!(fields, ["b=2", ":me=GET"]);
                    assert!(most <= HELD + length, "{most}");
                    assert_eq!(decoder.table.len(), if is_kept { 2 } else { 1 }, "{pattern} {length}");
                    // Its end is missed.
                    let cut_off = decode(&mut Decoder::new(), &block[..90_000], length);
                    assert_eq!(cut_off, Err(HpackError::Truncated));
                }
            }
        }
        let unknown = [vec![0x7e], literal(0, &long, b"")[1..].to_vec()].concat();
        assert_eq!(decode(&mut Decoder::new(), &unknown, 1000), Err(HpackError::Index));
    }
}
