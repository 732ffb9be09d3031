//! The same as the crate, as simply as it can be said: a list of pairs, and Huffman's code bit by bit.

use std::collections::BTreeMap;
use weir_http2::{Decoder, HpackError};

pub type Pair = (Vec<u8>, Vec<u8>);

/// A field: name, value, and whether it is marked.
pub type Line = (Vec<u8>, Vec<u8>, bool);

/// The static table of RFC 7541 appendix A, as a decoder knows it.
pub fn static_table() -> Vec<Pair> {
    fields_from(&mut Decoder::new(), 1..62)
}

/// The dynamic table of a decoder, the newest first.
pub fn dynamic_table(decoder: &mut Decoder) -> Vec<Pair> {
    fields_from(decoder, 62..10_000)
}

fn fields_from(decoder: &mut Decoder, indices: impl Iterator<Item = usize>) -> Vec<Pair> {
    let mut fields = Vec::new();
    for index in indices {
        let mut block = Vec::new();
        integer(index, 0x80, 7, &mut block);
        let take = |f: weir_http2::Field<'_>| fields.push((f.name.to_vec(), f.value.to_vec()));
        if decoder.decode(&block, &mut Vec::new(), take).is_err() {
            break;
        }
    }
    fields
}

/// What the fields of a table count for.
pub fn size(table: &[Pair]) -> usize {
    table.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
}

/// Writes a number as RFC 7541 §5.1 says.
pub fn integer(mut value: usize, pattern: u8, prefix: u32, out: &mut Vec<u8>) {
    let most = 2usize.pow(prefix) - 1;
    if value < most {
        out.push(pattern + value as u8);
        return;
    }
    out.push(pattern + most as u8);
    value -= most;
    while value >= 128 {
        out.push((value % 128 + 128) as u8);
        value /= 128;
    }
    out.push(value as u8);
}

/// Huffman's code.
pub struct Code {
    /// Code and bits of each symbol.
    of: Vec<(u32, u32)>,
    symbols: BTreeMap<(u32, u32), usize>,
}

impl Code {
    pub fn new() -> Code {
        let line = |line: &str| {
            let (code, bits) = line.split_once(' ').expect("code and bits");
            (u32::from_str_radix(code, 16).expect("a code"), bits.parse().expect("bits"))
        };
        let lines = include_str!("huffman.txt").lines().filter(|l| !l.starts_with('#'));
        let of: Vec<_> = lines.map(line).collect();
        assert_eq!(of.len(), 257);
        Code { symbols: of.iter().enumerate().map(|(symbol, &code)| (code, symbol)).collect(), of }
    }

    pub fn encode(&self, string: &[u8]) -> Vec<u8> {
        let mut bits = Vec::new();
        for &b in string {
            self.push(usize::from(b), &mut bits);
        }
        bytes(bits)
    }

    /// A string with the symbol for its end in it.
    pub fn encode_with_end(&self, string: &[u8]) -> Vec<u8> {
        let mut bits = Vec::new();
        self.push(256, &mut bits);
        for &b in string {
            self.push(usize::from(b), &mut bits);
        }
        bytes(bits)
    }

    fn push(&self, symbol: usize, bits: &mut Vec<bool>) {
        let (code, length) = self.of[symbol];
        bits.extend((0..length).rev().map(|i| code >> i & 1 == 1));
    }

    fn decode(&self, coded: &[u8]) -> Result<Vec<u8>, HpackError> {
        let bits = coded.iter().flat_map(|&b| (0..8).rev().map(move |i| u32::from(b >> i & 1)));
        let (mut out, mut code, mut length) = (Vec::new(), 0, 0);
        for bit in bits {
            (code, length) = (code << 1 | bit, length + 1);
            if let Some(&symbol) = self.symbols.get(&(code, length)) {
                out.push(u8::try_from(symbol).map_err(|_| HpackError::EndOfString)?);
                (code, length) = (0, 0);
            }
        }
        let is_padding = length < 8 && code == (1 << length) - 1;
        if is_padding { Ok(out) } else { Err(HpackError::Padding) }
    }
}

