//! See `hpack::entry::blocks`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_fuzz::hpack::entry::blocks(bytes));
