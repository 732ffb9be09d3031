//! What is counted of a target's connections on one thread.

use super::counts::{By, Count, values};
use super::histogram::Histogram;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

values! {
    /// How a connection to an origin ended.
    Ending {
        /// Its last exchange broke off, or wanted it to end.
        Exchange "exchange",
        /// The origin has closed it while it was idle, or said something unasked.
        Origin "origin",
        /// It was idle for too long.
        Idle "idle",
        /// It had its `max_age` or `max_requests`.
        Age "age",
        /// It was idle and is not needed: enough others are, a limit wants room, its target is gone or elsewhere, weir drains.
        Spare "spare",
        /// It floods weir with frames.
        Flood "flood",
    }
}

/// The counters of a target's connections.
#[derive(Default)]
pub(crate) struct ConnectionCounts {
    pub opened: Count,
    /// Attempts on a connection that was there already.
    pub reused: Count,
    /// Requests that were sent once more, since the connection that they were on had just ended.
    pub resent: Count,
    pub closed: By<Ending, { Ending::COUNT }>,
    /// How long it took until they stood; made with the first.
    connected: OnceCell<Box<Histogram>>,
}

impl ConnectionCounts {
    /// A connection stands after so long.
    pub fn opens(self: &Rc<Self>, took_ns: u64) -> OpenConnection {
        self.opened.one();
        self.connected.get_or_init(Box::default).observe(took_ns);
        OpenConnection { counts: self.clone(), ending: Cell::new(Ending::Exchange) }
    }

    /// How long connections took; `None`: there was none.
    pub fn connected(&self) -> Option<&Histogram> {
        self.connected.get().map(|histogram| &**histogram)
    }

    /// Those that are open.
    pub fn open(&self) -> u64 {
        self.opened.get().wrapping_sub(self.closed.sum())
    }
}

/// A connection that is open; dropped, it is closed.
pub(crate) struct OpenConnection {
    counts: Rc<ConnectionCounts>,
    ending: Cell<Ending>,
}

impl OpenConnection {
    /// Sets the reason that is counted if the connection ends from now on.
    #[inline]
    pub fn set_ending(&self, ending: Ending) {
        self.ending.set(ending);
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.counts.closed.one(self.ending.get());
    }
}
