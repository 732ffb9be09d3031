//! The entry points of the tests of `weir-http1` and `weir-http2`, for libFuzzer.

#[path = "../../crates/http1/tests/http1/entry.rs"]
pub mod entry;
pub mod hpack;
pub mod http2;
