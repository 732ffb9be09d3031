//! Permits shared by the whole process: a `queue`'s, or those of each target of a balancer.
//!
//! **Idea.** A counter for each target, incremented by compare-and-swap; a request without a permit waits in a
//! [`WaitQueue`]. To free a permit: decrement, then wake the first waiter. [`WaitQueue`] explains why no wake-up is
//! lost and no request overtakes.
//!
//! **Full targets.** A balancer must know which of its targets are full before it picks. So that no pick reads all
//! counters, the full ones have a bit each, and every change of a bit a new version: a loop compares the version, and
//! only then the words. A thread that moves a counter over the limit writes the bit, then reads the counter again,
//! until they agree: of two that write at once the later one sees the other's change.

use crate::sync::chunks::Chunks;
use crate::sync::wait_queue::WaitQueue;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::task::Poll;
use weir_model::busy::share_of_slots;
use weir_net::io::timers::{Sleep, has_ended};
use weir_policy::TargetId;
use weir_policy::slow_start::limit_at;
use weir_policy::snapshot::Snapshot;

/// The counters: one for a queue, one per target for a balancer.
pub(crate) struct Semaphore {
    inside: Chunks<AtomicU32>,
    /// The number of counters.
    count: AtomicU32,
    most: AtomicU32,
    /// The limit of each counter that may have less than `most`, plus one; 0: it is `most`.
    limits: Chunks<AtomicU32>,
    /// A bit for each counter at its limit.
    full: Chunks<AtomicU64>,
    /// Changes of `full`.
    version: AtomicU64,
}

impl Semaphore {
    /// `n` counters that go up to `most`.
    pub fn new(n: usize, most: u32) -> Semaphore {
        let semaphore = Semaphore {
            inside: Chunks::with_len(n),
            count: AtomicU32::new(n as u32),
            most: AtomicU32::new(most),
            limits: Chunks::with_len(n),
            full: Chunks::with_len(n.div_ceil(64)),
            version: AtomicU64::new(1),
        };
        if most == 0 {
            (0..n as u32).for_each(|at| semaphore.show(at));
        }
        semaphore
    }

    /// Grows to at least this number of counters, with another limit: if more are inside than allowed, no request
    /// enters until fewer are. Returns whether there may be more room than before.
    pub fn change(&self, n: usize, most: u32) -> bool {
        self.inside.grow(n);
        self.limits.grow(n);
        self.full.grow(n.div_ceil(64));
        let grown = self.count.fetch_max(n as u32, SeqCst) < n as u32;
        let before = self.most.swap(most, SeqCst);
        if grown || before != most {
            (0..self.count.load(SeqCst)).for_each(|at| self.show(at));
        }
        grown || before < most
    }

    /// The limit of all counters, as far as theirs is not lowered.
    pub fn most(&self) -> u32 {
        self.most.load(SeqCst)
    }

    /// The limit of a counter.
    pub fn limit(&self, at: u32) -> u32 {
        let lowered = self.limits.get(at).and_then(|limit| limit.load(SeqCst).checked_sub(1));
        lowered.map_or(self.most(), |limit| limit.min(self.most()))
    }

    /// Sets the limit of a counter below that of all, for one thread; `None`: it is that of all. If more are inside than
    /// allowed, no request enters until fewer are. A request that waits is not notified here.
    pub fn set_limit(&self, at: u32, limit: Option<u32>) {
        let Some(known) = self.limits.get(at) else { return };
        let lowered = limit.map_or(0, |limit| limit.saturating_add(1));
        if known.swap(lowered, SeqCst) != lowered {
            self.show(at);
        }
    }

    /// Takes a permit, if there is one.
    pub fn take(&self, at: u32) -> bool {
        let Some(inside) = self.inside.get(at) else { return false };
        let more = |n: u32| (n < self.limit(at)).then_some(n + 1);
        match inside.fetch_update(SeqCst, SeqCst, more) {
            Ok(before) => {
                if before + 1 >= self.limit(at) {
                    self.show(at);
                }
                true
            }
            Err(_) => false,
        }
    }

    /// Takes a permit regardless of the limit.
    fn enter(&self, at: u32) {
        let Some(inside) = self.inside.get(at) else { return };
        if inside.fetch_add(1, SeqCst) + 1 >= self.limit(at) {
            self.show(at);
        }
    }

    /// The number inside.
    pub fn inside(&self, at: u32) -> u32 {
        self.inside.get(at).map_or(0, |inside| inside.load(SeqCst))
    }

    /// The number inside all.
    pub fn all_inside(&self) -> u64 {
        (0..self.count.load(SeqCst)).map(|at| u64::from(self.inside(at))).sum()
    }

    fn is_full(&self, at: u32) -> bool {
        self.inside(at) >= self.limit(at)
    }

    fn free(&self, at: u32) {
        let Some(inside) = self.inside.get(at) else { return };
        if inside.fetch_sub(1, SeqCst) >= self.limit(at) {
            self.show(at);
        }
    }

