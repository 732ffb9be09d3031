//! The processor time of a file's own code, apart from what weir does for it: reading and parsing the file, making the
//! nodes that it asks for, the checks and the plan. Only the former has a limit, so that a large file is not refused
//! for its size.
//!
//! The clock of a process is a system call, and a large file would ask it a million times. So the code's turns are measured
//! by the clock that is read without one, and processor time is divided in proportion to them, from glance to glance.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long the file's code has run in one evaluation, which another thread can read.
#[derive(Debug, Default)]
pub(crate) struct OwnTime {
    /// When counting began; `None`: nothing is counted.
    start: Option<Instant>,
    /// The length of its turns that are over, ns.
    own_ns: AtomicU64,
    /// When the present turn began, ns since the start; 0: the code is not running.
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
        OwnTime { start: Some(Instant::now()), ..OwnTime::default() }
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

    /// The time since the start, ns; `None`: nothing is counted.
    fn now_ns(&self) -> Option<u64> {
        self.start.map(|start| u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// How long the code's turns were until now, ns.
    fn own_ns(&self, now_ns: u64) -> u64 {
        let running = match self.since_ns.load(Relaxed) {
            0 => 0,
            since_ns => now_ns.saturating_sub(since_ns),
        };
        self.own_ns.load(Relaxed) + running
    }

    fn begin(&self) {
        if let Some(now_ns) = self.now_ns() {
            self.since_ns.store(now_ns.max(1), Relaxed);
        }
    }

    fn end(&self) {
        if let Some(now_ns) = self.now_ns() {
            let since_ns = self.since_ns.swap(0, Relaxed);
            if since_ns > 0 {
                self.own_ns.fetch_add(now_ns.saturating_sub(since_ns), Relaxed);
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

/// The processor time of the file's code, from glances at it.
pub(crate) struct Meter<'a> {
    time: &'a OwnTime,
    last: Glance,
    spent_ns: u64,
}

/// What is read at once.
#[derive(Clone, Copy)]
struct Glance {
    now_ns: u64,
    /// The time of the code's turns.
    own_ns: u64,
    /// The processor time of this process.
    processor_ns: u64,
}

impl Meter<'_> {
    /// Nothing has been spent.
    pub(crate) fn new(time: &OwnTime) -> Meter<'_> {
        Meter { time, last: Glance::take(time), spent_ns: 0 }
    }

    /// Looks again; returns the processor time of the code so far. Of that between two glances the code's share is that of its
    /// turns in the time between them.
    pub(crate) fn glance(&mut self) -> Duration {
        let seen = Glance::take(self.time);
        self.spent_ns += seen.spent_since(self.last);
        self.last = seen;
        Duration::from_nanos(self.spent_ns)
    }
}

impl Glance {
    fn take(time: &OwnTime) -> Glance {
        let now_ns = time.now_ns().unwrap_or(0);
        Glance { now_ns, own_ns: time.own_ns(now_ns), processor_ns: processor_ns() }
    }

    fn spent_since(self, before: Glance) -> u64 {
        let time_ns = self.now_ns.saturating_sub(before.now_ns).max(1);
        // While a turn ends, a glance may miss it or count it twice; the next one makes up for it.
        let own_ns = self.own_ns.saturating_sub(before.own_ns).min(time_ns);
        let processor_ns = self.processor_ns.saturating_sub(before.processor_ns);
        (u128::from(processor_ns) * u128::from(own_ns) / u128::from(time_ns)) as u64
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

    const MS: u64 = 1_000_000;

    fn own_ns(time: &OwnTime) -> u64 {
        time.own_ns(time.now_ns().expect("it counts"))
    }

    /// Works for this long.
    fn work(time: &OwnTime, ns: u64) {
        let until = time.now_ns().expect("it counts") + ns;
        while time.now_ns().is_some_and(|now| now < until) {}
    }

    #[test]
    fn what_weir_does_for_a_file_is_not_the_file_s() {
        let time = OwnTime::counted();
        let mut meter = Meter::new(&time);
        work(&time, 5 * MS);
        assert_eq!((own_ns(&time), meter.glance()), (0, Duration::ZERO));
        {
            let _file = time.run();
            work(&time, 5 * MS);
            {
                let _weir = time.interrupt();
                let before = own_ns(&time);
                work(&time, 20 * MS);
                assert_eq!(own_ns(&time), before);
                let _called_back = time.run();
                work(&time, 5 * MS);
            }
            assert!(own_ns(&time) >= 10 * MS);
        }
        let (own, spent) = (own_ns(&time), meter.glance());
        assert!(spent > Duration::ZERO && spent < Duration::from_nanos(processor_ns()), "{spent:?}");
        work(&time, 5 * MS);
        assert_eq!((own_ns(&time), meter.glance()), (own, spent));
        let uncounted = OwnTime::default();
        let _file = uncounted.run();
        assert_eq!((uncounted.own_ns(5 * MS), Meter::new(&uncounted).glance()), (0, Duration::ZERO));
    }

    #[test]
    fn processor_time_is_divided_as_the_time_is() {
        let of = |now_ns, own_ns, processor_ns| Glance { now_ns, own_ns, processor_ns };
        let before = of(100, 10, 70);
        assert_eq!(of(200, 60, 130).spent_since(before), 30, "half of 60");
        assert_eq!(of(200, 10, 130).spent_since(before), 0);
        assert_eq!(of(200, 110, 130).spent_since(before), 60, "all of it");
        assert_eq!(of(200, 999, 130).spent_since(before), 60, "no more than all of it");
        assert_eq!(of(200, 5, 130).spent_since(before), 0, "a turn that seemed longer at the last glance");
        assert_eq!(before.spent_since(before), 0);
    }
}
