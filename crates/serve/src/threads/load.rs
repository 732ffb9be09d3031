//! The load of each loop: requests in progress, and clients that will soon send their first. A client that rests
//! between two requests weighs nothing, one connection of HTTP/2 as much as its requests.
//!
//! Each loop counts its own, by a load and a store; the acceptor of a connection reads those of all.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The loads of all loops.
#[derive(Debug)]
pub(crate) struct LoopLoads(Box<[Load]>);

/// The load of one loop, on a cache line of its own: the others read theirs for each request.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Load(AtomicUsize);

impl LoopLoads {
    /// For `n` loops.
    pub fn new(loops: usize) -> LoopLoads {
        LoopLoads((0..loops).map(|_| Load::default()).collect())
    }

    /// The load of a loop.
    pub fn get(&self, number: usize) -> usize {
        self.0.get(number).map_or(0, |load| load.0.load(Relaxed))
    }

    /// Adds one to the load of a loop, whose thread this is.
    pub fn begins(&self, number: u32) {
        self.set(number, |n| n + 1);
    }

    /// Subtracts one.
    pub fn ends(&self, number: u32) {
        self.set(number, |n| n.saturating_sub(1));
    }

    fn set(&self, number: u32, to: impl FnOnce(usize) -> usize) {
        if let Some(Load(load)) = self.0.get(number as usize) {
            load.store(to(load.load(Relaxed)), Relaxed);
        }
    }
}
