//! A request on its way: when it is due, where it goes, how it ended.

use weir_policy::Kind;
use weir_workload::Request;

/// A request whose time to be sent has come.
pub(crate) struct Arrival {
    pub request: Request,
    /// Its intended time, ns after the run's start.
    pub intended_ns: u64,
    /// Whether it is in the window.
    pub selected: bool,
    /// The user that thinks again when it has ended (closed traffic).
    pub user: Option<u32>,
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Job {
    pub request: Request,
    /// The event loop that it meets.
    pub lane: usize,
    /// Its intended time, ns after the run's start.
    pub intended_ns: u64,
    /// When it was first sent.
    pub sent_ns: Option<u64>,
    /// How much later than intended it was sent; `None`: the delay was not the generator's.
    pub lag_ns: Option<u64>,
    pub selected: bool,
    /// The user that thinks again when it has ended (closed traffic).
    pub user: Option<u32>,
    /// The number of times it was sent again.
    pub again: u32,
}

/// A request that is due then.
#[cfg(test)]
pub(crate) fn request_due(intended_ns: u64) -> Job {
    let request = Request { ordinal: 0, way: weir_stats::Key::new(1), kind: 0, sender: None };
    Job { lane: 0, request, intended_ns, sent_ns: None, lag_ns: None, selected: true, user: None, again: 0 }
}

/// How a request ended: the status of its answer, or why there is none.
pub(crate) type Ending = Result<u16, Kind>;
