//! Arrivals, drawn a little ahead of the clock, and the window's instants that they fix.

use weir_model::traffic::{Arrivals, Thinking};

/// Which requests, and when.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub arrivals: Arrivals,
    pub requests: u64,
    /// In a closed loop: who thinks before each request, and until when requests are sent.
    pub thinking: Option<Thinking>,
    pub until_ns: u64,
    pub window: Window,
    pub deadline_ns: u64,
    pub patience_ns: Option<u64>,
}

/// Which requests count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Window {
    /// Those of these ordinals, by arrival; the second is the first that does not.
    Requests(u64, u64),
    /// Those that arrive between these instants.
    Times(u64, u64),
}

impl Load {
    /// How many requests there will be, and how many count; `None`: that is not known beforehand.
    pub fn expected(&self) -> (Option<u64>, Option<u64>) {
        match (self.thinking.is_some(), self.window) {
            (false, Window::Requests(from, to)) => (Some(self.requests), Some(to - from)),
            _ => (None, None),
        }
    }

    /// Ordinals of the window, where it is given by them.
    pub fn ordinals(&self) -> (u64, u64) {
        if let Window::Requests(from, to) = self.window { (from, to) } else { (0, u64::MAX) }
    }
}

/// Arrivals drawn at once.
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
        }
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
            if self.drawn == self.from {
                self.window[0] = at;
            }
            self.drawn += 1;
            if self.drawn == self.to {
                self.window[1] = at;
            }
            self.last = at;
        }
    }
}
