//! HTTP/2 connections of one loop to one target: each carries many requests, and another is made when no stream is
//! left.
//!
//! A request that arrives while one is being made waits for it, up to its own `connect_timeout`, so that a burst of
//! requests makes one connection and not one each. A connection that fails fails all requests that waited for it.

use crate::exchange::{Failure, OriginConn};
use crate::h2::client::Conn;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The connections, and the one that is being made.
#[derive(Default)]
pub(crate) struct Multiplexed {
    conns: RefCell<Vec<Rc<Conn>>>,
    making: RefCell<Option<Rc<Making>>>,
}

/// A connection that is being made.
#[derive(Default)]
pub(crate) struct Making {
    /// `Ok`: it was made, or another request may try.
    made: Cell<Option<Result<(), Failure>>>,
    waiting: RefCell<Vec<Waker>>,
}

/// Which connections a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Any; one that has refused a stream lately only if no other has room.
    Any,
    /// One that has refused no stream lately, since another has refused this request.
    Willing,
    /// One that is made now, since another has ended under this request.
    New,
}

/// Connections that may refuse at once while a request that one of them has refused makes another: an origin that
/// refuses everything gets no connection for each request.
const REFUSING: usize = 2;

/// What to do when no stream is left.
pub(crate) enum Turn {
    /// Make a connection.
    Make(Maker),
    /// Wait for the one that another request makes.
    Wait(Rc<Making>),
    /// Look again later: the origin allows no streams at present, and one more connection would not help.
    Pause,
    /// Do nothing more: the origin refuses on several connections.
    GiveUp,
}

/// The right to make a connection; when it is dropped the next request gets it.
pub(crate) struct Maker(Rc<Making>);

impl Multiplexed {
    /// A place for a request, on the oldest connection that has one.
    pub fn take(&self, now_ns: u64, idle_timeout_ns: Option<u64>, choice: Choice) -> Option<OriginConn> {
        let conns = self.conns.borrow();
        let of = |refusing| conns.iter().filter(move |conn| conn.is_refusing(now_ns) == refusing);
        let place = of(false).find_map(|conn| conn.take(now_ns, idle_timeout_ns));
        let place = match choice {
            Choice::Any => place.or_else(|| of(true).find_map(|conn| conn.take(now_ns, idle_timeout_ns))),
            Choice::Willing | Choice::New => place,
        };
        place.map(OriginConn::H2)
    }

    /// Whether the origin allows no stream at present, by the settings of the newest connection that may be used. Another
    /// connection would be of no more use.
    fn is_closed(&self, now_ns: u64, idle_timeout_ns: Option<u64>) -> bool {
        let conns = self.conns.borrow();
        let newest = conns.iter().rev().find(|conn| conn.is_usable(now_ns, idle_timeout_ns));
        newest.is_some_and(|conn| conn.allows_none())
    }

    /// Whether another connection may be of use to a request that one of these has refused.
    fn may_find_willing(&self, now_ns: u64) -> bool {
        self.conns.borrow().iter().filter(|conn| conn.is_refusing(now_ns)).count() < REFUSING
    }

    /// A place for an upgrade, on the oldest connection that has one and whose origin allows extended CONNECT.
    pub fn take_extended(&self, now_ns: u64, idle_timeout_ns: Option<u64>) -> Option<OriginConn> {
        let conns = self.conns.borrow();
        let mut conns = conns.iter().filter(|conn| conn.has_extended_connect());
        conns.find_map(|conn| conn.take(now_ns, idle_timeout_ns)).map(OriginConn::H2)
    }

    /// Decides whether the caller makes a connection or waits for one.
    pub fn turn(&self, now_ns: u64, idle_timeout_ns: Option<u64>, choice: Choice) -> Turn {
        if choice == Choice::Willing && !self.may_find_willing(now_ns) {
            return Turn::GiveUp;
        }
        if self.is_closed(now_ns, idle_timeout_ns) {
            return Turn::Pause;
        }
        let mut making = self.making.borrow_mut();
        match &*making {
            Some(making) if making.made.get().is_none() => Turn::Wait(making.clone()),
            _ => {
                let new = Rc::<Making>::default();
                *making = Some(new.clone());
                Turn::Make(Maker(new))
            }
        }
    }

    /// Adds a connection.
    pub fn put(&self, conn: Rc<Conn>) {
        self.conns.borrow_mut().push(conn);
    }

    /// Releases connections that take no more requests or lead elsewhere; each ends after its last request.
    pub fn keep_only(&self, mut good: impl FnMut(&Rc<Conn>) -> bool) {
        self.conns.borrow_mut().retain(|conn| good(conn));
    }

    /// The number of connections.
    pub fn len(&self) -> usize {
        self.conns.borrow().len()
    }

    /// The number of connections without a request.
    pub fn idle(&self) -> usize {
        self.conns.borrow().iter().filter(|conn| conn.idle_since_ns().is_some()).count()
    }

    /// When the longest idle connection became idle, ns.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.conns.borrow().iter().filter_map(|conn| conn.idle_since_ns()).min()
    }

    /// Closes the longest idle connection; returns whether there was one.
    pub fn close_one(&self) -> bool {
        let mut conns = self.conns.borrow_mut();
        let idle = (0..conns.len()).filter_map(|i| Some((conns[i].idle_since_ns()?, i)));
        let oldest = idle.min().map(|(_, i)| i);
        oldest.map(|i| conns.remove(i)).is_some()
    }
}

impl Making {
    /// The result of making it. `waits`: whether this was polled before.
    pub fn poll(&self, cx: &mut Context<'_>, waits: &mut bool) -> Poll<Result<(), Failure>> {
        if let Some(made) = self.made.get() {
            return Poll::Ready(made);
        }
        if !std::mem::replace(waits, true) {
            self.waiting.borrow_mut().push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Maker {
    /// The connection that is being made, to wait for as others do.
    pub fn making(&self) -> Rc<Making> {
        self.0.clone()
    }

    /// Reports the result to the requests that wait.
    pub fn made(&self, made: Result<(), Failure>) {
        if self.0.made.replace(Some(made)).is_none() {
            self.0.waiting.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Maker {
    /// The request that made it is gone: another tries.
    fn drop(&mut self) {
        if self.0.made.get().is_none() {
            self.made(Ok(()));
        }
    }
}
