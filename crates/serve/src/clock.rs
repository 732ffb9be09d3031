//! The clock of a process: nanoseconds since its start, the unit of every policy and model.

use std::time::{Duration, Instant};

/// Where time is read; one per process, copied to its loops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// Time begins now.
    pub fn new() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Nanoseconds since the start; never goes back.
    pub fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// What is left until `at_ns`, zero if it has passed.
    pub fn until(&self, at_ns: u64) -> Duration {
        Duration::from_nanos(at_ns.saturating_sub(self.now()))
    }
}
