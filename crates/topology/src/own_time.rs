//! The processor time of a file's own code, apart from what weir does for it: reading and parsing the file, making the
//! nodes that it asks for, the checks and the plan. Only the former has a limit, so that a large file is not refused
//! for its size.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The time of one evaluation, which another thread can read.
#[derive(Debug, Default)]
pub(crate) struct OwnTime {
    /// Whether it is counted at all: reading the clock is a system call.
    counts: bool,
    /// What has been counted, ns.
    spent_ns: AtomicU64,
    /// The processor time of this process when the file's code went on; 0: it is not running.
    since_ns: AtomicU64,
}

/// The file's code runs until this is dropped, or is interrupted until then.
pub(crate) struct Turn<'a> {
    time: &'a OwnTime,
    runs: bool,
}

impl OwnTime {
    /// One that counts.
    pub(crate) fn counted() -> OwnTime {
        OwnTime { counts: true, ..OwnTime::default() }
    }

    /// Counts as the file's until the turn is dropped.
    pub(crate) fn run(&self) -> Turn<'_> {
        self.begin();
        Turn { time: self, runs: true }
    }

    /// Counts as weir's until the turn is dropped.
    pub(crate) fn interrupt(&self) -> Turn<'_> {
        self.end();
        Turn { time: self, runs: false }
    }

    /// The processor time of the file's code so far.
    pub(crate) fn spent(&self) -> Duration {
        let running = match self.since_ns.load(Relaxed) {
            0 => 0,
            since_ns => processor_ns().saturating_sub(since_ns),
        };
        Duration::from_nanos(self.spent_ns.load(Relaxed) + running)
    }

    fn begin(&self) {
        if self.counts {
            self.since_ns.store(processor_ns().max(1), Relaxed);
        }
    }

    fn end(&self) {
        if self.counts {
            let since_ns = self.since_ns.swap(0, Relaxed);
            if since_ns > 0 {
                self.spent_ns.fetch_add(processor_ns().saturating_sub(since_ns), Relaxed);
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        match self.runs {
            true => self.time.end(),
            false => self.time.begin(),
        }
    }
}

/// The processor time that this process has taken, ns.
fn processor_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes this much processor time.
    fn work(ms: u64) {
        let until = processor_ns() + ms * 1_000_000;
        while processor_ns() < until {}
    }

    #[test]
    fn what_weir_does_for_a_file_is_not_the_file_s() {
        let time = OwnTime::counted();
        work(20);
        assert_eq!(time.spent(), Duration::ZERO);
        {
            let _file = time.run();
            work(20);
            {
                let _weir = time.interrupt();
                let before = time.spent();
                work(200);
                assert_eq!(time.spent(), before);
                let _called_back = time.run();
                work(20);
            }
            assert!(time.spent() >= Duration::from_millis(40));
        }
        let spent = time.spent();
        work(20);
        assert_eq!(time.spent(), spent);
        let uncounted = OwnTime::default();
        let _file = uncounted.run();
        work(1);
        assert_eq!(uncounted.spent(), Duration::ZERO);
    }
}
