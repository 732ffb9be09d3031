//! Whether the origin of a connection still answers. A request that ended by a time limit may have met a dead
//! connection, which HTTP/1.1 closes with the request; here it is asked by PING and takes nothing new until it answers
//! (`docs/spec/serving.md#silent-connections`).

use crate::h2::link::Link;
use std::cell::Cell;
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
    /// When it has been silent for too long.
    deadline: Deadline,
}

impl Liveness {
    /// That of a connection that was just made.
    pub fn new(core: &Core) -> Liveness {
        Liveness { state: Cell::new(State::Trusted), deadline: core.deadlines.add() }
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
    pub fn ask(&self, link: &Link) {
        if self.is_trusted() && link.end().is_none() {
            link.heard.set(false);
            self.deadline.set(Some(H2_PING_NS));
            self.state.set(State::Asked);
            link.ping();
        }
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
