//! Memory as the system, the allocator and the cores' caches have it.
//!
//! While a reload is adopted two generations are in memory. The C library keeps what the former one leaves, a heap for
//! each thread, for as long as anything lies behind it. It has a call that gives whole pages back. It takes large blocks
//! from such heaps too, once one of their size has been freed, where the next scenario of a simulation does not fit into
//! the gaps: a call keeps them outside. And threads beyond eight for each core share heaps, and wait for each other's locks,
//! and many threads whose heaps grow at once wait for the map of the process: calls raise the number, and let heaps begin whole. A simulation of many servers finds little of its next event in a cache, and waits for it if
//! its load does not begin before: an instruction does that. Rust's stable libraries offer none of these without unsafe
//! code: this crate is these calls, and the only one of the product that has any.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    use std::ffi::c_int;

    // Safety: the signature is that of malloc.h. It may be called at any time, by any thread, and locks each heap itself.
    unsafe extern "C" {
        pub safe fn malloc_trim(pad: usize) -> c_int;
        pub safe fn mallopt(param: c_int, value: c_int) -> c_int;
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

/// Lets each of these busy threads have a heap of its own, and `others` beside them: threads of one heap wait for each other, and the
/// C library makes eight heaps for each core. Where they are many, heaps that begin before the result is dropped are writable
/// whole, and large blocks lie in them: each step by which a heap grows and each block outside of heaps locks the map of the
/// process, for which 64 threads have waited 250 ms. Has an effect before eight threads have allocated. Does nothing where the
/// process's environment sets the library's allocator (`MALLOC_ARENA_MAX`, `GLIBC_TUNABLES`), or where the C library has no
/// such call.
#[must_use]
pub fn begin_heaps(busy: usize, others: usize) -> BeginningHeaps {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if !is_set_outside() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if let (true, Ok(most)) = (busy > HEAPS_A_CORE * cores, (busy + others).try_into()) {
            let _ = system::mallopt(ARENA_MAX, most);
        }
        if busy > FEW_THREADS {
            let _ = system::mallopt(MMAP_THRESHOLD, LARGEST_INSIDE);
            let _ = system::mallopt(TOP_PAD, WHOLE_HEAP);
            return BeginningHeaps { are_whole: true };
        }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = (busy, others);
    BeginningHeaps { are_whole: false }
}

/// Heaps that are writable whole from their beginning, until this is dropped.
pub struct BeginningHeaps {
    are_whole: bool,
}

impl Drop for BeginningHeaps {
    fn drop(&mut self) {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        if self.are_whole {
            // It is also what a heap keeps of free memory at its end.
            let _ = system::mallopt(TOP_PAD, FIRST_TOP_PAD);
        }
    }
}

/// Parameters of malloc.h. Once `ARENA_MAX` is set there are no more heaps than that.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENA_MAX: std::ffi::c_int = -8;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD: std::ffi::c_int = -3;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const TOP_PAD: std::ffi::c_int = -2;

/// Heaps that the C library makes for each core.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAPS_A_CORE: usize = 8;

/// Up to so many threads wait for little where their heaps grow at the same time.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FEW_THREADS: usize = 8;

/// The largest block that the C library can take from a heap, and the size of a heap, bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGEST_INSIDE: std::ffi::c_int = 32 * 1024 * 1024;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const WHOLE_HEAP: std::ffi::c_int = 64 * 1024 * 1024;

/// The C library's first `TOP_PAD`, bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FIRST_TOP_PAD: std::ffi::c_int = 128 * 1024;

/// Whether the environment sets the allocator.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn is_set_outside() -> bool {
    let tunables = std::env::var_os("GLIBC_TUNABLES").unwrap_or_default();
    std::env::var_os("MALLOC_ARENA_MAX").is_some() || tunables.to_string_lossy().contains("glibc.malloc.")
}

/// Blocks of this size and more lie outside of heaps, bytes: the C library's first threshold.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const OUTSIDE: std::ffi::c_int = 128 * 1024;

/// From now on each large block lies outside of heaps, so that it goes back whole when it is freed. Does nothing where the
/// C library has no such call.
pub fn keep_large_blocks_outside() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // To set it also ends that the library raises it.
        let _ = system::mallopt(MMAP_THRESHOLD, OUTSIDE);
    }
}

/// Lets the cache load the line where this begins, without waiting for it. Does nothing where stable Rust has no such
/// instruction.
#[inline(always)]
pub fn prefetch<T>(of: &T) {
    // Safety: a hint, which reads nothing that the program could see, of a place that is valid anyway.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(of).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = of;
}
