//! What of a heap is writable, by the map of this process.

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
fn a_heap_is_opened_by_its_thread() {
    if std::env::vars_os()
        .any(|(name, _)| name.to_string_lossy().starts_with("MALLOC_") || name == "GLIBC_TUNABLES")
    {
        return;
    }
    weir_memory::allow_heaps(usize::MAX / 2, 0);
    // A heap that is given up goes to the next thread: both live until the end.
    let end = Arc::new(Barrier::new(3));
    let begin = |opens: bool| {
        let end = end.clone();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            if opens {
                weir_memory::open_heap();
            }
            tell.send(writable()).expect("a listener");
            end.wait();
        });
        (told.recv().expect("a size"), thread)
    };
    let (opened, first) = begin(true);
    let (other, second) = begin(false);
    end.wait();
    for thread in [first, second] {
        thread.join().expect("an end");
    }
    assert!(opened > 60 << 20 && other < 1 << 20, "{opened} {other}");
}
