//! Whether the origin of a connection still answers. A request that ended by a time limit may have met a dead
//! connection, which HTTP/1.1 closes with the request; here it is asked by PING and takes nothing new until it answers
//! (`docs/spec/serving.md#silent-connections`).

use crate::h2::Shared;
use h2::{Ping, PingPong};
use std::cell::{Cell, RefCell};
use std::task::Context;
use weir_net::io::Core;
use weir_net::io::deadlines::Deadline;
use weir_plan::fixed::H2_PING_NS;

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
    /// `None`: another part of the program sends its PINGs.
    pings: RefCell<Option<PingPong>>,
    /// When it has been silent for too long.
    deadline: Deadline,
}

impl Liveness {
    /// That of a connection that was just made.
    pub fn new(core: &Core, pings: Option<PingPong>) -> Liveness {
        Liveness {
            state: Cell::new(State::Trusted),
            pings: RefCell::new(pings),
            deadline: core.deadlines.add(),
        }
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
    /// that drives the connection.
    #[cold]
    pub fn ask(&self, shared: &Shared) {
        if self.is_trusted()
            && let Some(pings) = &mut *self.pings.borrow_mut()
            && pings.send_ping(Ping::opaque()).is_ok()
        {
            shared.heard.set(false);
            self.deadline.set(Some(H2_PING_NS));
            self.state.set(State::Asked);
        }
    }

    /// Looks for the answer to the PING; returns whether the origin has been silent for too long. Otherwise wakes the
    /// task to look again. Any byte of the origin shows that it is there, though only the answer makes the connection
    /// good for new requests: the PING may wait behind much data. To be called after everything that has arrived was
    /// read.
    #[cold]
    pub fn poll_dead(&self, cx: &mut Context<'_>, shared: &Shared) -> bool {
        if let Some(pings) = &mut *self.pings.borrow_mut()
            && pings.poll_pong(cx).is_ready()
        {
            self.deadline.set(None);
            self.state.set(State::Trusted);
            return false;
        }
        if shared.heard.take() {
            self.deadline.set(Some(H2_PING_NS));
        }
        let dead = self.deadline.ended(cx);
        if dead {
            self.state.set(State::Dead);
        }
        dead
    }
}
