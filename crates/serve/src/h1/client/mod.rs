//! Connections to origins, and the requests on them: the origin's end of an exchange.

pub(crate) mod probe;
mod stream;

pub(crate) use stream::Stream;

use crate::message::ConnectionHold;
use crate::metrics::Ending;
use crate::transport::inner::OwnConnection;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use weir_net::io::Core;
use weir_net::io::deadlines::Deadline;
use weir_net::transport::socket::Socket;
use weir_net::transport::wire::Wire;

/// A connection to an origin.
pub(crate) struct Conn {
    /// Released before the connection closes.
    _own: Option<OwnConnection>,
    wire: Wire,
    /// Silence of the origin.
    pub deadline: Deadline,
    /// When it was made.
    pub opened_ns: u64,
    /// When it closes at the latest, by its age.
    pub old_ns: u64,
    /// Requests that were begun on it.
    pub requests: u64,
    /// Whether it belongs to one client's connection (NTLM, Negotiate).
    pub bound: bool,
    /// The mark that the origin chose this version although both were offered.
    pub chosen: Option<Rc<()>>,
    /// Whether the last answer had no body by its rules: some origins send one nevertheless.
    is_doubtful: bool,
    /// What else it holds.
    pub held: ConnectionHold,
}

impl Conn {
    /// A connection that was just made, which closes at `old_ns`.
    pub fn new(core: &Core, socket: Socket, old_ns: u64, mut held: ConnectionHold) -> Conn {
        Conn {
            _own: held.own.take(),
            wire: Wire::new(socket, core.buffers.clone()),
            deadline: core.deadlines.add(),
            opened_ns: core.now(),
            old_ns,
            requests: 0,
            bound: false,
            chosen: None,
            is_doubtful: false,
            held,
        }
    }

    /// Whether it is open and no unexpected bytes have arrived. Reading costs no system call if no event has come; if
    /// no event can have come yet, or this task has used up its turn, the socket itself is asked.
    pub fn is_silent(&mut self) -> bool {
        if (self.is_doubtful || !self.wire.socket.has_budget()) && self.wire.socket.has_input() {
            return false;
        }
        matches!(self.wire.poll_fill(&mut Context::from_waker(Waker::noop())), Poll::Pending)
    }

    /// Prepares it for being idle. Asserts, always, that nothing of an exchange is left over.
    pub fn rest(&mut self) {
        let nothing_left = self.wire.input().is_empty() && self.wire.unsent() == 0 && !self.wire.has_ended();
        assert!(nothing_left, "a connection with bytes of an exchange goes back to its pool");
        self.wire.rest();
        self.deadline.set(None);
        self.held.set_ending(Ending::Spare);
    }

    /// Its socket, whose peer shows where it leads.
    pub fn socket(&self) -> &Socket {
        &self.wire.socket
    }
}
