//! What a request asks for.

use super::sink::{Pseudo, PseudoMarks};
use crate::hpack::Field;

/// The pseudo-fields of a request (RFC 9113 §8.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLine<'a> {
    /// `:method`
    pub method: &'a [u8],
    /// `:scheme`; CONNECT has none unless it is extended.
    pub scheme: Option<&'a [u8]>,
    /// `:authority`
    pub authority: Option<&'a [u8]>,
    /// `:path`; CONNECT has none unless it is extended.
    pub path: Option<&'a [u8]>,
    /// `:protocol` of an extended CONNECT (RFC 8441).
    pub protocol: Option<&'a [u8]>,
    /// Those that are never to be indexed.
    pub marks: PseudoMarks,
}

impl<'a> RequestLine<'a> {
    /// The extended CONNECT that represents a GET with Upgrade to this protocol (RFC 8441 §5).
    pub fn into_extended_connect(self, protocol: &'a str) -> RequestLine<'a> {
        RequestLine { method: b"CONNECT", protocol: Some(protocol.as_bytes()), ..self }
    }

    /// Those that it has, in the order of the RFC.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'a>> {
        let marks = self.marks;
        let values = [
            (Pseudo::Method, Some(self.method)),
            (Pseudo::Scheme, self.scheme),
            (Pseudo::Authority, self.authority),
            (Pseudo::Path, self.path),
            (Pseudo::Protocol, self.protocol),
        ];
        let fields = values.into_iter().filter_map(|(pseudo, value)| Some((pseudo, value?)));
        fields.map(move |(pseudo, value)| Field {
            name: pseudo.name(),
            value,
            is_sensitive: marks.has(pseudo),
        })
    }
}
