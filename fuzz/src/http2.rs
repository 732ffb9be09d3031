//! Connections of HTTP/2.

#[path = "../../crates/http2/tests/peers/entry.rs"]
pub mod entry;
