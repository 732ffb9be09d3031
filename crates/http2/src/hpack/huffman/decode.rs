//! Decoding: 12 bits a look-up, which give one symbol or two; four look-ups for each load of 64 bits. Codes of more than
//! 12 bits, which text hardly has, are found by their length. The last bits are compared with the end at each step.

use super::code::{CANON, END_OF_STRING, LENGTHS, LONGEST};
use crate::hpack::HpackError;

/// Bits of a look-up.
const BITS: usize = 12;

/// What 12 bits begin with: a symbol, or two if both fit; nothing for a longer code.
#[derive(Clone, Copy)]
struct Step {
    /// The symbols, the first one in the low byte, 0 where there is none.
    symbols: u16,
    /// The bits of the first symbol in the low half, the bits of all in the high half.
    bits: u8,
    /// The number of symbols.
    count: u8,
}

impl Step {
    fn first_bits(self) -> u32 {
        u32::from(self.bits & 15)
    }

    fn all_bits(self) -> u32 {
        u32::from(self.bits >> 4)
    }
}

static STEPS: [Step; 1 << BITS] = {
    let mut steps = [Step { symbols: 0, bits: 0, count: 0 }; 1 << BITS];
    // One symbol each: the codes of one length stand one after the other.
    let (mut at, mut n) = (0, 0);
    while n < CANON.symbols.len() && LENGTHS[CANON.symbols[n] as usize] as usize <= BITS {
        let bits = LENGTHS[CANON.symbols[n] as usize];
        let end = at + (1 << (BITS - bits as usize));
        while at < end {
            steps[at] = Step { symbols: CANON.symbols[n], bits: bits << 4 | bits, count: 1 };
            at += 1;
        }
        n += 1;
    }
    // A second one where the bits left are all of it.
    let single = steps;
    let mut at = 0;
    while at < steps.len() {
        let first = single[at];
        let bits = first.bits & 15;
        let second = single[at << bits & ((1 << BITS) - 1)];
        let all = bits + (second.bits & 15);
        if first.count == 1 && second.count == 1 && all as usize <= BITS {
            steps[at] =
                Step { symbols: first.symbols | second.symbols << 8, bits: all << 4 | bits, count: 2 };
        }
        at += 1;
    }
    steps
};

/// The space that the decoded string of so many bytes takes at most, while it is decoded.
pub(in crate::hpack) fn room(coded: usize) -> usize {
    // No code is shorter than 5 bits; words of eight symbols are written whole.
    coded * 8 / 5 + 8
}

/// Decodes the string that is `block[start..end]` to the begin of `out`, which has [`room`]; returns its length.
pub(in crate::hpack) fn decode(
    block: &[u8],
    start: usize,
    end: usize,
    out: &mut [u8],
) -> Result<usize, HpackError> {
    let (mut at, end_bits) = (start * 8, end * 8);
    let mut n = 0;
    while at + 4 * BITS <= end_bits {
        let Some(word) = load(block, at) else { break };
        let step = look_up(word);
        if step.count == 0 {
            let (symbol, bits) = find_long(word);
            out[n] = byte(symbol)?;
            (n, at) = (n + 1, at + bits as usize);
            continue;
        }
        let (mut rest, mut symbols, mut count) = (word, 0, 0);
        for _ in 0..4 {
            let step = look_up(rest);
            symbols |= u64::from(step.symbols) << (8 * count);
            count += usize::from(step.count);
            rest <<= step.all_bits();
            at += step.all_bits() as usize;
        }
        out[n..n + 8].copy_from_slice(&symbols.to_le_bytes());
        n += count;
    }
    decode_tail(block, at, end_bits, out, n)
}

/// Decodes the last bits, of which there are fewer than 57, and checks the padding.
fn decode_tail(
    block: &[u8],
    at: usize,
    end_bits: usize,
    out: &mut [u8],
    mut n: usize,
) -> Result<usize, HpackError> {
    let mut rest = (end_bits - at) as u32;
    // Behind the end there are ones, as in the padding, so that no code ends there but by them.
    let mut word = load_tail(block, at, end_bits) | u64::MAX >> rest;
    while rest > 0 {
        let step = look_up(word);
        let (symbols, count, bits) = if step.count == 0 {
            let (symbol, bits) = find_long(word);
            if bits > rest {
                break;
            }
            (u16::from(byte(symbol)?), 1, bits)
        } else if step.all_bits() <= rest {
            (step.symbols, usize::from(step.count), step.all_bits())
        } else if step.first_bits() <= rest {
            (step.symbols & 0xff, 1, step.first_bits())
        } else {
            break;
        };
        out[n..n + 2].copy_from_slice(&symbols.to_le_bytes());
        n += count;
        word = word << bits | ((1 << bits) - 1);
        rest -= bits;
    }
    if rest > 7 || word != u64::MAX { Err(HpackError::Padding) } else { Ok(n) }
}

fn look_up(word: u64) -> Step {
    STEPS[(word >> (64 - BITS)) as usize]
}

/// At least 57 bits from there on, at the top, if the block has eight more bytes.
fn load(block: &[u8], at: usize) -> Option<u64> {
    let bytes = block.get(at / 8..)?.first_chunk::<8>()?;
    Some(u64::from_be_bytes(*bytes) << (at % 8))
}

/// The bits up to the end, at the top; what follows them is of no meaning.
fn load_tail(block: &[u8], at: usize, end_bits: usize) -> u64 {
    if let Some(word) = load(block, at) {
        // What is of the next string is replaced by zeros.
        return word & !(u64::MAX >> (end_bits - at));
    }
    let word = block[at / 8..end_bits / 8].iter().fold(0, |word, &b| word << 8 | u64::from(b));
    let bytes = end_bits / 8 - at / 8;
    if bytes == 0 { 0 } else { word << (64 - 8 * bytes) << (at % 8) }
}

/// The symbol and the bits of a code of more than 12 bits.
#[cold]
fn find_long(word: u64) -> (u16, u32) {
    let top = word >> 32;
    let length = (BITS + 1..LONGEST).find(|&n| top < CANON.end[n]).unwrap_or(LONGEST);
    let (begin, first) = CANON.first[length];
    let nth = (top >> (32 - length)) as u32 - first;
    (CANON.symbols[usize::from(begin) + nth as usize], length as u32)
}

fn byte(symbol: u16) -> Result<u8, HpackError> {
    if symbol == END_OF_STRING { Err(HpackError::EndOfString) } else { Ok(symbol as u8) }
}
