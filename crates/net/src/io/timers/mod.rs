//! Timers true to 0.1 ms: a heap per loop and one timerfd for its head. (epoll's own wait is a millisecond coarse.)
//!
//! It wakes a little early and stays awake until the timer is due, by [`wake_latency`]. A wait that need not be exact
//! ([`Timers::sleep_until_about`]) does without, since that is time on a core; an exact one that is due with it, or less than 0.3 ms
//! after it, may be as late.
//!
//! For rare or short waits: `timeout`, `delay`, backoff, queues. Limits of seconds that every request has are
//! [`crate::io::deadlines`], which cost one store.

mod wake_latency;

use crate::io::clock::Clock;
use crate::io::runtime::{Runtime, Source};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use wake_latency::WakeLatency;

/// This number of dropped entries is tolerated.
const SWEPT: usize = 1024;

/// The timers of a loop.
pub struct Timers {
    clock: Clock,
    fd: OwnedFd,
    source: Source,
    entries: RefCell<Slab<Entry>>,
    /// (time, order of setting, entry); entries that were dropped or moved are skipped when they come up.
    heap: RefCell<BinaryHeap<Reverse<(u64, u64, usize)>>>,
    next: Cell<u64>,
    armed_ns: Cell<u64>,
    /// When the descriptor is due, if its lateness is measured.
    tells_ns: Cell<Option<u64>>,
    latency: RefCell<WakeLatency>,
}

struct Entry {
    /// The serial number of the valid entry in the heap.
    serial: u64,
    is_exact: bool,
    fired: bool,
    waker: Option<Waker>,
}

/// When the next timer is due.
#[derive(Clone, Copy)]
struct Due {
    at_ns: u64,
    is_exact: bool,
}

impl Timers {
    /// Timers on this runtime.
    pub fn new(runtime: &Runtime, clock: Clock) -> io::Result<Rc<Timers>> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Rc::new(Timers {
            clock,
            source: Source::new(runtime, &fd)?,
            fd,
            entries: RefCell::default(),
            heap: RefCell::default(),
            next: Cell::new(0),
            armed_ns: Cell::new(u64::MAX),
            tells_ns: Cell::new(None),
            latency: RefCell::default(),
        }))
    }

    /// A wait until this time.
    pub fn sleep_until(self: &Rc<Self>, at_ns: u64) -> Sleep {
        self.set(at_ns, true)
    }

    /// A wait until about this time: not before, and late by what the system takes to wake the loop, 0.3 ms in a virtual
    /// machine.
    pub fn sleep_until_about(self: &Rc<Self>, at_ns: u64) -> Sleep {
        self.set(at_ns, false)
    }

    fn set(self: &Rc<Self>, at_ns: u64, is_exact: bool) -> Sleep {
        let serial = self.next.get();
        self.next.set(serial + 1);
        let key = self.entries.borrow_mut().insert(Entry { serial, is_exact, fired: false, waker: None });
        self.heap.borrow_mut().push(Reverse((at_ns, serial, key)));
        self.sweep();
        if at_ns < self.armed_ns.get() {
            self.arm(Due { at_ns, is_exact });
        }
        Sleep { timers: self.clone(), key }
    }

    /// Removes dropped entries once they outnumber the others: each costs a few steps, whenever it is removed.
    fn sweep(&self) {
        let (mut heap, entries) = (self.heap.borrow_mut(), self.entries.borrow());
        if heap.len() > 2 * entries.len() + SWEPT {
            heap.retain(|Reverse((_, serial, key))| entries.get(*key).is_some_and(|e| e.serial == *serial));
        }
    }

    /// A wait of this length.
    pub fn after(self: &Rc<Self>, ns: u64) -> Sleep {
        self.sleep_until(self.clock.now().saturating_add(ns))
    }

    fn arm(&self, Due { at_ns, is_exact }: Due) {
        self.armed_ns.set(at_ns);
        let now = self.clock.now();
        let tells_ns = if is_exact { self.latency.borrow_mut().begins(now, at_ns) } else { at_ns };
        self.tells_ns.set((tells_ns > now).then_some(tells_ns));
        // Zero would switch the timer off.
        let left = tells_ns.saturating_sub(now).clamp(1, i64::MAX as u64) as i64;
        let spec = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: left / 1_000_000_000, tv_nsec: left % 1_000_000_000 },
        };
        // It fails only for a bad descriptor or time, and both are valid.
        let _ = timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &spec);
    }

    /// Wakes the tasks that are due; returns whether there were any, and when the next is due.
    fn fire(&self) -> (bool, Option<Due>) {
        let (now, mut woke) = (self.clock.now(), false);
        loop {
            let Some(Reverse((at_ns, serial, key))) = self.heap.borrow().peek().copied() else {
                return (woke, None);
            };
            let valid = self.entries.borrow().get(key).filter(|e| e.serial == serial).map(|e| e.is_exact);
            let due = valid.map(|is_exact| Due { at_ns, is_exact });
            if due.is_some() && at_ns > now {
                return (woke, due);
            }
            self.heap.borrow_mut().pop();
            let waker = match self.entries.borrow_mut().get_mut(key) {
                Some(entry) if due.is_some() => {
                    entry.fired = true;
                    entry.waker.take()
                }
                _ => None,
            };
            if let Some(waker) = waker {
                waker.wake();
                woke = true;
            }
        }
    }

    /// Fires timers while the next is so near that sleeping would be late; then sets the descriptor for it.
    async fn fire_all(&self, rt: &Runtime) {
        // Woken tasks set other timers: the descriptor is set once, for the first of them. That is the cost of timers
        // on a virtual machine, whose host must be asked.
        self.armed_ns.set(0);
        let mut since = None;
        loop {
            let (woke, next) = self.fire();
            let now = self.clock.now();
            if let Some(since) = since.take() {
                self.latency.borrow_mut().spend_awake(now - since);
            }
            let near = next
                .is_some_and(|next| next.is_exact && self.latency.borrow_mut().stays_awake(now, next.at_ns));
            if !woke && !near {
                return next.map_or_else(|| self.armed_ns.set(u64::MAX), |next| self.arm(next));
            }
            since = (!woke).then_some(now);
            rt.next_turn().await;
        }
    }

    /// Drives the timers forever; a task of its own.
    pub async fn run(self: Rc<Self>, rt: Runtime) {
        loop {
            poll_fn(|cx| self.source.poll_readable(cx)).await;
            // Each expiry is an event of its own, whether or not its count is read.
            self.source.mark_drained();
            // If it was set again since, it does not show how late that was.
            let late_ns = self.tells_ns.take().and_then(|at| self.clock.now().checked_sub(at));
            self.fire_all(&rt).await;
            // Only now: this waking used the latency as it was.
            if let Some(late_ns) = late_ns {
                self.latency.borrow_mut().woken(late_ns);
            }
        }
    }
}

