//! The load of a thread: the share of the last second in which it ran. The system counts that, so it costs a request
//! nothing.

use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;

/// The least interval between two readings, ns.
const SPAN_NS: u64 = 1_000_000_000;

/// The load of this thread.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    /// The time of the last reading, and how long the thread had run by then, ns.
    looked: Cell<(u64, u64)>,
    ratio: Cell<f64>,
}

impl Busy {
    /// Reads it, if a second is over. To be called on the thread itself.
    pub fn look(&self, now_ns: u64) {
        let (before_ns, ran_before_ns) = self.looked.get();
        let span_ns = now_ns.saturating_sub(before_ns);
        if span_ns < SPAN_NS && before_ns > 0 {
            return;
        }
        let ran = clock_gettime(ClockId::ThreadCPUTime);
        let ran_ns = (ran.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(ran.tv_nsec as u64);
        if before_ns > 0 {
            self.ratio.set((ran_ns.saturating_sub(ran_before_ns) as f64 / span_ns as f64).min(1.0));
        }
        self.looked.set((now_ns, ran_ns));
    }

    /// The share.
    pub fn ratio(&self) -> f64 {
        self.ratio.get()
    }
}
