//! What the tests of weir's crates share: files that freeze an output, random and mutated bytes, addresses. Only tests
//! depend on it, and it depends on none of the crates.
#![forbid(unsafe_code)]

mod bytes;
mod frozen;
mod random;

pub use bytes::{check_bytes, corpus};
pub use frozen::{assert_frozen, assert_section, is_updating};
pub use random::Random;
