//! The number of busy slots or cores and of waiting requests, integrated over time: in whole fractions of a
//! nanosecond, since an `f64` loses nanoseconds past 2^53 of them, 104 days of one server.

/// Fractions of a core in one: cores need not be whole.
const ONE: f64 = (1u64 << DIGITS) as f64;
const DIGITS: u32 = 20;

/// The meter of a site's queues or servers, or of one of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    busy: Level,
    waiting: Level,
    last: u64,
}

/// A level and its integral.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    now: i64,
    sum: i128,
}

impl Level {
    fn add(&mut self, ns: u64, by: f64) {
        self.sum += i128::from(self.now) * i128::from(ns);
        self.now += (by * ONE).round() as i64;
    }

    /// The integral in whole nanoseconds, wrapping as all sums of times do.
    fn until(&self, ns: u64) -> u64 {
        ((self.sum + i128::from(self.now) * i128::from(ns)) >> DIGITS) as u64
    }
}

impl Meter {
    /// The levels change at `now`.
    pub fn add(&mut self, now_ns: u64, busy: f64, waiting: f64) {
        let ns = now_ns.saturating_sub(self.last);
        self.last = now_ns.max(self.last);
        self.busy.add(ns, busy);
        self.waiting.add(ns, waiting);
    }

    /// The integrals up to that time, which is not before the last change.
    pub fn until(&self, at: u64) -> (u64, u64) {
        let ns = at.saturating_sub(self.last);
        (self.busy.until(ns), self.waiting.until(ns))
    }
}

/// The statistics of queues, for one site's stage or one member of it. Times of entries are subtracted, times of
/// exits added, wrapping: exact, and one addition each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauge {
    /// Time in slots, all requests.
    pub busy: u64,
    /// Time in line, all requests.
    pub waiting: u64,
    /// Time in slots, selected requests.
    pub served: u64,
    /// How many selected requests got a slot.
    pub started: u64,
    /// The longest line at one member since the window began.
    pub most: u32,
}

/// Integrals of queues at an instant: busy slots and waiting requests over time, and the longest line so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    pub busy: Vec<u64>,
    pub waiting: Vec<u64>,
    pub most: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Past 2^53 ns of busy cores a nanosecond still counts, and past 2^64 the difference of two readings.
    #[test]
    fn integrals_are_exact() {
        const YEAR: u64 = 365 * 86_400 * 1_000_000_000;
        let mut meter = Meter::default();
        meter.add(0, 4.0, 1.0);
        meter.add(YEAR, -3.5, 0.0);
        meter.add(YEAR + 1, -0.5, 0.0);
        assert_eq!(meter.until(YEAR + 3), (4 * YEAR, YEAR + 3));
        meter.add(YEAR + 3, 1e4, 0.0);
        let (before, _) = meter.until(YEAR + 3);
        let (after, _) = meter.until(2 * YEAR + 4);
        let exact = (u128::from(YEAR) + 1) * 10_000;
        assert_eq!(u128::from(after.wrapping_sub(before)), exact % (1 << 64));
    }
}