    /// Sets the bit of a counter from the counter.
    fn show(&self, at: u32) {
        let (Some(word), bit) = (self.full.get(at / 64), 1 << (at % 64)) else { return };
        loop {
            let is_full = self.is_full(at);
            let _ = if is_full { word.fetch_or(bit, SeqCst) } else { word.fetch_and(!bit, SeqCst) };
            if self.is_full(at) == is_full {
                break;
            }
        }
        self.version.fetch_add(1, SeqCst);
    }
}

/// Why there is no permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The queue is full.
    Full,
    /// The time for waiting has ended.
    TimedOut,
}

/// A semaphore and its wait queue as one loop sees them.
pub(crate) struct LocalSemaphore {
    shared: Arc<Semaphore>,
    pub queue: Rc<WaitQueue>,
    /// The part of `full` that this loop has seen, and its version.
    seen: RefCell<Vec<u64>>,
    version: Cell<u64>,
}

impl LocalSemaphore {
    /// One loop's part of it.
    pub fn new(shared: Arc<Semaphore>, queue: Rc<WaitQueue>) -> LocalSemaphore {
        LocalSemaphore { shared, queue, seen: RefCell::default(), version: Cell::new(0) }
    }

    /// Whether this is a part of that one.
    pub fn is_of(&self, shared: &Arc<Semaphore>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// The number inside, over all loops.
    pub fn inside(&self, at: u32) -> u32 {
        self.shared.inside(at)
    }

    /// The most that may be inside now.
    pub fn limit(&self, at: u32) -> u32 {
        self.shared.limit(at)
    }

    /// Gives each target the share of the limit that its health leaves it ([`limit_at`]).
    pub fn heed(&self, health: &Snapshot) {
        let most = self.shared.most();
        for target in TargetId::all(health.len()) {
            let limit = limit_at(most, health.view(target, true).room);
            self.shared.set_limit(target.0, Some(limit).filter(|limit| *limit < most));
        }
    }

    /// The share of a queue's permits that are taken, counting those that requests which wait are about to take.
    pub fn busy_share(&self) -> f32 {
        let most = self.shared.most.load(SeqCst);
        let all = u64::from(self.inside(0)).saturating_add(self.queue.waiting());
        share_of_slots(all.min(u64::from(most)) as u32, most)
    }

    /// A permit of a queue: at once, or when it is the request's turn.
    ///
    /// # Errors
    /// When `capacity` wait already, or `limit` ends before.
    pub async fn acquire(
        self: &Rc<Self>,
        capacity: u64,
        limit: impl FnOnce() -> Option<Sleep>,
    ) -> Result<Permit, Denied> {
        if self.queue.is_empty() && self.shared.take(0) {
            return Ok(self.permit(0));
        }
        let Some(waiter) = self.queue.join(capacity) else { return Err(Denied::Full) };
        let mut limit = limit();
        let acquired = poll_fn(|cx| {
            if waiter.is_first(cx) && self.shared.take(0) {
                return Poll::Ready(true);
            }
            if has_ended(&mut limit, cx) { Poll::Ready(false) } else { Poll::Pending }
        })
        .await;
        drop(waiter);
        if acquired { Ok(self.permit(0)) } else { Err(Denied::TimedOut) }
    }

    /// A permit of a target, if there is one.
    pub fn take(self: &Rc<Self>, at: u32) -> Option<Permit> {
        if self.shared.take(at) {
            return Some(self.permit(at));
        }
        // A loop that has seen it full is notified when it is not.
        let (mut seen, word) = (self.seen.borrow_mut(), at as usize / 64);
        if word >= seen.len() {
            seen.resize(word + 1, 0);
        }
        seen[word] |= 1 << (at % 64);
        None
    }

    /// A permit for a request that was at the target before there was a limit: there may be more of them than the
    /// limit.
    pub fn stand_in(self: &Rc<Self>, at: u32) -> Permit {
        self.shared.enter(at);
        self.permit(at)
    }

    /// Reports targets that have become full, or are not any more, since the last call.
    pub fn changes(&self, mut tell: impl FnMut(u32, bool)) {
        let version = self.shared.version.load(SeqCst);
        if self.version.replace(version) == version {
            return;
        }
        let (mut seen, words) = (self.seen.borrow_mut(), self.shared.count.load(SeqCst).div_ceil(64));
        if seen.len() < words as usize {
            seen.resize(words as usize, 0);
        }
        let full = (0..words).filter_map(|at| self.shared.full.get(at));
        for (base, (word, seen)) in (0u32..).step_by(64).zip(full.zip(seen.iter_mut())) {
            let now = word.load(SeqCst);
            let mut changed = now ^ std::mem::replace(seen, now);
            while changed != 0 {
                let bit = changed.trailing_zeros();
                changed &= changed - 1;
                tell(base + bit, now >> bit & 1 == 1);
            }
        }
    }

    fn permit(self: &Rc<Self>, at: u32) -> Permit {
        Permit { semaphore: self.clone(), at }
    }
}

/// A permit; dropped, it is free.
pub(crate) struct Permit {
    semaphore: Rc<LocalSemaphore>,
    at: u32,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.semaphore.shared.free(self.at);
        self.semaphore.queue.notify_first();
    }
}

#[cfg(test)]
#[path = "semaphore_tests.rs"]
mod tests;
