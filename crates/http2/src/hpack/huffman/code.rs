//! The code itself. It is canonical: shorter codes come first, and codes of one length are in the order of their
//! symbols, so that the lengths say everything (RFC 7541 appendix B).

/// The symbol that no string may contain: its first bits are the padding.
pub(super) const END_OF_STRING: u16 = 256;
/// The longest code, which is that of [`END_OF_STRING`].
pub(super) const LONGEST: usize = 30;

/// Of each symbol, its code's bits.
#[rustfmt::skip]
pub(super) static LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// What the lengths say.
pub(super) struct Canon {
    /// Each symbol's code, in the low bits.
    pub(super) codes: [u32; 257],
    /// The symbols in the order of their codes.
    pub(super) symbols: [u16; 257],
    /// For each length, where its codes begin among `symbols`, and the first of them.
    pub(super) first: [(u16, u32); LONGEST + 1],
    /// For each length, the least 32 bits that no code of it or a shorter one begins.
    pub(super) end: [u64; LONGEST + 1],
}

pub(super) static CANON: Canon = {
    let mut canon =
        Canon { codes: [0; 257], symbols: [0; 257], first: [(0, 0); LONGEST + 1], end: [0; LONGEST + 1] };
    let (mut length, mut code, mut count) = (1, 0u32, 0);
    while length <= LONGEST {
        code <<= 1;
        canon.first[length] = (count as u16, code);
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                canon.codes[symbol] = code;
                canon.symbols[count] = symbol as u16;
                code += 1;
                count += 1;
            }
            symbol += 1;
        }
        canon.end[length] = (code as u64) << (32 - length);
        length += 1;
    }
    canon
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_rfc() {
        // Of appendix B the first, some in the middle, and the last of a length.
        for (symbol, code, length) in [
            (0, 0x1ff8, 13),
            (10, 0x3fff_fffc, 30),
            (22, 0x3fff_fffe, 30),
            (32, 0x14, 6),
            (48, 0x0, 5),
            (88, 0xfc, 8),
            (92, 0x7fff0, 19),
            (116, 0x9, 5),
            (126, 0x1ffd, 13),
            (127, 0xfff_fffc, 28),
            (128, 0xfffe6, 20),
            (195, 0x7fff1, 19),
            (249, 0xfff_fffe, 28),
            (255, 0x3ff_ffee, 26),
            (256, 0x3fff_ffff, 30),
        ] {
            assert_eq!((CANON.codes[symbol], LENGTHS[symbol]), (code, length), "{symbol}");
        }
    }

    #[test]
    fn the_code_is_complete() {
        let sum: u64 = LENGTHS.iter().map(|&n| 1u64 << (LONGEST - usize::from(n))).sum();
        assert_eq!(sum, 1 << LONGEST);
        assert_eq!(CANON.end[LONGEST], 1 << 32);
        assert_eq!(CANON.symbols[256], END_OF_STRING);
    }
}
