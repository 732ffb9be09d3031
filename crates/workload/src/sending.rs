//! How many requests a scenario sends, when, and which of them count.

use std::sync::atomic::{AtomicBool, Ordering};
use weir_model::draws::purpose;
use weir_model::traffic::{Arrivals, Thinking, Traffic};
use weir_plan::{Scenario, Window as WindowKind};
use weir_stats::Key;

/// Which requests, and when.
#[derive(Clone, Debug)]
pub struct Load {
    /// The arrivals of open traffic.
    pub arrivals: Arrivals,
    /// The most requests.
    pub requests: u64,
    /// The users of a closed loop.
    pub thinking: Option<Thinking>,
    /// The end of sending, ns.
    pub until_ns: u64,
    /// The number of requests that ends it before.
    pub limit: Option<u64>,
    /// Whether all requests count.
    pub all: bool,
    /// Whether the requests count that arrive after the run has settled, which is known at its end; until then the
    /// window is the middle one.
    pub auto: bool,
    /// Whether the requests count that arrive between two instants, whenever the run ends.
    pub is_fixed: bool,
    /// The requests that count.
    pub window: Window,
    /// The limit of goodput, ns.
    pub deadline_ns: u64,
    /// When clients leave, ns after their request; `None`: never.
    pub patience_ns: Option<u64>,
}

/// Which requests count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Window {
    /// By ordinal of arrival; the second is the first that does not count.
    Requests(u64, u64),
    /// By arrival between these times.
    Times(u64, u64),
}

impl Window {
    /// All of this number of requests, or those without the first and the last quarter.
    pub fn of_requests(n: u64, all: bool) -> Window {
        if all { Window::Requests(0, n) } else { Window::Requests(n / 4, n - n / 4) }
    }

    /// The same kind of window, around everything.
    pub fn whole(self, requests: u64, until_ns: u64) -> Window {
        match self {
            Window::Requests(..) => Window::of_requests(requests, true),
            Window::Times(..) => Window::of_time(until_ns, true),
        }
    }

    /// All of a time from the start of the run, or its middle half.
    pub fn of_time(ns: u64, all: bool) -> Window {
        if all { Window::Times(0, ns) } else { Window::Times(ns / 4, ns - ns / 4) }
    }
}

impl Load {
    /// The window of the actual run, if it differs from the planned one: if requests ran out before the time did, the
    /// time until the last arrival; if no arrival was within, the requests that there were. `None`: unchanged.
    pub fn window_that_was(&self, arrived: u64, last_ns: u64, selected: u64) -> Option<Window> {
        if self.is_fixed {
            return None;
        }
        if let Window::Requests(from, to) = self.window {
            // From where the scenario settles, of a closed loop, to an end that was not known.
            return (self.auto && arrived < to).then(|| Window::Requests(from.min(arrived), arrived));
        }
        let of_requests = Window::of_requests(arrived, self.all);
        match Window::of_time(last_ns, self.all) {
            _ if arrived == 0 => None,
            _ if selected == 0 => Some(of_requests),
            shorter if arrived == self.requests && shorter != self.window => Some(shorter),
            _ => None,
        }
    }

    /// When arrivals end, of which there were so many, the last one then: at the end of sending, unless a number of requests
    /// ended it before, ns.
    pub fn end_ns(&self, arrived: u64, last_ns: u64) -> u64 {
        let is_full = self.limit.is_some_and(|limit| arrived >= limit);
        if is_full || self.until_ns == u64::MAX { last_ns } else { self.until_ns }
    }

    /// The number of requests, and the number that counts; `None`: unknown in advance.
    pub fn expected(&self) -> (Option<u64>, Option<u64>) {
        match (self.thinking.is_some(), self.window) {
            (false, Window::Requests(from, to)) => (Some(self.requests), Some(to.saturating_sub(from))),
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

    /// Ordinals of the window, if it is given by them.
    pub fn ordinals(&self) -> (u64, u64) {
        if let Window::Requests(from, to) = self.window { (from, to) } else { (0, u64::MAX) }
    }
}

/// The arrivals of one replication and its window; `None`: stopped before they were counted.
pub fn load_unless(scenario: &Scenario, requests: Option<u64>, key: Key, stop: &AtomicBool) -> Option<Load> {
    // By the traffic alone, so equal traffic has equal arrivals everywhere.
    let key = key.with(purpose::ARRIVALS);
    let arrivals = Arrivals::new(&scenario.traffic, key);
    let thinking = Thinking::new(&scenario.traffic, key);
    let duration_ns = scenario.duration_ns;
    let counted = match (&scenario.traffic, duration_ns) {
        (Traffic::Closed { .. }, _) => requests.unwrap_or(u64::MAX),
        // Endless arrivals, so their number is as requested.
        (Traffic::Poisson { .. } | Traffic::Constant { .. } | Traffic::Renewal { .. }, None) => {
            requests.unwrap_or(0)
        }
        _ => arrivals.count_unless(duration_ns, requests, || stop.load(Ordering::Relaxed))?,
    };
    let all = scenario.window == WindowKind::All;
    let window = match (scenario.window, duration_ns, &thinking) {
        (WindowKind::Between(from_ns, to_ns), _, Some(_)) => Window::Times(from_ns, to_ns - 1),
        (WindowKind::Between(from_ns, to_ns), ..) => {
            // Arrivals before an instant are those up to the nanosecond before it.
            let before = |ns: u64| match ns.checked_sub(1) {
                None => Some(0),
                Some(last_ns) => {
                    arrivals.count_unless(Some(last_ns), Some(counted), || stop.load(Ordering::Relaxed))
                }
            };
            Window::Requests(before(from_ns)?, before(to_ns)?)
        }
        (_, Some(ns), Some(_)) => Window::of_time(ns, all),
        _ => Window::of_requests(counted, all),
    };
    Some(Load {
        arrivals,
        requests: counted,
        thinking,
        until_ns: duration_ns.unwrap_or(u64::MAX),
        limit: requests,
        all,
        auto: scenario.window == WindowKind::Auto,
        is_fixed: matches!(scenario.window, WindowKind::Between(..)),
        window,
        deadline_ns: scenario.deadline_ns,
        patience_ns: scenario.patience_ns,
    })
}
