//! A chunk's line: size and extensions, read byte by byte, strictly (RFC 9112 §7.1).
//!
//! Blanks before `;` or around `=` ("bad whitespace") are refused: no sender may write them, and parsers differ.

use crate::byte::{is_hex, is_quoted, is_token, is_value};
use crate::rule::{Id, Refusal, refuse};

/// The reader's position in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Digits, with the number that have arrived.
    Size(u8),
    /// Behind `;`.
    NameStart,
    Name,
    /// Behind `=`.
    ValueStart,
    Value,
    Quoted,
    /// Behind a backslash in quotes.
    Escaped,
    /// Behind the closing quote.
    Closed,
    /// Behind CR.
    Cr,
}

/// Reads one chunk line, in as many pieces as it comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkLine {
    at: Phase,
    size: u64,
}

impl ChunkLine {
    pub(crate) fn new() -> ChunkLine {
        ChunkLine { at: Phase::Size(0), size: 0 }
    }

    /// Reads from `input[*at..]`; the chunk's size once the line has ended. Each byte of an extension takes one from
    /// `left`.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        at: &mut usize,
        left: &mut usize,
    ) -> Result<Option<u64>, Refusal> {
        // Digits first: most lines have nothing else.
        while let Phase::Size(n @ 0..15) = self.at
            && let Some(&b) = input.get(*at)
            && is_hex(b)
        {
            *at += 1;
            self.size = self.size << 4 | u64::from(hex(b));
            self.at = Phase::Size(n + 1);
        }
        while let Some(&b) = input.get(*at) {
            *at += 1;
            if self.at == Phase::Cr {
                return if b == b'\n' { Ok(Some(self.size)) } else { Err(refuse(Id::ChunkLine)) };
            }
            if !matches!(self.at, Phase::Size(_)) {
                *left = left.checked_sub(1).ok_or_else(|| refuse(Id::ChunkExtensions))?;
            }
            self.at = self.step(b)?;
        }
        Ok(None)
    }

    fn step(&mut self, b: u8) -> Result<Phase, Refusal> {
        let extension = || Err(refuse(Id::ChunkExtension));
        let ended = || Err(refuse(Id::ChunkLine));
        match (self.at, b) {
            (Phase::Size(1..), b'\r') => Ok(Phase::Cr),
            (Phase::Size(1..), b';') => Ok(Phase::NameStart),
            (Phase::Size(1..), b'\n') => ended(),
            (Phase::Size(_), _) => Err(refuse(Id::ChunkSize)),
            (Phase::NameStart | Phase::Name, b) if is_token(b) => Ok(Phase::Name),
            (Phase::Name, b'=') => Ok(Phase::ValueStart),
            (Phase::ValueStart, b'"') => Ok(Phase::Quoted),
            (Phase::ValueStart | Phase::Value, b) if is_token(b) => Ok(Phase::Value),
            (Phase::Quoted, b'"') => Ok(Phase::Closed),
            (Phase::Quoted, b'\\') => Ok(Phase::Escaped),
            (Phase::Quoted, b) if is_quoted(b) => Ok(Phase::Quoted),
            (Phase::Escaped, b) if is_value(b) => Ok(Phase::Quoted),
            (Phase::Name | Phase::Value | Phase::Closed, b';') => Ok(Phase::NameStart),
            (Phase::Name | Phase::Value | Phase::Closed, b'\r') => Ok(Phase::Cr),
            (Phase::Name | Phase::Value | Phase::Closed, b'\n') => ended(),
            _ => extension(),
        }
    }
}

fn hex(b: u8) -> u8 {
    match b {
        b'0'..=b'9' => b - b'0',
        _ => (b | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Option<u64>, &'static str> {
        let (mut at, mut left) = (0, 64);
        let size = ChunkLine::new().read(line.as_bytes(), &mut at, &mut left).map_err(|r| r.0.name)?;
        assert!(size.is_none() || at == line.len());
        Ok(size)
    }

    #[test]
    fn lines() {
        for (line, expected) in [
            ("0\r\n", Ok(Some(0))),
            ("Ff\r\n", Ok(Some(255))),
            ("00000000000000f\r\n", Ok(Some(15))),
            ("000000000000000f\r\n", Err("chunk-size")),
            ("fffffffffffffff\r\n", Ok(Some((1 << 60) - 1))),
            ("5", Ok(None)),
            ("5\r", Ok(None)),
            ("\r\n", Err("chunk-size")),
            (" 5\r\n", Err("chunk-size")),
            ("5 \r\n", Err("chunk-size")),
            ("0x5\r\n", Err("chunk-size")),
            ("-1\r\n", Err("chunk-size")),
            ("1_0\r\n", Err("chunk-size")),
            ("5\n", Err("chunk-line")),
            ("5\rx", Err("chunk-line")),
            ("5;a\n", Err("chunk-line")),
            ("5;\r\n", Err("chunk-extension")),
            ("5;a\r\n", Ok(Some(5))),
            ("5;a=b;c=\"d;\\\"e\"\r\n", Ok(Some(5))),
            ("5;a=\r\n", Err("chunk-extension")),
            ("5;a=\"\r\n", Err("chunk-extension")),
            ("5;a=\"b\"c\r\n", Err("chunk-extension")),
            ("5;a\rX\r\n", Err("chunk-line")),
            ("5;\0a\r\n", Err("chunk-extension")),
            ("5; a\r\n", Err("chunk-extension")),
            ("5;a =b\r\n", Err("chunk-extension")),
            (
                "5;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
                Err("chunk-extensions"),
            ),
        ] {
            assert_eq!(read(line), expected, "{line:?}");
        }
    }
}
