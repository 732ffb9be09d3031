//! Decoding: 12 bits a look-up, which give one symbol or two; four look-ups for each load of 64 bits. Codes of more than
//! 12 bits, which text hardly has, are found by their length. The last bits are compared with the end at each step.

use super::code::{CANON, END_OF_STRING, LENGTHS, LONGEST};
use crate::hpack::HpackError;

/// Bits of a look-up.
const BITS: usize = 12;

/// What 12 bits begin with: a symbol, or two if both fit; nothing for a longer code.
#[derive(Clone, Copy)]
struct Step(u32);

impl Step {
    const NONE: Step = Step(0);

    /// `symbols`: the first one in the low byte, 0 where there is none.
    const fn new(symbols: u16, count: u8, bits: u8) -> Step {
        Step((symbols as u32) << 16 | (count as u32) << 11 | bits as u32)
    }

    fn symbols(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Eight times the number of symbols.
    fn symbol_bits(self) -> u32 {
        self.0 >> 8 & 0xff
    }

    /// The bits of all its symbols.
    const fn bits(self) -> u32 {
        self.0 & 63
    }
}

static STEPS: [Step; 1 << BITS] = {
    let mut steps = [Step::NONE; 1 << BITS];
    // One symbol each: the codes of one length follow each other.
    let (mut at, mut n) = (0, 0);
    while LENGTHS[CANON.symbols[n] as usize] as usize <= BITS {
        let bits = LENGTHS[CANON.symbols[n] as usize];
        let end = at + (1 << (BITS - bits as usize));
        while at < end {
            steps[at] = Step::new(CANON.symbols[n], 1, bits);
            at += 1;
        }
        n += 1;
    }
    // A second one where the bits left are all of it.
    let single = steps;
    let mut at = 0;
    while at < steps.len() {
        let (first, bits) = (single[at].0, single[at].bits());
        let (second, rest) =
            (single[at << bits & ((1 << BITS) - 1)].0, single[at << bits & ((1 << BITS) - 1)].bits());
        if bits > 0 && rest > 0 && (bits + rest) as usize <= BITS {
            let symbols = (first >> 16 | second >> 16 << 8) as u16;
            steps[at] = Step::new(symbols, 2, (bits + rest) as u8);
        }
        at += 1;
    }
    steps
};

/// The most space that a string of `coded` bytes takes while it is decoded.
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
        let (mut rest, mut symbols, mut symbol_bits) = (word, 0, 0);
        for _ in 0..4 {
            let step = look_up(rest);
            symbols |= u64::from(step.symbols()) << symbol_bits;
            symbol_bits += step.symbol_bits();
            rest <<= step.bits();
            at += step.bits() as usize;
        }
        out[n..n + 8].copy_from_slice(&symbols.to_le_bytes());
        n += symbol_bits as usize / 8;
        // A longer code ends the look-ups before it; the next word begins with it, and it is found by itself.
        if symbol_bits == 0 {
            let (symbol, bits) = find_long(word);
            out[n] = byte(symbol)?;
            (n, at) = (n + 1, at + bits as usize);
        }
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
    while rest > 7 || word != u64::MAX {
        let step = look_up(word);
        let (mut symbols, mut count, mut bits) =
            (step.symbols(), step.symbol_bits() as usize / 8, step.bits());
        if count == 0 {
            let symbol;
            (symbol, bits) = find_long(word);
            if bits <= rest {
                (symbols, count) = (u16::from(byte(symbol)?), 1);
            }
        } else if bits > rest {
            // The first symbol alone, if it is there as a whole.
            symbols &= 0xff;
            (count, bits) = (1, u32::from(LENGTHS[usize::from(symbols)]));
        }
        if bits > rest {
            return Err(HpackError::Padding);
        }
        out[n..n + 2].copy_from_slice(&symbols.to_le_bytes());
        n += count;
        word = word << bits | ((1 << bits) - 1);
        rest -= bits;
    }
    Ok(n)
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
