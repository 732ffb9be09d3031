//! See `http2::entry::client`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_fuzz::http2::entry::client(bytes));
