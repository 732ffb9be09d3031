//! Counts of a target's connections on one thread.

use super::counts::{Count, CountsBy, values};
use super::histogram::Histogram;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

values! {
    /// How a connection to an origin ended.
    Ending {
        /// Its last exchange broke off, or requested its end.
        Exchange "exchange",
        /// The origin closed it while it was idle, or sent something unrequested.
        Origin "origin",
        /// It was idle for too long.
        Idle "idle",
        /// It had its `max_age` or `max_requests`.
        Age "age",
        /// It was idle and is not needed: enough others are, a limit requires room, its target is gone or elsewhere,
        /// weir drains.
        Spare "spare",
        /// It floods weir with frames.
        Flood "flood",
        /// It stayed silent after a time-out, despite a PING.
        Silent "silent",
    }
}

values! {
    /// How a TLS handshake with an origin ended.
    OriginHandshake {
        /// A certificate was shown.
        Full "full",
        /// It continued a session.
        Resumed "resumed",
        Failed "failed",
    }
}

/// The counters of a target's connections.
#[derive(Default)]
pub(crate) struct ConnectionCounts {
    pub opened: Count,
    /// Open connections of HTTP/2.
    pub h2_open: Count,
    /// Requests that have a place on one of those.
    pub streams: Count,
    pub handshakes: CountsBy<OriginHandshake, { OriginHandshake::COUNT }>,
    /// Attempts on an existing connection.
    pub reused: Count,
    /// Requests that were sent once more, since their connection had just ended.
    pub resent: Count,
    pub closed: CountsBy<Ending, { Ending::COUNT }>,
    /// The times of connecting; created with the first.
    connected: OnceCell<Box<Histogram>>,
}

impl ConnectionCounts {
    /// Counts a connection that was made in this time.
    pub fn opens(self: &Rc<Self>, took_ns: u64) -> OpenConnection {
        self.opened.one();
        self.connected.get_or_init(Box::default).observe(took_ns);
        OpenConnection { counts: self.clone(), ending: Cell::new(Ending::Exchange), is_h2: Cell::new(false) }
    }

    /// The times of connecting; `None`: there were none.
    pub fn connected(&self) -> Option<&Histogram> {
        self.connected.get().map(|histogram| &**histogram)
    }

    /// Open connections.
    pub fn open(&self) -> u64 {
        self.opened.get().wrapping_sub(self.closed.sum())
    }
}

/// An open connection; dropping it counts its end.
pub(crate) struct OpenConnection {
    counts: Rc<ConnectionCounts>,
    ending: Cell<Ending>,
    is_h2: Cell<bool>,
}

impl OpenConnection {
    /// Sets the reason that is counted if the connection ends from now on.
    #[inline]
    pub fn set_ending(&self, ending: Ending) {
        self.ending.set(ending);
    }

    /// It carries HTTP/2 from now on.
    pub fn set_h2(&self) {
        if !self.is_h2.replace(true) {
            self.counts.h2_open.one();
        }
    }

    /// The counters of its target.
    pub fn counts(&self) -> &ConnectionCounts {
        &self.counts
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.counts.closed.one(self.ending.get());
        if self.is_h2.get() {
            self.counts.h2_open.less();
        }
    }
}
