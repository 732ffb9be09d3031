//! Memory as the system, the allocator and the cores' caches have it.
//!
//! While a reload is adopted two generations are in memory. The C library keeps what the former one leaves, a heap for
//! each thread, for as long as anything lies behind it. It has a call that gives whole pages back. It takes large blocks
//! from such heaps too, once one of their size has been freed, where the next scenario of a simulation does not fit into
//! the gaps: a call keeps them outside. Threads beyond eight for each core share heaps, and wait for each other's locks;
//! and threads whose heaps grow at once wait for the map of the process: calls raise the number, and let heaps grow ahead.
//! A simulation of many servers finds little of its next event in a cache, and waits for it if its load does not begin
//! before: an instruction does that. Rust's stable libraries offer none of these without unsafe code: this crate is
//! these calls, and the only one of the product that has any.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    use std::ffi::c_int;

    // Safety: the signatures are those of malloc.h. The first may be called at any time, by any thread, and locks each heap itself.
    // The second locks one heap and writes a parameter, a word that other threads may read meanwhile: its manual wants it called
    // before they begin, and it is called before the loops, or the threads of a simulation. Any value of the word is a valid one.
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

/// Lets each of these busy threads have a heap of its own, and `others` beside them: threads of one heap wait for each other, and
/// the C library makes eight heaps for each core. Where they are more than the cores, blocks of less than 32 MiB lie in heaps
/// for the rest of the process: each block outside of them locks the map of the process twice, and a thread that holds that
/// lock may have no core. To be called before threads begin. What the process's environment sets is kept (`MALLOC_ARENA_MAX`,
/// `MALLOC_MMAP_THRESHOLD_` and `MALLOC_MMAP_MAX_`, or the same in `GLIBC_TUNABLES`). Does nothing where the C library has no such call.
pub fn allow_heaps(busy: usize, others: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if let (true, false, Ok(most)) = (
            busy > HEAPS_A_CORE * cores,
            is_set("MALLOC_ARENA_MAX", "glibc.malloc.arena_max"),
            (busy + others).try_into(),
        ) {
            let _ = system::mallopt(ARENA_MAX, most);
        }
        // The library would raise it by itself, to the largest block that was freed.
        let is_set_outside = is_set("MALLOC_MMAP_THRESHOLD_", "glibc.malloc.mmap_threshold")
            || is_set("MALLOC_MMAP_MAX_", "glibc.malloc.mmap_max");
        if busy > cores && !is_set_outside {
            let _ = system::mallopt(MMAP_THRESHOLD, LARGEST_INSIDE);
        }
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = (busy, others);
}

/// Lets the heap of this thread grow to 60 MiB without a call of the system: addresses, none of which takes memory before it is
/// used. The C library lets a heap grow by a page at a time, each by a lock of the map of the process. For busy threads that
/// are more than the cores, after [`allow_heaps`] with their number; elsewhere such blocks lie outside of heaps, and the library
/// raises the size from which they do.
pub fn open_heap() {
    let block = || {
        let mut block = Vec::<u8>::new();
        let has_room = block.try_reserve_exact(HALF_A_HEAP).is_ok();
        std::hint::black_box((has_room, block))
    };
    // A heap ends at 64 MiB, and no block in it is larger than half of that.
    drop((block(), block()));
}

/// Nearly half of what a heap can be, bytes.
const HALF_A_HEAP: usize = 30 << 20;

/// Parameters of malloc.h. Once `ARENA_MAX` is set there are no more heaps than that.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENA_MAX: std::ffi::c_int = -8;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD: std::ffi::c_int = -3;

/// Heaps that the C library makes for each core.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAPS_A_CORE: usize = 8;

/// The largest block that the C library takes from a heap, bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGEST_INSIDE: std::ffi::c_int = 32 << 20;

/// Whether the environment sets a parameter, by its variable or as a tunable.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn is_set(variable: &str, tunable: &str) -> bool {
    let tunables = std::env::var_os("GLIBC_TUNABLES").unwrap_or_default();
    std::env::var_os(variable).is_some() || tunables.to_string_lossy().contains(tunable)
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
