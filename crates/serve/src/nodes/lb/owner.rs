//! `scope="process"`: all loops share one state of a balancer, and the keeper's loop owns it.
//!
//! Others ask it for each pick by message, and tell it when the request is back. Why not atomics: the policies are the
//! simulator's objects, whose state is more than counts (cursors, estimates, probes), and one state seen one request at a
//! time is exactly what `scope="process"` promises. The price is a message each way, some ten microseconds per request.

use super::Lb;
use crate::event_loop::Loop;
use crate::mailbox::ToLoop;
use crate::nodes::NodeId;
use crate::process::Process;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::oneshot;
use weir_policy::{Ask, Picked as Choice, Ticket};
use weir_stats::Key;

/// A target is wanted by a request of another loop.
pub(crate) struct Wanted {
    pub lb: NodeId,
    draw: Key,
    key: Option<u64>,
    exclude: Vec<u32>,
    sticky: Option<u32>,
    answer: oneshot::Sender<Answer>,
}

/// What the owner says; a ticket that nobody takes goes back by itself.
struct Answer {
    choice: Choice,
    lb: NodeId,
    process: Arc<Process>,
    taken: bool,
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let (Choice::Target(ticket), false) = (self.choice, self.taken) {
            back(&self.process, self.lb, ticket, None);
        }
    }
}

/// Tells the owner that a request is back.
pub(crate) fn back(process: &Process, lb: NodeId, ticket: Ticket, came: super::Came) {
    process.tell(super::OWNER, ToLoop::Back { lb, ticket, came });
}

/// Asks the owner.
pub(crate) async fn ask(lp: &Loop, lb: NodeId, ask: Ask<'_>) -> Choice {
    let (answer, answered) = oneshot::channel();
    let exclude = ask.exclude.to_vec();
    let wanted = Wanted { lb, draw: ask.draw, key: ask.key, exclude, sticky: ask.sticky, answer };
    lp.process.tell(super::OWNER, ToLoop::Pick(Box::new(wanted)));
    match answered.await {
        Ok(mut answer) => {
            answer.taken = true;
            answer.choice
        }
        // The owner has ended: the process is about to.
        Err(_) => Choice::Empty,
    }
}

impl Wanted {
    /// The owner picks.
    pub fn answer(self, lp: &Rc<Loop>, lb: &Lb) {
        let Wanted { draw, key, exclude, sticky, answer, .. } = self;
        let choice = lb.choose(&Ask { draw, key, now_ns: lp.now(), exclude: &exclude, sticky });
        // Where the request is gone the ticket comes back as it is dropped.
        let _ = answer.send(Answer { choice, lb: lb.id, process: lp.process.clone(), taken: false });
    }
}
