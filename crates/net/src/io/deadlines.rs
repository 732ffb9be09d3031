//! Limits of seconds that every request and connection has: one number per slot, swept ten times a second.
//!
//! Setting one costs a store, so idle, head, body, write and response timeouts are free on the path of a request; they
//! end up to 0.1 s late. What must be exact is a [`crate::io::timers::Sleep`].

use crate::io::clock::Clock;
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};

/// Nanoseconds between two sweeps.
pub const TICK_NS: u64 = 100_000_000;

const NEVER: u32 = u32::MAX;

/// The deadlines of a loop.
pub struct Deadlines {
    clock: Clock,
    slots: RefCell<Slab<Slot>>,
    tick: Cell<u32>,
}

struct Slot {
    at_tick: u32,
    waker: Option<Waker>,
}

impl Deadlines {
    /// Without deadlines.
    pub fn new(clock: Clock) -> Rc<Deadlines> {
        Rc::new(Deadlines { clock, slots: RefCell::default(), tick: Cell::new(0) })
    }

    /// Adds a deadline that is off.
    pub fn add(self: &Rc<Self>) -> Deadline {
        let key = self.slots.borrow_mut().insert(Slot { at_tick: NEVER, waker: None });
        Deadline { all: self.clone(), key }
    }

    /// Wakes the tasks of deadlines that are due.
    pub fn sweep(&self) {
        let tick = u32::try_from(self.clock.now() / TICK_NS).unwrap_or(NEVER - 1);
        self.tick.set(tick);
        let due: Vec<Waker> = {
            let mut slots = self.slots.borrow_mut();
            slots.iter_mut().filter(|(_, s)| s.at_tick <= tick).filter_map(|(_, s)| s.waker.take()).collect()
        };
        for waker in due {
            waker.wake();
        }
    }

    /// When the first of those that a task waits for is due, ns.
    pub fn next_due_ns(&self) -> Option<u64> {
        let slots = self.slots.borrow();
        let awaited = slots.iter().filter(|(_, s)| s.waker.is_some() && s.at_tick != NEVER);
        awaited.map(|(_, s)| u64::from(s.at_tick) * TICK_NS).min()
    }

    /// Wakes all tasks that wait for a deadline, for another reason.
    pub fn wake_all(&self) {
        let all: Vec<Waker> =
            self.slots.borrow_mut().iter_mut().filter_map(|(_, slot)| slot.waker.take()).collect();
        all.into_iter().for_each(Waker::wake);
    }
}

/// A deadline; dropping it turns it off.
pub struct Deadline {
    all: Rc<Deadlines>,
    key: usize,
}

impl Deadline {
    /// Sets it to this time from now; `None`: never.
    pub fn set(&self, after_ns: Option<u64>) {
        let at_tick = match after_ns {
            None => NEVER,
            Some(ns) => {
                let ticks = u32::try_from(ns.div_ceil(TICK_NS)).unwrap_or(NEVER - 1);
                // The present tick is partly over, so one more.
                self.all.tick.get().saturating_add(ticks).saturating_add(1).min(NEVER - 1)
            }
        };
        if let Some(slot) = self.all.slots.borrow_mut().get_mut(self.key) {
            slot.at_tick = at_tick;
        }
    }

    /// Sets it to this time from now, unless it is due sooner.
    pub fn set_sooner(&self, after_ns: u64) {
        let before = self.all.slots.borrow().get(self.key).map(|slot| slot.at_tick);
        self.set(Some(after_ns));
        if let (Some(before), Some(slot)) = (before, self.all.slots.borrow_mut().get_mut(self.key)) {
            slot.at_tick = slot.at_tick.min(before);
        }
    }

    /// Adds another deadline of the same connection.
    pub fn another(&self, after_ns: Option<u64>) -> Deadline {
        let other = self.all.add();
        other.set(after_ns);
        other
    }

    /// Wakes the task that waits for it, for another reason.
    pub fn wake(&self) {
        let waker = self.all.slots.borrow_mut().get_mut(self.key).and_then(|slot| slot.waker.take());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether it has passed; otherwise wakes the task then.
    pub fn ended(&self, cx: &mut Context<'_>) -> bool {
        let mut slots = self.all.slots.borrow_mut();
        let Some(slot) = slots.get_mut(self.key) else { return true };
        if slot.at_tick <= self.all.tick.get() {
            return true;
        }
        if slot.waker.as_ref().is_none_or(|w| !w.will_wake(cx.waker())) {
            slot.waker = Some(cx.waker().clone());
        }
        false
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.all.slots.borrow_mut().try_remove(self.key);
    }
}
