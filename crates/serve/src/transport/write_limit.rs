//! `write_timeout`: how long a client may take nothing of the unsent bytes. Every byte that its socket takes restarts
//! it.

use super::session::Session;
use std::cell::OnceCell;
use std::task::Context;
use weir_net::io::deadlines::Deadline;
use weir_net::transport::wire::Wire;

/// The limit of one answer.
#[derive(Clone, Copy, Default)]
pub(crate) struct WriteLimit {
    /// What the socket had taken when the limit was last restarted; `None`: nothing is unsent.
    taken: Option<u64>,
}

impl WriteLimit {
    /// Whether it has passed; otherwise wakes the task then. `deadline`: the connection's own for this limit.
    pub fn has_ended(
        &mut self,
        cx: &mut Context<'_>,
        session: &Session,
        deadline: &OnceCell<Deadline>,
        wire: &Wire,
    ) -> bool {
        if wire.unsent() == 0 {
            self.taken = None;
            return false;
        }
        let deadline = deadline.get_or_init(|| session.deadline.another(None));
        if self.taken != Some(wire.taken()) {
            self.taken = Some(wire.taken());
            deadline.set(session.listener.http.write_timeout_ns);
        }
        deadline.ended(cx)
    }
}
