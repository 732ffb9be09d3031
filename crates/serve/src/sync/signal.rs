//! A signal that any thread raises without waiting, and that a thread waits for. It stays raised until it is read, so
//! that none is lost; raised twice, it is read once.
//!
//! The waiting thread parks. The library's channels keep waiting threads in a list under a lock, which a sender takes
//! as well: while a thread without a core held it, a loop that sent waited for that thread's next turn.

use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{AcqRel, Release, SeqCst},
    fence,
};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How often it is looked at by a thread that nothing wakes.
const LOOK: Duration = Duration::from_millis(10);

/// Raised or not.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    is_raised: AtomicBool,
    /// The thread that waits for it, once it has.
    waiter: OnceLock<Thread>,
}

impl Signal {
    /// Wakes the thread that waits, or the next wait.
    pub fn raise(&self) {
        // It continues what other threads have released by it.
        self.is_raised.swap(true, Release);
        // Either this sees the thread that waits, or that thread sees the flag.
        fence(SeqCst);
        if let Some(waiter) = self.waiter.get() {
            waiter.unpark();
        }
    }

    /// Waits until it is raised, at most for this time, and lowers it. Whether it was raised. The first thread that waits is
    /// woken; others look every 10 ms.
    pub fn wait(&self, most: Duration) -> bool {
        let is_woken = self.waiter.get_or_init(thread::current).id() == thread::current().id();
        let longest = if is_woken { Duration::MAX } else { LOOK };
        fence(SeqCst);
        let begun = Instant::now();
        while !self.is_raised.swap(false, AcqRel) {
            let left = most.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return false;
            }
            thread::park_timeout(left.min(longest));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_raised_until_it_is_read() {
        let signal = Signal::default();
        assert!(!signal.wait(Duration::ZERO));
        signal.raise();
        signal.raise();
        assert!(signal.wait(Duration::ZERO));
        assert!(!signal.wait(Duration::ZERO));
    }

    const LONG: Duration = Duration::from_secs(60);

    /// Without a wake-up the end of the time would end the wait.
    #[test]
    fn it_wakes_the_thread_that_waits() {
        for _ in 0..100 {
            let (signal, begun) = (Signal::default(), Instant::now());
            thread::scope(|scope| {
                let waiter = scope.spawn(|| signal.wait(LONG));
                while signal.waiter.get().is_none() {
                    thread::yield_now();
                }
                signal.raise();
                assert!(waiter.join().expect("it waits") && begun.elapsed() < LONG / 2);
            });
        }
    }

    #[test]
    fn another_thread_waits_as_well() {
        let (signal, begun) = (Signal::default(), Instant::now());
        assert!(!signal.wait(Duration::ZERO));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| signal.wait(LONG));
            signal.raise();
            assert!(waiter.join().expect("it waits") && begun.elapsed() < LONG / 2);
        });
    }
}
