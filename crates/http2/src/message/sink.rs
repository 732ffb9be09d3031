//! Where heads go, field by field, and what the reading of heads needs of memory.

use crate::hpack::Field;

/// What a block of fields is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// The head of a request.
    Request,
    /// The head of an answer, interim or final.
    Answer,
    /// The fields behind a body.
    Trailers,
}

/// The pseudo-fields (RFC 9113 §8.3, RFC 8441 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Pseudo {
    /// `:method`
    Method,
    /// `:scheme`
    Scheme,
    /// `:authority`
    Authority,
    /// `:path`
    Path,
    /// `:protocol`
    Protocol,
    /// `:status`
    Status,
}

/// Pseudo-fields that came as never to be indexed, and leave so (RFC 7541 §6.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PseudoMarks(u8);

impl PseudoMarks {
    /// No marks.
    pub const NONE: PseudoMarks = PseudoMarks(0);

    /// Marks a pseudo-field, if this is so.
    pub fn set(&mut self, pseudo: Pseudo, is_sensitive: bool) {
        self.0 |= u8::from(is_sensitive) << pseudo as u8;
    }

    /// Whether it is marked.
    pub fn has(self, pseudo: Pseudo) -> bool {
        self.0 >> pseudo as u8 & 1 != 0
    }
}

impl Pseudo {
    /// Its name.
    pub(crate) fn name(self) -> &'static [u8] {
        match self {
            Pseudo::Method => b":method",
            Pseudo::Scheme => b":scheme",
            Pseudo::Authority => b":authority",
            Pseudo::Path => b":path",
            Pseudo::Protocol => b":protocol",
            Pseudo::Status => b":status",
        }
    }

    /// The pseudo-field of this name, which begins with a colon.
    pub(crate) fn parse(name: &[u8]) -> Option<Pseudo> {
        Some(match name {
            b":method" => Pseudo::Method,
            b":scheme" => Pseudo::Scheme,
            b":authority" => Pseudo::Authority,
            b":path" => Pseudo::Path,
            b":protocol" => Pseudo::Protocol,
            b":status" => Pseudo::Status,
            _ => return None,
        })
    }
}

/// Takes heads field by field, as they are decoded. What came before an event says that the head is lawful may turn out
/// to be of no use.
pub trait FieldSink {
    /// A block begins on this stream: what came before, and no event has confirmed, is void.
    fn begin(&mut self, stream: u32, block: Block);
    /// A pseudo-field; they come before all others.
    fn pseudo(&mut self, pseudo: Pseudo, field: Field<'_>);
    /// A field. Its name is in lower case, its value without controls and without blanks around it.
    fn field(&mut self, field: Field<'_>);
}

/// Memory that the reading of heads uses, one for all connections of a thread. Its content means nothing in between.
#[derive(Debug, Default)]
pub struct Scratch {
    /// Decoded strings of Huffman's code.
    pub(crate) strings: Vec<u8>,
    /// `:authority`, until Host is compared with it.
    pub(crate) authority: Vec<u8>,
}
