//! The clock of the thread of sources: nanoseconds since its start.

use std::time::Instant;

/// The source of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Nanoseconds since the start.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
