//! See `entry::request_head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| weir_fuzz::entry::request_head(bytes));
