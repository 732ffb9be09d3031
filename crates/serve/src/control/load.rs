//! What each loop carries: requests under way, and clients that have asked nothing yet and soon will. A client that rests
//! between two requests weighs nothing, one connection of HTTP/2 as much as is asked on it.
//!
//! Each loop counts its own, by a load and a store; whoever accepts a connection reads those of all.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The loads of all loops.
#[derive(Debug)]
pub(crate) struct LoopLoads(Box<[Load]>);

/// The load of one, on a cache line of its own: the others look at theirs for each request.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Load(AtomicUsize);

impl LoopLoads {
    /// Of so many loops.
    pub fn new(loops: usize) -> LoopLoads {
        LoopLoads((0..loops).map(|_| Load::default()).collect())
    }

    /// What a loop carries.
    pub fn of(&self, number: usize) -> usize {
        self.0.get(number).map_or(0, |load| load.0.load(Relaxed))
    }

    /// A loop, whose thread this is, carries one more.
    pub fn begins(&self, number: u32) {
        self.set(number, |n| n + 1);
    }

    /// It carries one less.
    pub fn ends(&self, number: u32) {
        self.set(number, |n| n.saturating_sub(1));
    }

    fn set(&self, number: u32, to: impl FnOnce(usize) -> usize) {
        if let Some(Load(load)) = self.0.get(number as usize) {
            load.store(to(load.load(Relaxed)), Relaxed);
        }
    }
}
