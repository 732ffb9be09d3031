//! Arrivals, drawn a little ahead of the clock, and the window's instants that they fix.

use crate::draws::purpose;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_model::traffic::{Arrivals, Thinking, Traffic};
use weir_stats::Key;
use weir_topology::plan::{Scenario, Window as WindowKind};

/// Which requests, and when.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub arrivals: Arrivals,
    pub requests: u64,
    /// In a closed loop: who thinks before each request, and until when requests are sent.
    pub thinking: Option<Thinking>,
    pub until_ns: u64,
    /// Whether all requests count.
    pub all: bool,
    pub window: Window,
    pub deadline_ns: u64,
    /// For the reference.
    #[cfg(test)]
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

impl Window {
    /// All of so many requests, or those without the first and the last quarter.
    pub fn of_requests(n: u64, all: bool) -> Window {
        if all { Window::Requests(0, n) } else { Window::Requests(n / 4, n - n / 4) }
    }

    /// All of a time that begins with the run, or its middle half.
    pub fn of_time(ns: u64, all: bool) -> Window {
        if all { Window::Times(0, ns) } else { Window::Times(ns / 4, ns - ns / 4) }
    }
}

impl Load {
    /// The window of the time that was, if it is another than was taken: where requests ran out before the time did, that until
    /// the last arrival; where no arrival was within, the requests that there were. `None`: it is as it was.
    pub fn window_that_was(&self, arrived: u64, last_ns: u64, selected: u64) -> Option<Window> {
        let Window::Times(..) = self.window else { return None };
        let of_requests = Window::of_requests(arrived, self.all);
        match Window::of_time(last_ns, self.all) {
            _ if arrived == 0 => None,
            _ if selected == 0 => Some(of_requests),
            shorter if arrived == self.requests && shorter != self.window => Some(shorter),
            _ => None,
        }
    }

    /// How many requests there will be, and how many count; `None`: that is not known beforehand.
    pub fn expected(&self) -> (Option<u64>, Option<u64>) {
        match (self.thinking.is_some(), self.window) {
            (false, Window::Requests(from, to)) => (Some(self.requests), Some(to - from)),
            _ => (None, None),
        }
    }

    /// Whether a request that arrives then counts, and whether in the second half of the window.
    pub fn selects(&self, at: u64, ordinal: u64) -> (bool, bool) {
        let (from, at, to) = match self.window {
            Window::Requests(from, to) => (from, ordinal, to),
            Window::Times(from, to) => (from, at, to + 1),
        };
        ((from..to).contains(&at), at >= from + (to - from) / 2)
    }

    /// Ordinals of the window, where it is given by them.
    pub fn ordinals(&self) -> (u64, u64) {
        if let Window::Requests(from, to) = self.window { (from, to) } else { (0, u64::MAX) }
    }
}

/// The arrivals of one replication and its window; `None`: told to stop before they were counted.
pub(crate) fn load_unless(
    scenario: &Scenario,
    requests: Option<u64>,
    key: Key,
    stop: &AtomicBool,
) -> Option<Load> {
    // By the traffic alone, so equal traffic has equal arrivals everywhere.
    let key = key.with(purpose::ARRIVALS);
    let arrivals = Arrivals::new(&scenario.traffic, key);
    let thinking = Thinking::new(&scenario.traffic, key);
    let duration_ns = scenario.duration_ns;
    let counted = match (&scenario.traffic, duration_ns) {
        (Traffic::Closed { .. }, _) => requests.unwrap_or(u64::MAX),
        // These go on for ever, so there are as many as are asked for.
        (Traffic::Poisson { .. } | Traffic::Constant { .. } | Traffic::Renewal { .. }, None) => {
            requests.unwrap_or(0)
        }
        _ => arrivals.count_unless(duration_ns, requests, || stop.load(Ordering::Relaxed))?,
    };
    let all = scenario.window == WindowKind::All;
    let window = match (duration_ns, &thinking) {
        (Some(ns), Some(_)) => Window::of_time(ns, all),
        _ => Window::of_requests(counted, all),
    };
    Some(Load {
        arrivals,
        requests: counted,
        thinking,
        until_ns: duration_ns.unwrap_or(u64::MAX),
        all,
        window,
        deadline_ns: scenario.deadline_ns,
        #[cfg(test)]
        patience_ns: scenario.patience_ns,
    })
}

/// The same, without anybody to stop it.
#[cfg(test)]
pub(crate) fn load(scenario: &Scenario, requests: Option<u64>, key: Key) -> Load {
    load_unless(scenario, requests, key, &AtomicBool::new(false)).expect("nobody stops it")
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
