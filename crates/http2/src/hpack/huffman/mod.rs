//! Huffman's code for strings (RFC 7541 §5.2 and appendix B).

mod code;
mod decode;
mod encode;

pub(super) use decode::{decode, room};
pub(super) use encode::{encode, encoded_len};
