//! The compression of fields.

#[path = "../../crates/http2/tests/hpack/entry.rs"]
pub mod entry;
#[path = "../../crates/http2/tests/hpack/naive.rs"]
mod naive;
#[path = "../../crates/http2/tests/hpack/naive_encoder.rs"]
mod naive_encoder;
