//! An allocator that counts what each thread asks of it, for tests of work that must not allocate, or not grow. A test
//! program names it as its `#[global_allocator]`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counted.
pub struct CountingAllocator;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

impl CountingAllocator {
    /// How often this thread has allocated or grown memory since it started.
    pub fn count() -> usize {
        COUNT.get()
    }
}

// Safety: everything is handed on to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        unsafe { System.realloc(at, layout, size) }
    }
}
