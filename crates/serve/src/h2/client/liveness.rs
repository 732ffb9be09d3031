//! Whether the origin of a connection still answers. A request that ended by a time limit may have met a dead
//! connection, which HTTP/1.1 closes with the request; here it is asked by PING and takes nothing new until it answers
//! (`docs/spec/serving.md#silent-connections`).
//!
//! PINGs are bounded. A gRPC server counts each that comes within 5 minutes of the one before (without streams 2 hours),
//! forgets them only when it sends HEADERS or DATA, and ends the connection at the third (`too_many_pings`; grpc-go
//! `internal/transport/http2_server.go`). So [`MOST_PINGS`] are sent without any part of an answer between them. A
//! time-out after those shows an origin that is there and answers no request: nothing new begins on that connection, and
//! what is on it comes to its own end.

use crate::h2::link::Link;
use std::cell::Cell;
use std::task::Context;
use weir_net::io::Core;
use weir_net::io::deadlines::Deadline;
use weir_plan::fixed::H2_PING_NS;

/// PINGs since the origin has last sent a part of an answer: one less than a gRPC server ends a connection for, since
/// others than weir may send some.
const MOST_PINGS: u8 = 2;

/// What is known of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing against it.
    Trusted,
    /// A PING was sent, which it has not answered yet.
    Asked,
    /// It was silent for too long, and ends.
    Dead,
}

/// The state of one connection, which its requests and the task that drives it share.
pub(super) struct Liveness {
    state: Cell<State>,
    /// When it has been silent for too long.
    deadline: Deadline,
    /// PINGs that count against [`MOST_PINGS`].
    pings: Cell<u8>,
}

impl Liveness {
    /// That of a connection that was just made.
    pub fn new(core: &Core) -> Liveness {
        Liveness { state: Cell::new(State::Trusted), deadline: core.deadlines.add(), pings: Cell::new(0) }
    }

    /// Whether requests may begin on it.
    pub fn is_trusted(&self) -> bool {
        self.state.get() == State::Trusted
    }

    /// Whether it was silent for too long.
    pub fn is_dead(&self) -> bool {
        self.state.get() == State::Dead
    }

    /// A request on it has ended by a time limit: asks by PING, unless that is done already. The PING wakes the task
    /// that drives the connection. Returns `false` if it may not be asked again.
    #[cold]
    pub fn ask(&self, link: &Link) -> bool {
        if !self.is_trusted() || link.end().is_some() {
            return true;
        }
        if link.has_answered.take() {
            self.pings.set(0);
        }
        if self.pings.get() == MOST_PINGS {
            return false;
        }
        self.pings.set(self.pings.get() + 1);
        link.heard.set(false);
        self.deadline.set(Some(H2_PING_NS));
        self.state.set(State::Asked);
        link.ping();
        true
    }

    /// The answer to the PING has come.
    pub fn answers(&self) {
        self.deadline.set(None);
        self.state.set(State::Trusted);
    }

    /// Whether the origin has been silent for too long; otherwise wakes the task to look again. Any byte of the origin
    /// shows that it is there, though only the answer makes the connection good for new requests: the PING may wait
    /// behind much data. To be called after everything that has arrived was read.
    #[cold]
    pub fn poll_dead(&self, cx: &mut Context<'_>, link: &Link) -> bool {
        if link.heard.take() {
            self.deadline.set(Some(H2_PING_NS));
        }
        let is_dead = self.deadline.ended(cx);
        if is_dead {
            self.state.set(State::Dead);
        }
        is_dead
    }
}
