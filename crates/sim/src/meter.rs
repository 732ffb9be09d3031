//! How many slots or cores are busy, and how many requests wait, integrated over time.

/// The meter of a site's queues or servers, or of one of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    busy: f64,
    waiting: f64,
    last: u64,
    busy_ns: f64,
    waiting_ns: f64,
}

impl Meter {
    /// The levels change at `now`.
    pub fn add(&mut self, now: u64, busy: f64, waiting: f64) {
        let ns = now.saturating_sub(self.last) as f64;
        self.last = now.max(self.last);
        self.busy_ns += self.busy * ns;
        self.waiting_ns += self.waiting * ns;
        self.busy += busy;
        self.waiting += waiting;
    }

    /// The integrals up to `at`, which is not before the last change.
    pub fn until(&self, at: u64) -> (u64, u64) {
        let ns = at.saturating_sub(self.last) as f64;
        ((self.busy_ns + self.busy * ns) as u64, (self.waiting_ns + self.waiting * ns) as u64)
    }
}
