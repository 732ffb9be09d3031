//! The clock of a process: nanoseconds since its start, the unit of every policy and model.

use rustix::time::{ClockId, clock_gettime};

/// The source of time; one per process, copied to its loops.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start_ns: u64,
}

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        Clock { start_ns: monotonic_ns() }
    }

    /// A clock that begins at this instant of `CLOCK_MONOTONIC`, ns, so that processes of one machine can agree on
    /// it; until then it shows 0.
    pub fn beginning(start_ns: u64) -> Clock {
        Clock { start_ns }
    }

    /// Nanoseconds since the start; never goes back.
    pub fn now(&self) -> u64 {
        monotonic_ns().saturating_sub(self.start_ns)
    }
}

/// The system's `CLOCK_MONOTONIC`, ns.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
