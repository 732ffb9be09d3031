//! `scope="process"`: all loops share one state of a balancer, and the loop that keeps health owns it.
//!
//! Others ask it for each pick by message, and tell it when the request is back. Why not atomics: the policies are the
//! simulator's objects, whose state is more than counts (cursors, estimates, probes), and one state seen by one request at a
//! time is exactly what `scope="process"` promises. The price is a message each way, some ten microseconds per request.

use crate::control::event_loop::Loop;
use crate::control::mailbox::{OWNER, ToLoop};
use crate::control::process::Process;
use crate::exchange::Exchange;
use crate::exchange::failure::Failure;
use crate::io::timers::has_ended;
use crate::nodes::lb::{Lb, Taken, Went};
use crate::nodes::{NodeId, Way};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::oneshot;
use weir_policy::{Ask, Kind, Outcome, Picked as Choice, Ticket};
use weir_stats::Key;
use weir_topology::plan::Scope;

/// How a request came back, with the status of its answer; `None`: it was cancelled.
pub(crate) type Came = Option<(Outcome, Option<u16>)>;

/// A target is wanted by a request of another loop.
pub(crate) struct Wanted {
    pub lb: NodeId,
    draw: Key,
    key: Option<u64>,
    exclude: Vec<u32>,
    sticky: Option<u32>,
    /// Whether it was not asked for before.
    first: bool,
    answer: oneshot::Sender<Answer>,
}

/// What the owner says; a ticket that nobody takes goes back by itself.
struct Answer {
    choice: Choice,
    /// When the policy has something to do by itself.
    due_ns: u64,
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
pub(super) fn back(process: &Process, lb: NodeId, ticket: Ticket, came: Came) {
    process.tell(OWNER, ToLoop::Back { lb, ticket, came });
}

/// Asks the owner: what it picks, and when it may pick something else by itself.
pub(super) async fn ask(lp: &Loop, lb: NodeId, ask: Ask<'_>, first: bool) -> (Choice, u64) {
    let (answer, answered) = oneshot::channel();
    let exclude = ask.exclude.to_vec();
    let wanted = Wanted { lb, draw: ask.draw, key: ask.key, exclude, sticky: ask.sticky, first, answer };
    lp.process.tell(OWNER, ToLoop::Pick(Box::new(wanted)));
    match answered.await {
        Ok(mut answer) => {
            answer.taken = true;
            (answer.choice, answer.due_ns)
        }
        // The owner has ended: the process is about to.
        Err(_) => (Choice::Empty, u64::MAX),
    }
}

impl Wanted {
    /// The owner picks. The slot goes along: who asked gives it back.
    pub fn answer(self, lp: &Rc<Loop>, lb: &Lb) {
        let Wanted { draw, key, exclude, sticky, first, answer, .. } = self;
        let (choice, slot) =
            lb.question(&Ask { draw, key, now_ns: lp.now(), exclude: &exclude, sticky }, first);
        lb.lend(choice, slot);
        // Where the request is gone the ticket comes back as it is dropped.
        let (lb, due_ns, process) = (lb.id, lb.due_ns.get(), lp.process.clone());
        let _ = answer.send(Answer { choice, due_ns, lb, process, taken: false });
    }
}

impl Lb {
    /// Keeps the slot of a request of another loop, until that is back.
    fn lend(&self, choice: Choice, slot: Taken) {
        if let (Choice::Target(ticket), Some(slot)) = (choice, slot) {
            self.lent.borrow_mut().push((ticket.target, slot));
        }
    }

    /// A request of another loop is back, or was cancelled.
    pub fn back(self: &Rc<Self>, lp: &Rc<Loop>, ticket: Ticket, came: Came) {
        let slot = {
            let mut lent = self.lent.borrow_mut();
            let at = lent.iter().position(|(target, _)| *target == ticket.target);
            at.map(|at| lent.swap_remove(at))
        };
        match came {
            Some((outcome, status)) => self.came_back(lp, ticket, outcome, status),
            None => self.was_cancelled(lp, ticket),
        }
        drop(slot);
    }
}

impl Lb {
    /// Whether another loop owns its state.
    pub(super) fn is_elsewhere(&self, lp: &Loop) -> bool {
        self.scope == Scope::Process && lp.keeper().is_none()
    }

    /// As [`Lb::pick`], with each question put to the owner.
    pub(super) async fn pick_elsewhere(
        self: &Rc<Self>,
        lp: &Rc<Loop>,
        ex: &Exchange,
        way: &mut Way,
    ) -> Result<Went, Failure> {
        let exclude = self.excluded(way);
        let nobody_waits = self.gate.as_ref().is_none_or(|gate| gate.line.is_empty());
        if nobody_waits {
            let (choice, _) = ask(lp, self.id, self.asked(lp, ex, way, &exclude), true).await;
            if choice != Choice::Full {
                return self.go(lp, way, choice, None);
            }
        }
        let Some(gate) = &self.gate else { return Err(Failure::new(Kind::NoTarget)) };
        let Some(place) = gate.line.join(self.max_waiting) else {
            return Err(Failure::new(Kind::Overloaded));
        };
        let mut limit = self.wait_timeout_ns.map(|ns| lp.timers.after(ns));
        // The question under way, and how often this loop's first had been told of room before it.
        let (mut asking, mut asked) = (None, None);
        // A target may come back by itself as well.
        let mut due = None;
        let choice = poll_fn(|cx| {
            loop {
                // Before the question, so that a slot that is freed meanwhile is heard of.
                let is_first = place.is_first(cx);
                if has_ended(&mut due, cx) {
                    (due, asked) = (None, None);
                }
                if asking.is_none() && is_first && asked != Some(gate.line.told_so_often()) {
                    asked = Some(gate.line.told_so_often());
                    asking = Some(Box::pin(ask(lp, self.id, self.asked(lp, ex, way, &exclude), false)));
                }
                match asking.as_mut().map(|a| a.as_mut().poll(cx)) {
                    Some(Poll::Ready((Choice::Full, at))) => {
                        due = (at < u64::MAX).then(|| lp.timers.at(at));
                        asking = None;
                        continue;
                    }
                    Some(Poll::Ready((choice, _))) => return Poll::Ready(Some(choice)),
                    Some(Poll::Pending) | None => {}
                }
                return if has_ended(&mut limit, cx) { Poll::Ready(None) } else { Poll::Pending };
            }
        })
        .await;
        drop((place, asking));
        match choice {
            Some(choice) => self.go(lp, way, choice, None),
            None => Err(Failure::new(Kind::Timeout)),
        }
    }
}
