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

/// How a request ended: the status of its answer, or why there is none.
pub(crate) type Ending = Result<u16, Kind>;
