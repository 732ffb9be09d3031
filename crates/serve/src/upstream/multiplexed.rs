//! Connections of HTTP/2 to one target, of one loop: each carries many requests, and another is made when no stream is left.
//!
//! Who comes while one is being made waits for it, for as long as its own `connect_timeout` lets it: so that a burst of requests
//! makes one connection, and not one each. A connection that fails fails all who waited for it.

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
    /// `Ok`: there is one more now, or it may be tried again.
    made: Cell<Option<Result<(), Failure>>>,
    waiting: RefCell<Vec<Waker>>,
}

/// Whose turn it is where no stream is left.
pub(crate) enum Turn {
    /// This one makes a connection.
    Make(Maker),
    /// Another does.
    Wait(Rc<Making>),
}

/// Makes a connection; dropped, the next one may.
pub(crate) struct Maker(Rc<Making>);

impl Multiplexed {
    /// A place for a request, on the oldest connection that has one.
    pub fn take(&self, now_ns: u64, idle_timeout_ns: Option<u64>) -> Option<OriginConn> {
        let conns = self.conns.borrow();
        conns.iter().find_map(|conn| conn.take(now_ns, idle_timeout_ns)).map(OriginConn::H2)
    }

    /// Whose turn it is to make a connection.
    pub fn turn(&self) -> Turn {
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

    /// One more.
    pub fn put(&self, conn: Rc<Conn>) {
        self.conns.borrow_mut().push(conn);
    }

    /// Lets those go that take no more requests, or do not lead where they should; each ends after its last.
    pub fn keep_only(&self, mut good: impl FnMut(&Rc<Conn>) -> bool) {
        self.conns.borrow_mut().retain(|conn| good(conn));
    }

    /// Those on which no request is.
    pub fn idle(&self) -> usize {
        self.conns.borrow().iter().filter(|conn| conn.idle_since_ns().is_some()).count()
    }

    /// Since when the one is idle that has been so for longest.
    pub fn oldest_ns(&self) -> Option<u64> {
        self.conns.borrow().iter().filter_map(|conn| conn.idle_since_ns()).min()
    }

    /// Closes the one that has been idle for longest; whether there was one.
    pub fn close_one(&self) -> bool {
        let mut conns = self.conns.borrow_mut();
        let idle = (0..conns.len()).filter_map(|i| Some((conns[i].idle_since_ns()?, i)));
        let oldest = idle.min().map(|(_, i)| i);
        oldest.map(|i| conns.remove(i)).is_some()
    }
}

impl Making {
    /// What became of it. `waits`: whether this was asked before.
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
    /// It was made, or failed.
    pub fn made(&self, made: Result<(), Failure>) {
        if self.0.made.replace(Some(made)).is_none() {
            self.0.waiting.take().into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Maker {
    /// Who made it is not there any more: another tries.
    fn drop(&mut self) {
        if self.0.made.get().is_none() {
            self.made(Ok(()));
        }
    }
}
