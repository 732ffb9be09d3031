//! Reads a body from a stream of bytes that arrives in pieces of any size.

use crate::chunk::ChunkLine;
use crate::framing::Framing;
use crate::limits::Limits;
use crate::rule::{Id, Refusal, refuse};
use crate::trailers::Trailers;

/// A result of [`Decoder::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// `input[from..to]` is data, never empty.
    Data(usize, usize),
    /// The body has ended (trailers, if any, are in [`Decoder::trailers`]); what follows is the next message.
    End,
    /// More input is needed.
    More,
}

/// Reads a body from a stream of bytes.
#[derive(Debug)]
pub struct Decoder {
    state: State,
    /// Bytes of chunk extensions that may still come.
    extensions: usize,
    limits: Limits,
    /// Trailer lines so far, and what they were read into.
    tail: Option<Box<Tail>>,
}

#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    trailers: Trailers,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// The bytes of the body that are left.
    Length(u64),
    Line(ChunkLine),
    /// The bytes of the chunk that are left.
    Chunk(u64),
    /// The CR, then the LF behind a chunk's data.
    ChunkCr,
    ChunkLf,
    Trailers,
    Close,
    End,
}

impl Decoder {
    /// A decoder for a body with this framing. Sizes and trailers are limited by `limits`.
    pub fn new(framing: Framing, limits: &Limits) -> Decoder {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::End,
            Framing::Length(n) => State::Length(n),
            Framing::Chunked => State::Line(ChunkLine::new()),
            Framing::Close => State::Close,
        };
        Decoder { state, extensions: Limits::EXTENSIONS, limits: *limits, tail: None }
    }

    /// Reads from `input[*at..]` and advances `*at` past what was taken. After [`Piece::More`] everything was taken:
    /// parts of chunk lines and trailers are remembered here. A refusal blames the sender (400; of an origin,
    /// [`Refusal::in_response`]).
    pub fn next(&mut self, input: &[u8], at: &mut usize) -> Result<Piece, Refusal> {
        loop {
            if let State::End = self.state {
                return Ok(Piece::End);
            }
            let Some(&b) = input.get(*at) else { return Ok(Piece::More) };
            match &mut self.state {
                State::Length(left) => {
                    let (from, to) = take(left, input, at);
                    if *left == 0 {
                        self.state = State::End;
                    }
                    return Ok(Piece::Data(from, to));
                }
                State::Line(line) => match line.read(input, at, &mut self.extensions)? {
                    None => return Ok(Piece::More),
                    Some(0) => self.state = State::Trailers,
                    Some(size) => self.state = State::Chunk(size),
                },
                State::Chunk(left) => {
                    let (from, to) = take(left, input, at);
                    if *left == 0 {
                        self.state = State::ChunkCr;
                    }
                    return Ok(Piece::Data(from, to));
                }
                // Both bytes are there, as nearly always.
                State::ChunkCr if input[*at..].starts_with(b"\r\n") => {
                    *at += 2;
                    self.state = State::Line(ChunkLine::new());
                }
                State::ChunkCr | State::ChunkLf => {
                    let (expected, next) = match self.state {
                        State::ChunkCr => (b'\r', State::ChunkLf),
                        _ => (b'\n', State::Line(ChunkLine::new())),
                    };
                    if b != expected {
                        return Err(refuse(Id::ChunkEnd));
                    }
                    *at += 1;
                    self.state = next;
                }
                State::Trailers => {
                    if !self.read_trailers(input, at)? {
                        return Ok(Piece::More);
                    }
                    self.state = State::End;
                }
                State::Close => {
                    let from = *at;
                    *at = input.len();
                    return Ok(Piece::Data(from, input.len()));
                }
                State::End => return Ok(Piece::End),
            }
        }
    }

    /// Whether the whole body was read; at once if there is none.
    pub fn ended(&self) -> bool {
        matches!(self.state, State::End)
    }

    /// The connection ended: the end of a body that lasts until then, a refusal for one that is cut short (RFC 9112
    /// §8).
    pub fn eof(&mut self) -> Result<(), Refusal> {
        match self.state {
            State::Close | State::End => {
                self.state = State::End;
                Ok(())
            }
            _ => Err(refuse(Id::BodyCut)),
        }
    }

    /// The bytes that are left of a body with a length.
    pub fn remaining(&self) -> Option<u64> {
        match self.state {
            State::Length(left) => Some(left),
            _ => None,
        }
    }

    /// Notes that the next `n` bytes of a body with a length went another way than through [`Decoder::next`].
    pub fn skip(&mut self, n: u64) {
        if let State::Length(left) = &mut self.state {
            *left = left.saturating_sub(n);
            if *left == 0 {
                self.state = State::End;
            }
        }
    }

    /// Whether `n` bytes of input contain the rest of a body of known length.
    pub fn would_end_within(&self, bytes: usize) -> bool {
        match self.state {
            State::End => true,
            State::Length(left) => left <= bytes as u64,
            _ => false,
        }
    }

    /// The trailers, once the body has ended.
    pub fn trailers(&self) -> &Trailers {
        self.tail.as_ref().map_or(Trailers::NONE, |tail| &tail.trailers)
    }

    /// Gathers lines until the blank one; true once they were read.
    fn read_trailers(&mut self, input: &[u8], at: &mut usize) -> Result<bool, Refusal> {
        // The usual end, without anything to remember.
        if self.tail.is_none() && input[*at..].starts_with(b"\r\n") {
            *at += 2;
            return Ok(true);
        }
        let tail = self.tail.get_or_insert_default();
        while let Some(&b) = input.get(*at) {
            *at += 1;
            if b == b'\n' && tail.bytes.last() != Some(&b'\r') {
                return Err(refuse(Id::BareLf));
            }
            if tail.bytes.len() >= self.limits.max_head {
                return Err(refuse(Id::HeadTooLarge));
            }
            tail.bytes.push(b);
            if b == b'\n' && (tail.bytes.len() == 2 || tail.bytes.ends_with(b"\r\n\r\n")) {
                tail.trailers.read(&tail.bytes, &self.limits)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The bytes that are both available and part of the body.
fn take(left: &mut u64, input: &[u8], at: &mut usize) -> (usize, usize) {
    let from = *at;
    let there = (input.len() - from) as u64;
    let n = there.min(*left);
    *left -= n;
    *at = from + n as usize;
    (from, *at)
}