/// A wait; dropping it cancels it.
pub struct Sleep {
    timers: Rc<Timers>,
    key: usize,
}

impl Sleep {
    /// Ready when it is due; otherwise wakes the task then.
    pub fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut entries = self.timers.entries.borrow_mut();
        let Some(entry) = entries.get_mut(self.key) else { return Poll::Ready(()) };
        if entry.fired {
            return Poll::Ready(());
        }
        if entry.waker.as_ref().is_none_or(|w| !w.will_wake(cx.waker())) {
            entry.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

/// Whether an optional limit has passed.
pub fn has_ended(limit: &mut Option<Sleep>, cx: &mut Context<'_>) -> bool {
    limit.as_mut().is_some_and(|sleep| sleep.poll_ended(cx).is_ready())
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_ended(cx)
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // A waker may be the last owner of a task with sleeps of its own: it is dropped once nothing is borrowed.
        let entry = self.timers.entries.borrow_mut().try_remove(self.key);
        drop(entry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_does_not_pile_up() {
        let runtime = Runtime::new().unwrap();
        let all = async {
            let timers = Timers::new(&runtime, Clock::start()).unwrap();
            runtime.spawn(timers.clone().run(runtime.clone()));
            let hour_ns = 3_600_000_000_000;
            let kept: Vec<Sleep> = (0..10).map(|_| timers.after(hour_ns)).collect();
            let soon = timers.after(20_000_000);
            for _ in 0..100_000 {
                drop(timers.after(hour_ns));
                assert!(timers.heap.borrow().len() <= 2 * (kept.len() + 2) + SWEPT + 1);
            }
            soon.await;
            let serials = |t: &Timers| t.heap.borrow().iter().filter(|r| r.0.1 < 10).count();
            assert_eq!(serials(&timers), 10, "what counts stays");
        };
        runtime.block_on(all).unwrap();
    }

    /// A wait that need not be exact costs no turns in which the loop stays awake.
    #[test]
    fn waits_that_are_not_exact_spend_no_time_awake() {
        let (runtime, clock) = (Runtime::new().unwrap(), Clock::start());
        let all = async {
            let timers = Timers::new(&runtime, clock).unwrap();
            runtime.spawn(timers.clone().run(runtime.clone()));
            // As if the system were that late to wake it.
            (0..1000).for_each(|_| timers.latency.borrow_mut().woken(300_000));
            let before = runtime.looks();
            for _ in 0..20 {
                let due_ns = clock.now() + 2_000_000;
                timers.sleep_until_about(due_ns).await;
                assert!(clock.now() >= due_ns, "not before its time");
            }
            // Each stay of 0.3 ms would be hundreds.
            assert!(runtime.looks() - before <= 10 * 20, "{} turns", runtime.looks() - before);
        };
        runtime.block_on(all).unwrap();
    }

    /// Waking early must not show. Prints how late timers are, for `bench/timers`: the timers without the
    /// connections.
    #[test]
    fn sleeps_never_end_early() {
        let (runtime, clock) = (Runtime::new().unwrap(), Clock::start());
        let all = async {
            let timers = Timers::new(&runtime, clock).unwrap();
            runtime.spawn(timers.clone().run(runtime.clone()));
            for delay_ns in [100_000, 370_000, 1_000_000, 2_500_000, 10_000_000] {
                let mut late_ns = Vec::new();
                for _ in 0..100 {
                    let due_ns = clock.now() + delay_ns;
                    timers.sleep_until(due_ns).await;
                    late_ns.push(clock.now().checked_sub(due_ns).expect("not before its time"));
                }
                late_ns.sort_unstable();
                let [median, p90] = [50, 90].map(|i| late_ns[i] as f64 / 1e3);
                println!("sleeps of {} ms end {median:.1} us late, p90 {p90:.1}", delay_ns as f64 / 1e6);
            }
        };
        runtime.block_on(all).unwrap();
    }
}
