//! How long a body is: Content-Length and Transfer-Encoding (RFC 9112 §6).

use crate::block::Block;
use crate::byte::decimal;
use crate::name::Name;
use crate::rule::{Id, Refusal, refuse};

/// A message's version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Version {
    /// HTTP/1.0.
    H10,
    /// HTTP/1.1.
    #[default]
    H11,
    /// HTTP/2.
    H2,
}

/// How long a body is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    /// There is no body.
    #[default]
    None,
    /// A body of this many bytes.
    Length(u64),
    /// Chunks, with their own end.
    Chunked,
    /// Until the connection ends (responses only).
    Close,
}

/// Reads the framing fields; `None` if there are none. Exactly one of both, once, in its one form.
pub(crate) fn framing(block: &Block, version: Version) -> Result<Option<Framing>, Refusal> {
    let mut codings = block.known(Name::TransferEncoding);
    let mut lengths = block.known(Name::ContentLength);
    match (codings.next(), lengths.next()) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(refuse(Id::LengthAndCoding)),
        (Some(_), None) if version == Version::H10 => Err(refuse(Id::CodingVersion)),
        (Some(coding), None) => {
            if codings.next().is_some() || !coding.eq_ignore_ascii_case(b"chunked") {
                return Err(refuse(Id::CodingUnknown));
            }
            Ok(Some(Framing::Chunked))
        }
        (None, Some(_)) if lengths.next().is_some() => Err(refuse(Id::LengthTwice)),
        // 007 is lawful, but read as octal by some.
        (None, Some([b'0', _, ..])) => Err(refuse(Id::LengthInvalid)),
        (None, Some(length)) => {
            decimal(length).map(|n| Some(Framing::Length(n))).ok_or_else(|| refuse(Id::LengthInvalid))
        }
    }
}
