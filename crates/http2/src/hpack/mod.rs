//! Compression of fields (RFC 7541).
//!
//! A [`Decoder`] reads the blocks that a peer sends on one connection, an [`Encoder`] writes those that the peer reads.
//! Each has a table of recent fields, which is empty, and takes no memory, until a field is put into it.

mod decoder;
mod encoder;
mod error;
mod huffman;
mod integer;
mod long_field;
mod policy;
mod recent;
mod static_table;
mod table;

pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::HpackError;
pub use policy::Policy;

/// A field as it is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name; names are written as they are given, so that a writer gives them in lower case.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Whether it came marked as never indexed, and must be written so again (RFC 7541 §6.2.3).
    pub is_sensitive: bool,
}
