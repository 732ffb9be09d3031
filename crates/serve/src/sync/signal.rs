//! A signal that any thread raises without waiting, and that one thread waits for. It stays raised until it is read, so
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

/// Raised or not.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    is_raised: AtomicBool,
    /// The only thread that waits for it, once it has.
    waiter: OnceLock<Thread>,
}

impl Signal {
    /// Wakes the thread that waits, or the next wait.
    pub fn raise(&self) {
        self.is_raised.store(true, Release);
        // Either this sees the thread that waits, or that thread sees the flag.
        fence(SeqCst);
        if let Some(waiter) = self.waiter.get() {
            waiter.unpark();
        }
    }

    /// Waits until it is raised, at most for this time, and lowers it. Whether it was raised. Always called on the same thread.
    pub fn wait(&self, most: Duration) -> bool {
        let waiter = self.waiter.get_or_init(thread::current);
        debug_assert_eq!(waiter.id(), thread::current().id(), "one thread waits");
        fence(SeqCst);
        let begun = Instant::now();
        while !self.is_raised.swap(false, AcqRel) {
            let left = most.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return false;
            }
            thread::park_timeout(left);
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

    #[test]
    fn it_wakes_the_thread_that_waits() {
        let signal = Signal::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| signal.wait(Duration::from_secs(60)));
            signal.raise();
            assert!(waiter.join().expect("it waits"));
        });
    }
}
