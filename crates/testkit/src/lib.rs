//! What the tests of weir's crates share: files that freeze an output, random and mutated bytes, counted
//! allocations. Only tests depend on it, and it depends on none of the crates.
#![deny(unsafe_code)]

// An allocator is an unsafe trait.
#[allow(unsafe_code)]
mod allocations;
mod bytes;
mod frozen;
mod random;

pub use allocations::CountingAllocator;
pub use bytes::{check_bytes, corpus};
pub use frozen::{assert_frozen, assert_section, is_updating};
pub use random::Random;
