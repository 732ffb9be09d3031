//! What the allocator keeps and the process does not need, given back to the system.
//!
//! While a reload is adopted two generations are in memory. The C library keeps what the former one leaves, a heap for
//! each thread, for as long as anything lies behind it. It has a call that gives whole pages back, which Rust's
//! libraries do not offer: this crate is that call, and the only one of the product with unsafe code.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    use std::ffi::c_int;

    // Safety: the signature is that of malloc.h. It may be called at any time, by any thread, and locks each heap itself.
    unsafe extern "C" {
        pub safe fn malloc_trim(pad: usize) -> c_int;
    }
}

/// More than any small piece, of bytes.
const LARGE: usize = 4096;

/// Merges the small pieces that this thread has freed with what is free beside them. The C library does it at some later
/// request for more than a KiB, for all pieces at once: after ten thousand that request takes milliseconds.
pub fn merge_freed() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
}

/// Gives back whole pages that are free, of the heaps of all threads. A thread that allocates meanwhile may wait some
/// milliseconds. Does nothing where the C library has no such call.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    let _ = system::malloc_trim(0);
}
