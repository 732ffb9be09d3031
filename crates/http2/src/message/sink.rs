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

impl Pseudo {
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
    fn pseudo(&mut self, pseudo: Pseudo, value: &[u8]);
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
