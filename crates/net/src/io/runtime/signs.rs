//! Signs of life of a loop, for other threads: whether it goes on costs it two stores a turn, and no timer.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// What a loop does, as another thread sees it. Both are only ever compared with what they were a while ago, so no order
/// among them matters.
#[derive(Debug, Default)]
pub struct LifeSigns {
    turn: AtomicU64,
    asleep: AtomicBool,
}

impl LifeSigns {
    /// The number of its turns so far; it grows for as long as the loop goes on.
    pub fn turn(&self) -> u64 {
        self.turn.load(Relaxed)
    }

    /// Whether it waits for something to do.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Relaxed)
    }

    pub(super) fn waits(&self, turn: u64, asleep: bool) {
        self.turn.store(turn, Relaxed);
        if asleep {
            self.asleep.store(true, Relaxed);
        }
    }

    pub(super) fn goes_on(&self, was_asleep: bool) {
        if was_asleep {
            self.asleep.store(false, Relaxed);
        }
    }
}
