//! Heaps that begin whole, by the map of this process.

#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::sync::{Arc, Barrier};
use std::thread;

/// The size of a heap, and what it is aligned to, bytes.
const HEAP: usize = 64 << 20;

/// How much of this thread's heap is writable, bytes.
fn writable() -> usize {
    // Larger than what a thread keeps of blocks that others have allocated.
    let block = vec![0u8; 3000];
    let at = block.as_ptr().addr();
    let heap = at / HEAP * HEAP;
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a map");
    let sizes = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let (from, to) = (usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?);
        // Neighbours are one range.
        ((from..to).contains(&at) && rest.starts_with("rw")).then(|| to.min(heap + HEAP) - from.max(heap))
    });
    sizes.sum()
}

#[test]
fn heaps_of_many_threads_begin_whole_until_all_have_begun() {
    if std::env::var_os("GLIBC_TUNABLES").is_some() || std::env::var_os("MALLOC_ARENA_MAX").is_some() {
        return;
    }
    // A heap that is given up goes to the next thread: all live until the end.
    let end = Arc::new(Barrier::new(4));
    let begin = || {
        let end = end.clone();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            tell.send(writable()).expect("a listener");
            end.wait();
        });
        (told.recv().expect("a size"), thread)
    };
    let few = weir_memory::begin_heaps(8, 0);
    let (size_of_few, first) = begin();
    drop(few);
    let many = weir_memory::begin_heaps(9, 32);
    let (size_of_many, second) = begin();
    drop(many);
    let (size_after, third) = begin();
    end.wait();
    for thread in [first, second, third] {
        thread.join().expect("an end");
    }
    assert_eq!(size_of_many, HEAP);
    assert!(size_of_few < 1 << 20 && size_after < 1 << 20, "{size_of_few} {size_after}");
}
