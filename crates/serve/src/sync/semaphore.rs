//! A number of slots that the whole process shares: a `queue`'s, or those of each target of a balancer.
//!
//! Slots are counters that are taken by compare-and-swap; who finds none waits in a [`Line`]. Freeing one is: count down,
//! then have the first in line look. [`Line`] says why nothing is lost and nobody overtakes.

use crate::exchange::failure::Failure;
use crate::io::timers::{Sleep, has_ended};
use crate::sync::wait_queue::Line;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::Poll;
use weir_policy::Kind;

/// The counters: one for a queue, one per target for a balancer.
pub(crate) struct Slots {
    inside: Box<[AtomicU32]>,
    most: u32,
}

impl Slots {
    /// `n` counters that go up to `most`.
    pub fn new(n: usize, most: u32) -> Slots {
        Slots { inside: (0..n).map(|_| AtomicU32::new(0)).collect(), most }
    }

    /// Counts one more, if there is room.
    pub fn take(&self, at: u32) -> bool {
        let more = |n: u32| (n < self.most).then_some(n + 1);
        self.inside[at as usize].fetch_update(SeqCst, SeqCst, more).is_ok()
    }

    /// Whether there is no room.
    pub fn is_full(&self, at: u32) -> bool {
        self.inside[at as usize].load(SeqCst) >= self.most
    }

    /// How many are inside.
    #[cfg(test)]
    pub fn inside(&self, at: u32) -> u32 {
        self.inside[at as usize].load(SeqCst)
    }

    fn free(&self, at: u32) {
        self.inside[at as usize].fetch_sub(1, SeqCst);
    }
}

/// Slots and their line as one loop has them.
pub(crate) struct Gate {
    pub slots: Arc<Slots>,
    pub line: Rc<Line>,
}

impl Gate {
    /// A slot of a queue: at once, or when it is the request's turn.
    ///
    /// # Errors
    /// `overloaded` if `capacity` wait already, `timeout` when `limit` ends before.
    pub async fn enter(
        self: &Rc<Self>,
        capacity: u64,
        limit: impl FnOnce() -> Option<Sleep>,
    ) -> Result<Slot, Failure> {
        if self.line.is_empty() && self.slots.take(0) {
            return Ok(self.slot(0));
        }
        let Some(place) = self.line.join(capacity) else { return Err(Failure::new(Kind::Overloaded)) };
        let mut limit = limit();
        let entered = poll_fn(|cx| {
            if place.is_first(cx) && self.slots.take(0) {
                return Poll::Ready(true);
            }
            if has_ended(&mut limit, cx) { Poll::Ready(false) } else { Poll::Pending }
        })
        .await;
        drop(place);
        if entered { Ok(self.slot(0)) } else { Err(Failure::new(Kind::Timeout)) }
    }

    /// The slot that was taken.
    pub fn slot(self: &Rc<Self>, at: u32) -> Slot {
        Slot { gate: self.clone(), at }
    }
}

/// A slot; dropped, it is free.
pub(crate) struct Slot {
    gate: Rc<Gate>,
    at: u32,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.gate.slots.free(self.at);
        self.gate.line.tell_first();
    }
}

#[cfg(test)]
#[path = "semaphore_tests.rs"]
mod tests;
