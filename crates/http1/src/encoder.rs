//! Writes a body: chunk lines in canonical form.

use crate::framing::Framing;
use crate::trailers::Trailers;
use crate::write::field;

/// How a request's body is sent to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyOut {
    /// No body.
    None,
    /// A body of this many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

impl From<BodyOut> for Framing {
    fn from(body: BodyOut) -> Framing {
        match body {
            BodyOut::None => Framing::None,
            BodyOut::Length(n) => Framing::Length(n),
            BodyOut::Chunked => Framing::Chunked,
        }
    }
}

/// Writes a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoder {
    /// Bytes unchanged, as many as were announced.
    Length,
    /// Chunks.
    Chunked,
    /// Bytes as they are, until the connection ends.
    Close,
    /// Nothing.
    None,
}

impl Encoder {
    /// An encoder for a [`Framing`] or a [`BodyOut`].
    pub fn new(framing: impl Into<Framing>) -> Encoder {
        match framing.into() {
            Framing::None => Encoder::None,
            Framing::Length(_) => Encoder::Length,
            Framing::Chunked => Encoder::Chunked,
            Framing::Close => Encoder::Close,
        }
    }

    /// Whether data is sent as it is.
    pub fn is_plain(&self) -> bool {
        matches!(self, Encoder::Length | Encoder::Close)
    }

    /// Appends the chunk's line, which precedes `len` bytes of data. Nothing for no bytes, whose chunk would be the
    /// last.
    pub fn before(&self, len: usize, out: &mut Vec<u8>) {
        if *self != Encoder::Chunked || len == 0 {
            return;
        }
        let mut line = *b"0000000000000000\r\n";
        let mut at = 16;
        let mut n = len;
        while n > 0 {
            at -= 1;
            line[at] = b"0123456789abcdef"[n & 15];
            n >>= 4;
        }
        out.extend_from_slice(&line[at..]);
    }

    /// Appends the line end after the data of a chunk that is not empty.
    pub fn after(&self, out: &mut Vec<u8>) {
        if *self == Encoder::Chunked {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Appends the body's end: the last chunk, the trailers that may go on, the blank line.
    pub fn end(&self, trailers: Option<&Trailers>, out: &mut Vec<u8>) {
        self.end_without(trailers, |_| false, out);
    }

    /// As [`Encoder::end`], without the trailers that the head's Connection names (`Request::names`).
    pub fn end_without(&self, trailers: Option<&Trailers>, named: impl Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
        if *self != Encoder::Chunked {
            return;
        }
        out.extend_from_slice(b"0\r\n");
        if let Some(trailers) = trailers {
            for (name, value) in trailers.passed_on(named) {
                field(out, name, value);
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}
