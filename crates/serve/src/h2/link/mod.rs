//! A connection of HTTP/2, of either role: the codec (`weir_http2`), the socket, and what is kept of each stream.
//!
//! One task drives it ([`Link::poll`]). It reads what has come, leaves each event with its stream, and wakes the task of
//! that stream. The tasks of streams never use the socket: they write heads and small pieces of bodies into its queue, and
//! leave the rest with the stream. The driver comes after them, and sends in one write what all of them have left: control
//! frames, heads, and the bodies of many streams in the order of RFC 9218.
//!
//! Buffers exist only while something is in them, so that an idle connection holds none.

mod incoming;
mod open_stream;
mod parser;
mod read;
mod slot;
mod slots;
mod write;

pub(crate) use incoming::{Incoming, UnwantedBody};
pub(crate) use open_stream::OpenStream;
pub(crate) use slot::{AnswerHead, Fate};

use crate::sync::buffered::BufferedBytes;
use slots::Slots;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http2::{Config, Connection, ConnectionError, Event, Head, Role};
use weir_net::io::Core;
use weir_net::io::deadlines::Deadline;
use weir_net::io::runtime::{AfterOthers, Waiter};
use weir_net::transport::wire::Wire;

/// A connection.
pub(crate) struct Link {
    core: Rc<Core>,
    pub wire: RefCell<Wire>,
    pub codec: RefCell<Connection>,
    slots: RefCell<Slots>,
    /// The task that drives it.
    driver: Waiter,
    /// Whether bytes have come since this was reset.
    pub heard: Cell<bool>,
    /// Whether a part of an answer or of a request has come since this was reset.
    pub has_answered: Cell<bool>,
    /// How it has ended.
    end: Cell<Option<LinkEnd>>,
    /// When the codec has something to do, and the limit that says so to the driver.
    due_ns: Cell<Option<u64>>,
    timer: Deadline,
    /// What the socket has not taken.
    held: RefCell<BufferedBytes>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkEnd {
    /// One side has said that it ends, and the last stream is over.
    InOrder,
    /// The peer has gone.
    Gone,
    /// The peer has broken a rule of the connection.
    Fault(ConnectionError),
}

impl Link {
    /// A connection on which nothing was read yet, beyond what the wire holds.
    pub fn new(core: &Rc<Core>, wire: Wire, role: Role, config: Config) -> Rc<Link> {
        Rc::new(Link {
            core: core.clone(),
            wire: RefCell::new(wire),
            codec: RefCell::new(Connection::new(role, config)),
            slots: RefCell::default(),
            driver: Waiter::default(),
            heard: Cell::new(false),
            has_answered: Cell::new(false),
            end: Cell::new(None),
            due_ns: Cell::new(None),
            timer: core.deadlines.add(),
            held: RefCell::default(),
        })
    }

    /// Reads what has come, and sends what is queued after the tasks that are ready have run; ready at the end of the
    /// connection. `take` gets all events but those of bodies; heads and trailers lie in the head.
    pub fn poll(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        turn: &mut AfterOthers,
        mut take: impl FnMut(Event, &Head),
    ) -> Poll<LinkEnd> {
        self.driver.set(&self.core.runtime, cx);
        if self.poll_read(cx, &mut take).is_ready() {
            self.finish(LinkEnd::Gone);
            return Poll::Ready(LinkEnd::Gone);
        }
        if let Some(error) = self.check_time(cx) {
            take(Event::Failed(error), &Head::default());
        }
        if let Poll::Ready(Err(_)) = self.poll_write(cx, turn) {
            self.finish(LinkEnd::Gone);
            return Poll::Ready(LinkEnd::Gone);
        }
        if !self.is_done() {
            return Poll::Pending;
        }
        let end = self.end.get().unwrap_or(LinkEnd::InOrder);
        self.finish(end);
        Poll::Ready(end)
    }

    /// Whether nothing more happens on it, and everything was sent.
    fn is_done(&self) -> bool {
        let codec = self.codec.borrow();
        codec.is_done() && !codec.has_output() && self.wire.borrow().unsent() == 0
    }

    /// Does what the codec has to do at this time.
    fn check_time(&self, cx: &mut Context<'_>) -> Option<ConnectionError> {
        let mut codec = self.codec.borrow_mut();
        let mut due_ns = codec.deadline_ns();
        let mut failed = None;
        if due_ns.is_some_and(|due_ns| due_ns <= self.core.recent()) {
            failed = codec.on_time(self.core.now()).err();
            due_ns = codec.deadline_ns();
        }
        drop(codec);
        if self.due_ns.replace(due_ns) != due_ns {
            self.timer.set(due_ns.map(|due_ns| due_ns.saturating_sub(self.core.recent())));
        }
        if due_ns.is_some() && self.timer.ended(cx) {
            // Its tick is a little early or late: look again at the next one.
            self.timer.set(due_ns.map(|due_ns| due_ns.saturating_sub(self.core.recent())));
            let _ = self.timer.ended(cx);
        }
        if let Some(error) = failed {
            self.fail(error);
        }
        failed
    }

    /// Wakes the task that drives it.
    pub fn wake(&self) {
        self.driver.wake(&self.core.runtime);
    }

    /// How it has ended, if it has.
    pub fn end(&self) -> Option<LinkEnd> {
        self.end.get()
    }

    /// The peer has broken a rule: its streams are over.
    fn fail(&self, error: ConnectionError) {
        self.finish(LinkEnd::Fault(error));
    }

    /// Nothing more comes on any stream.
    pub fn finish(&self, end: LinkEnd) {
        if self.end.get().is_none() {
            self.end.set(Some(end));
        }
        let mut slots = self.slots.borrow_mut();
        for slot in slots.iter_mut() {
            slot.end(Fate::Cut);
            slot.wake(&self.core.runtime);
        }
    }

    /// Asks the peer by PING whether it is there.
    pub fn ping(&self) {
        self.codec.borrow_mut().ping();
        self.wake();
    }

    /// Releases what an idle connection does not need.
    pub fn rest(&self) {
        self.wire.borrow_mut().rest();
    }
}
