//! A queue of requests that wait on any loop of the process, in order of arrival. No lock: numbers and messages.
//!
//! **State.** A waiter takes the next ticket. A loop keeps its own waiters, in order, and publishes the lowest ticket
//! among them (`lowest[loop]`, none: `NOBODY`). Only the *first* waiter (its ticket is the lowest of all published
//! ones) may check for room.
//!
//! **Notification.** After every change that may admit a waiter (a slot was freed, a waiter has left),
//! [`WaitQueue::notify_first`] finds the lowest ticket and has its loop check again: its own by waking the task,
//! another by a message with the queue's number. A message that is already on its way is not sent twice
//! (`notified[loop]`).
//!
//! **Nothing is lost.** Room is made *before* the published tickets are read, and a ticket is published *before* its
//! owner checks for room; all of it in one order (`SeqCst`). So of a waiter that finds no room and a thread that
//! makes room at the same time at least one sees the other. The same holds for "another is before me" against "I have
//! left". `notified` is cleared before the receiver checks, and set after the room was made.
//!
//! **Order.** Between taking a ticket and publishing it, a later waiter could take itself for the first. So a loop
//! without a published ticket first publishes a bound, the number of the next ticket; others take that for a ticket,
//! and hold back. Once the real one is published, waiters that held back for nothing are notified.
//!
//! Requests that arrive while others wait join the queue, so none overtakes. A cancelled waiter leaves by dropping
//! its [`Waiter`]; the one behind it is notified if it is first now.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::task::{Context, Waker};
use tokio::sync::mpsc::UnboundedSender;

/// No ticket.
const NOBODY: u64 = u64::MAX;

/// The state of a queue over all loops.
pub(crate) struct SharedQueue {
    number: u32,
    lowest: Box<[AtomicU64]>,
    notified: Box<[AtomicBool]>,
    next: AtomicU64,
    waiting: AtomicU64,
    mail: Arc<[UnboundedSender<u32>]>,
}

impl SharedQueue {
    /// An empty queue of this number; `mail` leads to each loop.
    pub fn new(number: u32, mail: Arc<[UnboundedSender<u32>]>) -> SharedQueue {
        SharedQueue {
            number,
            lowest: mail.iter().map(|_| AtomicU64::new(NOBODY)).collect(),
            notified: mail.iter().map(|_| AtomicBool::new(false)).collect(),
            next: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            mail,
        }
    }

    /// Whether no request waits, or is announced to.
    #[cfg(test)]
    pub fn is_at_rest(&self) -> bool {
        self.waiting.load(SeqCst) == 0 && self.first().0 == NOBODY
    }

    /// Has the first waiter check again, on any loop: there may be more room.
    pub fn look_again(&self) {
        let (ticket, of) = self.first();
        if ticket != NOBODY && !self.notified[of].swap(true, SeqCst) {
            // A loop that has ended has no waiters.
            let _ = self.mail[of].send(self.number);
        }
    }

    /// The number waiting, on all loops.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(SeqCst)
    }

    fn first(&self) -> (u64, usize) {
        let tickets = self.lowest.iter().map(|t| t.load(SeqCst)).zip(0..);
        tickets.min().unwrap_or((NOBODY, 0))
    }
}

/// The queue as one loop sees it.
pub(crate) struct WaitQueue {
    shared: Arc<SharedQueue>,
    /// The loop.
    me: usize,
    waiting: RefCell<VecDeque<(u64, Option<Waker>)>>,
    notified: Cell<u64>,
}

impl WaitQueue {
    /// The part of loop `me`.
    pub fn new(shared: Arc<SharedQueue>, me: usize) -> Rc<WaitQueue> {
        Rc::new(WaitQueue { shared, me, waiting: RefCell::default(), notified: Cell::new(0) })
    }

    /// Whether no request waits, on any loop.
    pub fn is_empty(&self) -> bool {
        self.shared.waiting.load(SeqCst) == 0
    }

    /// The number waiting, on all loops.
    pub fn waiting(&self) -> u64 {
        self.shared.waiting.load(SeqCst)
    }

    /// Joins at the end, unless `most` wait already.
    pub fn join(self: &Rc<Self>, most: u64) -> Option<Waiter> {
        let more = |n: u64| (n < most).then_some(n + 1);
        self.shared.waiting.fetch_update(SeqCst, SeqCst, more).ok()?;
        let lowest = &self.shared.lowest[self.me];
        let mut waiting = self.waiting.borrow_mut();
        let alone = waiting.is_empty();
        let bound = self.shared.next.load(SeqCst);
        if alone {
            lowest.store(bound, SeqCst);
        }
        let ticket = self.shared.next.fetch_add(1, SeqCst);
        waiting.push_back((ticket, None));
        drop(waiting);
        if alone && ticket != bound {
            lowest.store(ticket, SeqCst);
            self.notify_first();
        }
        Some(Waiter { queue: self.clone(), ticket })
    }

    /// Has the first waiter check again.
    pub fn notify_first(&self) {
        let (ticket, of) = self.shared.first();
        if ticket == NOBODY {
            return;
        }
        if of == self.me {
            self.look_again();
        } else if !self.shared.notified[of].swap(true, SeqCst) {
            // A loop that has ended has no waiters.
            let _ = self.shared.mail[of].send(self.shared.number);
        }
    }

    /// A message has come.
    pub fn notified(&self) {
        self.shared.notified[self.me].store(false, SeqCst);
        self.look_again();
    }

    /// The number of notifications of this loop's first waiter: for users that check in another way.
    pub fn notifications(&self) -> u64 {
        self.notified.get()
    }

    fn look_again(&self) {
        self.notified.set(self.notified.get() + 1);
        let waker = self.waiting.borrow_mut().front_mut().and_then(|(_, waker)| waker.take());
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A position in a queue; dropping it leaves.
pub(crate) struct Waiter {
    queue: Rc<WaitQueue>,
    ticket: u64,
}

impl Waiter {
    /// Whether it is the first; otherwise the task is woken when that may have changed.
    pub fn is_first(&self, cx: &mut Context<'_>) -> bool {
        let mut waiting = self.queue.waiting.borrow_mut();
        // Tickets ascend, so a position is found without a walk.
        if let Ok(at) = waiting.binary_search_by_key(&self.ticket, |(n, _)| *n) {
            waiting[at].1 = Some(cx.waker().clone());
            at == 0 && self.queue.shared.first().0 == self.ticket
        } else {
            false
        }
    }

    #[cfg(test)]
    pub fn ticket(&self) -> u64 {
        self.ticket
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let queue = &self.queue;
        let mut waiting = queue.waiting.borrow_mut();
        if let Ok(at) = waiting.binary_search_by_key(&self.ticket, |(n, _)| *n) {
            waiting.remove(at);
            if at == 0 {
                let lowest = waiting.front().map_or(NOBODY, |(n, _)| *n);
                queue.shared.lowest[queue.me].store(lowest, SeqCst);
            }
        }
        drop(waiting);
        queue.shared.waiting.fetch_sub(1, SeqCst);
        queue.notify_first();
    }
}