/// Bits as bytes, the last one filled with ones.
fn bytes(mut bits: Vec<bool>) -> Vec<u8> {
    while !bits.len().is_multiple_of(8) {
        bits.push(true);
    }
    bits.chunks(8).map(|byte| byte.iter().fold(0, |b, &bit| b << 1 | u8::from(bit))).collect()
}

/// A decoder with a list for a table.
pub struct NaiveDecoder<'a> {
    code: &'a Code,
    fixed: &'a [Pair],
    /// The newest first.
    pub recent: Vec<Pair>,
    capacity: u32,
    limit: u32,
    /// The limits since the last update.
    limits: Vec<u32>,
}

impl<'a> NaiveDecoder<'a> {
    pub fn new(code: &'a Code, fixed: &'a [Pair]) -> NaiveDecoder<'a> {
        NaiveDecoder { code, fixed, recent: Vec::new(), capacity: 4096, limit: 4096, limits: Vec::new() }
    }

    pub fn set_limit(&mut self, bytes: u16) {
        self.limit = u32::from(bytes);
        self.limits.push(self.limit);
    }

    pub fn decode(&mut self, block: &[u8]) -> Result<Vec<Line>, HpackError> {
        let mut rest = block;
        let mut lines = Vec::new();
        let mut is_start = true;
        while let Some(&first) = rest.first() {
            if (0x20..0x40).contains(&first) {
                if !is_start {
                    return Err(HpackError::UpdateMisplaced);
                }
                self.update(read(&mut rest, 5)?)?;
                continue;
            }
            if self.limits.iter().any(|&limit| limit < self.capacity) {
                return Err(HpackError::UpdateMissing);
            }
            is_start = false;
            if first >= 0x80 {
                let (name, value) = self.field(read(&mut rest, 7)?)?;
                lines.push((name, value, false));
                continue;
            }
            let index = read(&mut rest, if first >= 0x40 { 6 } else { 4 })?;
            let name = if index == 0 { self.string(&mut rest)? } else { self.field(index)?.0 };
            let value = self.string(&mut rest)?;
            if first >= 0x40 {
                self.recent.insert(0, (name.clone(), value.clone()));
                self.evict();
            }
            lines.push((name, value, (0x10..0x20).contains(&first)));
        }
        Ok(lines)
    }

    fn update(&mut self, size: u32) -> Result<(), HpackError> {
        if size > self.limit {
            return Err(HpackError::UpdateTooLarge);
        }
        if self.limits.iter().any(|&limit| limit < self.capacity && size > limit) {
            return Err(HpackError::UpdateMissing);
        }
        self.limits.clear();
        self.capacity = size;
        self.evict();
        Ok(())
    }

    fn evict(&mut self) {
        while size(&self.recent) > self.capacity as usize {
            self.recent.pop();
        }
    }

    fn field(&self, index: u32) -> Result<Pair, HpackError> {
        let index = (index as usize).checked_sub(1).ok_or(HpackError::Index)?;
        self.fixed.iter().chain(&self.recent).nth(index).cloned().ok_or(HpackError::Index)
    }

    fn string(&self, rest: &mut &[u8]) -> Result<Vec<u8>, HpackError> {
        let is_coded = rest.first().is_some_and(|&first| first >= 0x80);
        let length = read(rest, 7)? as usize;
        let (string, behind) = rest.split_at_checked(length).ok_or(HpackError::Truncated)?;
        *rest = behind;
        if is_coded { self.code.decode(string) } else { Ok(string.to_vec()) }
    }
}

fn read(rest: &mut &[u8], prefix: u32) -> Result<u32, HpackError> {
    let mut next = || {
        let (&first, behind) = rest.split_first().ok_or(HpackError::Truncated)?;
        *rest = behind;
        Ok(u64::from(first))
    };
    let most = 2u64.pow(prefix) - 1;
    let mut value = next()? & most;
    if value == most {
        for i in 0.. {
            if i == 5 {
                return Err(HpackError::Integer);
            }
            let octet = next()?;
            value += (octet & 127) << (7 * i);
            if octet < 128 {
                break;
            }
        }
    }
    u32::try_from(value).map_err(|_| HpackError::Integer)
}
