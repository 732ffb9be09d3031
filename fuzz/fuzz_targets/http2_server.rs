//! See `http2::entry::server`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_fuzz::http2::entry::server(bytes));
