//! Arrivals, drawn a little ahead of the clock, and the window's instants that they fix.

use weir_model::traffic::Arrivals;

/// Which requests, and when.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub arrivals: Arrivals,
    pub requests: u64,
    /// Ordinals of the window.
    pub from: u64,
    pub to: u64,
    pub deadline_ns: u64,
}

/// Arrivals drawn at once.
const BATCH: u64 = 256;

/// The arrivals of one replication. They depend on nothing, so they are drawn in batches; the window's first and last
/// arrival are known before the clock passes them.
pub(crate) struct Source {
    pub load: Load,
    ahead: Vec<u64>,
    next: usize,
    last: u64,
    drawn: u64,
    taken: u64,
    /// Instants of the window's first and last arrival, once known.
    pub window: [u64; 2],
}

impl Source {
    pub fn new(load: Load) -> Source {
        Source { load, ahead: Vec::new(), next: 0, last: 0, drawn: 0, taken: 0, window: [u64::MAX; 2] }
    }

    /// The next arrival, `None` after the last. When it comes back, the window's instants up to `prefix_ns` after that
    /// arrival are known.
    #[inline]
    pub fn take(&mut self, prefix_ns: u64) -> Option<u64> {
        if self.taken == self.load.requests {
            return None;
        }
        self.taken += 1;
        if self.next == self.ahead.len() {
            self.draw();
        }
        let at = self.ahead[self.next];
        self.next += 1;
        while self.last <= at.saturating_add(prefix_ns) && self.drawn < self.load.requests {
            self.draw();
        }
        Some(at)
    }

    fn draw(&mut self) {
        // Those taken go once they are the larger half, so each is moved once.
        if self.next * 2 >= self.ahead.len() {
            self.ahead.drain(..self.next);
            self.next = 0;
        }
        for _ in 0..BATCH.min(self.load.requests - self.drawn) {
            let at = self.load.arrivals.next_ns().unwrap_or(u64::MAX);
            self.ahead.push(at);
            if self.drawn == self.load.from {
                self.window[0] = at;
            }
            self.drawn += 1;
            if self.drawn == self.load.to {
                self.window[1] = at;
            }
            self.last = at;
        }
    }
}
