//! What is counted of connections: how many there are, over time; openings, ends, and requests on them.

use super::End;

/// A number that changes, and its integral over time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    now: i64,
    /// The integral up to an instant t is `sum + now * t`: exact, and one multiplication for each change.
    sum: i128,
}

impl Level {
    /// It changes at that instant; instants need not be in order.
    pub fn add(&mut self, at_ns: u64, by: i64) {
        self.now += by;
        self.sum -= i128::from(by) * i128::from(at_ns);
    }

    pub fn now(&self) -> i64 {
        self.now
    }

    /// The integral up to an instant, ns.
    pub fn until(&self, at_ns: u64) -> i128 {
        self.sum + i128::from(self.now) * i128::from(at_ns)
    }
}

/// What is counted of a group of connections, from the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    pub open: Level,
    /// Those of them with a request.
    pub busy: Level,
    pub requests: Level,
    pub peak: u64,
    pub opened: u64,
    pub handshakes: u64,
    pub closed: [u64; End::ALL.len()],
    /// Requests that came to a server, and those that found a connection.
    pub came: u64,
    pub found: u64,
}

/// The count of a group of connections between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Count {
    /// How many there were, over time, ns.
    pub open_ns: i128,
    /// How many of them had a request, over time, ns.
    pub busy_ns: i128,
    /// Requests on them, over time, ns.
    pub requests_ns: i128,
    /// The most at one instant, from the start of the run on.
    pub peak: u64,
    /// How many there are at the end.
    pub left: u64,
    /// How many were opened.
    pub opened: u64,
    /// How many of those by TLS.
    pub handshakes: u64,
    /// How many ended, in the order of [`End::ALL`].
    pub closed: [u64; End::ALL.len()],
    /// Requests that came to a server.
    pub came: u64,
    /// Those of them that found a connection.
    pub found: u64,
}

impl Meter {
    /// The count from the start of the run to an instant.
    pub fn until(&self, at_ns: u64) -> Count {
        Count {
            open_ns: self.open.until(at_ns),
            busy_ns: self.busy.until(at_ns),
            requests_ns: self.requests.until(at_ns),
            peak: self.peak,
            left: self.open.now().max(0) as u64,
            opened: self.opened,
            handshakes: self.handshakes,
            closed: self.closed,
            came: self.came,
            found: self.found,
        }
    }
}

impl Count {
    /// The count since an earlier one.
    #[must_use]
    pub fn since(&self, earlier: &Count) -> Count {
        let mut closed = self.closed;
        closed.iter_mut().zip(earlier.closed).for_each(|(now, then)| *now -= then);
        Count {
            open_ns: self.open_ns - earlier.open_ns,
            busy_ns: self.busy_ns - earlier.busy_ns,
            requests_ns: self.requests_ns - earlier.requests_ns,
            peak: self.peak,
            left: self.left,
            opened: self.opened - earlier.opened,
            handshakes: self.handshakes - earlier.handshakes,
            closed,
            came: self.came - earlier.came,
            found: self.found - earlier.found,
        }
    }
}

/// All counts at an instant, from the start of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// By group; group 0 has all connections.
    pub groups: Vec<Count>,
    /// By server and by instance: how many there were, over time, ns.
    pub servers_ns: Vec<i128>,
    /// See `servers_ns`.
    pub instances_ns: Vec<i128>,
}
