//! Arrivals, drawn a little ahead of the clock, and the instants of the window that they fix.

#[cfg(test)]
use std::sync::atomic::AtomicBool;
#[cfg(test)]
use weir_plan::Scenario;
#[cfg(test)]
use weir_stats::Key;
use weir_workload::Load;
#[cfg(test)]
use weir_workload::load_unless;

/// The load of a scenario, without a flag that stops its computation.
#[cfg(test)]
pub(crate) fn load(scenario: &Scenario, requests: Option<u64>, key: Key) -> Load {
    load_unless(scenario, requests, key, &AtomicBool::new(false)).expect("nobody stops it")
}

/// Arrivals drawn in one batch.
const BATCH: u64 = 256;

/// The arrivals of one replication. They depend on nothing, so they are drawn in batches; the window's first and last
/// arrival are known before the clock passes them.
pub(crate) struct Source {
    pub load: Load,
    pub from: u64,
    pub to: u64,
    ahead: Vec<u64>,
    next: usize,
    last: u64,
    drawn: u64,
    taken: u64,
    /// Instants of the window's first and last arrival, once known.
    pub window: [u64; 2],
    /// The last arrival, once it is known which it is: before the clock passes it.
    pub over_ns: u64,
}

impl Source {
    pub fn new(load: Load) -> Source {
        let (from, to) = load.ordinals();
        Source {
            load,
            from,
            to,
            ahead: Vec::new(),
            next: 0,
            last: 0,
            drawn: 0,
            taken: 0,
            window: [u64::MAX; 2],
            over_ns: u64::MAX,
        }
    }

    /// The next arrival, `None` after the last. When it is returned, the window's instants up to `prefix_ns` after
    /// that arrival are known.
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
        // Those taken are removed once they are the larger half, so each is moved once.
        if self.next * 2 >= self.ahead.len() {
            self.ahead.drain(..self.next);
            self.next = 0;
        }
        for _ in 0..BATCH.min(self.load.requests - self.drawn) {
            let at = self.load.arrivals.next_ns().unwrap_or(u64::MAX);
            self.ahead.push(at);
            // Of a window without requests no instant is ever known.
            if self.drawn == self.from && self.from < self.to {
                self.window[0] = at;
            }
            self.drawn += 1;
            if self.drawn == self.to && self.from < self.to {
                self.window[1] = at;
            }
            self.last = at;
        }
        if self.drawn == self.load.requests {
            self.over_ns = self.last;
        }
    }
}
