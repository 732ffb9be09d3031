//! The clock of a process: nanoseconds since its start, the unit of every policy and model.

use rustix::time::{ClockId, clock_gettime};

/// Where time is read; one per process, copied to its loops.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
}

impl Clock {
    /// Time begins now.
    pub fn start() -> Clock {
        Clock { start_ns: monotonic_ns() }
    }

    /// Time begins at this instant of `CLOCK_MONOTONIC`, ns, so that processes of one machine can agree on it; until then it
    /// stands at 0.
    pub fn beginning(start_ns: u64) -> Clock {
        Clock { start_ns }
    }

    /// Nanoseconds since the start; never goes back.
    pub fn now(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns)
    }
}

/// What the system counts from some start of its own (`CLOCK_MONOTONIC`), ns.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
