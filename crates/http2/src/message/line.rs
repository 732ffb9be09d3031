//! What a request asks for.

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
}

impl<'a> RequestLine<'a> {
    /// The extended CONNECT that represents a GET with Upgrade to this protocol (RFC 8441 §5).
    pub fn into_extended_connect(self, protocol: &'a str) -> RequestLine<'a> {
        RequestLine { method: b"CONNECT", protocol: Some(protocol.as_bytes()), ..self }
    }

    /// Those that it has, in the order of the RFC.
    pub(crate) fn fields(&self) -> impl Iterator<Item = Field<'a>> {
        let pairs: [(&'static [u8], Option<&'a [u8]>); 5] = [
            (b":method", Some(self.method)),
            (b":scheme", self.scheme),
            (b":authority", self.authority),
            (b":path", self.path),
            (b":protocol", self.protocol),
        ];
        let fields = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
        fields.map(|(name, value)| Field { name, value, is_sensitive: false })
    }
}
