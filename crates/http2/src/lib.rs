//! HTTP/2 (RFC 9113) of an intermediary, sans-I/O: bytes in, events and bytes out.
//!
//! Nothing here knows a socket, a clock or a thread; time is an argument.
#![forbid(unsafe_code)]

mod hpack;

pub use hpack::{Decoder, Encoder, Field, HpackError, Policy};
