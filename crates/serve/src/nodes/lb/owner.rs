//! The owner of the process's state: a thread that serves no client has the health of all targets, and with
//! `scope="process"` the state of a balancer itself, unless that is counts alone
//! ([`weir_plan::Lb::has_one_state`]).
//!
//! Loops report to it how requests ended, if that matters to health; for balancers with that scope they ask it for
//! each pick by message, and report when the request is back. Why not atomics: the policies are the simulator's
//! objects, whose state is more than counts (cursors, estimates, probes), and one state seen by one request at a time
//! is exactly what `scope="process"` promises. The price is a message each way, some ten microseconds per request. An
//! owner that does not answer for [`OWNER_ANSWER_NS`] fails the request, rather than hang it.

use super::{Departure, Lb, PickedNode};
use crate::exchange::failure::FailureCause;
use crate::exchange::{Exchange, Failure, RequestContext};
use crate::metrics::Rejected;
use crate::nodes::Id;
use crate::sync::Permit;
use crate::sync::panics::caught;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};
use weir_net::io::timers::{Sleep, has_ended};
use weir_plan::fixed::OWNER_ANSWER_NS;
use weir_policy::{Ask, Kind, Outcome, PickOutcome as Choice, TargetId, Ticket};
use weir_stats::Key;

/// A message to the owner.
pub(crate) enum ToOwner {
    /// A request has come back from a target.
    Outcome {
        lb: Id,
        target: TargetId,
        /// Whether it was the request that probed the target.
        probe: bool,
        outcome: Outcome,
        status: Option<u16>,
    },
    /// A request for a pick.
    Pick(Box<PickRequest>),
    /// A request of a balancer of the process has left its target.
    Back { lb: Id, ticket: Ticket, departure: Departure },
}

/// The channel to the owner.
#[derive(Clone)]
pub(crate) struct Owner {
    pub mail: mpsc::UnboundedSender<ToOwner>,
    /// Whether this is its own thread.
    pub is_here: bool,
}

impl Owner {
    /// Sends a message; ignored if the owner has ended.
    pub fn tell(&self, message: ToOwner) {
        let _ = self.mail.send(message);
    }
}

/// A pick that a request of another thread asks for.
pub(crate) struct PickRequest {
    pub lb: Id,
    draw: Key,
    key: Option<u64>,
    exclude: Vec<TargetId>,
    sticky: Option<TargetId>,
    /// Whether it is the first question, not one after waiting.
    first: bool,
    answer: oneshot::Sender<Result<Answer, Failure>>,
}

/// The owner's answer; a ticket that is not taken goes back when this is dropped.
struct Answer {
    choice: Choice,
    /// When the policy next changes by itself, ns.
    due_ns: u64,
    /// The epoch of the owner's graph.
    epoch: u32,
    lb: Id,
    owner: Owner,
    taken: bool,
}

impl Drop for Answer {
    fn drop(&mut self) {
        if let (Choice::Target(ticket), false) = (self.choice, self.taken) {
            let departure = Departure::Cancelled { late: false };
            self.owner.tell(ToOwner::Back { lb: self.lb, ticket, departure });
        }
    }
}

impl Answer {
    /// The pick; from now on a ticket is the caller's.
    fn take(mut self) -> Choice {
        self.taken = true;
        self.choice
    }
}

/// A question without an answer yet.
struct PendingPick {
    answer: oneshot::Receiver<Result<Answer, Failure>>,
    limit: Sleep,
}

impl PendingPick {
    /// The answer; `None`: the owner has ended, and the process is about to.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Answer>, Failure>> {
        match std::pin::Pin::new(&mut self.answer).poll(cx) {
            Poll::Ready(Ok(answer)) => Poll::Ready(answer.map(Some)),
            Poll::Ready(Err(_)) => Poll::Ready(Ok(None)),
            Poll::Pending if self.limit.poll_ended(cx).is_ready() => {
                Poll::Ready(Err(Failure::new(Kind::Overloaded).with_cause(FailureCause::OwnerSilent)))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl PickRequest {
    /// Picks, on the owner's thread. The permit stays there until the request has come back.
    pub fn answer(self, lb: &Rc<Lb>) {
        let PickRequest { draw, key, exclude, sticky, first, answer, .. } = self;
        let ask = Ask { draw, key, now_ns: lb.core.now(), exclude: &exclude, sticky };
        let picked = caught(|| {
            let (choice, permit) = lb.question(&ask, first);
            lb.lend(choice, permit);
            choice
        });
        let Ok(choice) = picked else {
            let _ = answer.send(Err(Failure::panicked()));
            return;
        };
        // If the request is gone, dropping the answer returns the ticket.
        let due_ns = lb.state.due_ns.get();
        let (id, epoch, owner) = (lb.id, lb.epoch, lb.owner.clone());
        let _ = answer.send(Ok(Answer { choice, due_ns, epoch, lb: id, owner, taken: false }));
    }
}

/// How a wait in line for a target of the owner's ended.
enum Waited {
    Answered(Option<Answer>),
    TooLong,
}

impl Lb {
    /// Keeps the permit of a request of another thread until that has come back.
    fn lend(&self, choice: Choice, permit: Option<Permit>) {
        if let (Choice::Target(ticket), Some(permit)) = (choice, permit) {
            self.state.lent.borrow_mut().push((ticket.target, permit));
        }
    }

    /// Ends a request of another thread.
    pub fn back(self: &Rc<Self>, ticket: Ticket, departure: Departure) {
        let permit = {
            let mut lent = self.state.lent.borrow_mut();
            let at = lent.iter().position(|(target, _)| *target == ticket.target);
            at.map(|at| lent.swap_remove(at))
        };
        // This thread may have read no socket since the pick: the time that the request took is read here.
        self.core.now();
        match departure {
            Departure::Completed(end) => self.returned(ticket, end),
            Departure::Cancelled { late } => self.cancelled(ticket, late),
        }
        drop(permit);
    }

    /// Whether another thread owns its state.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.is_the_owners && !self.owner.is_here
    }

    fn ask_owner(&self, ask: Ask<'_>, first: bool) -> PendingPick {
        let (answer, answered) = oneshot::channel();
        let exclude = ask.exclude.to_vec();
        let Ask { draw, key, sticky, .. } = ask;
        self.owner.tell(ToOwner::Pick(Box::new(PickRequest {
            lb: self.id,
            draw,
            key,
            exclude,
            sticky,
            first,
            answer,
        })));
        PendingPick { answer: answered, limit: self.core.timers.after(OWNER_ANSWER_NS) }
    }

    /// The same as [`Lb::pick`], by asking the owner.
    pub(super) async fn pick_elsewhere(
        self: &Rc<Self>,
        ex: &Exchange,
        ctx: &mut RequestContext,
    ) -> Result<PickedNode, Failure> {
        let mut exclude = self.excluded(ctx);
        loop {
            let Some(answer) = self.choose_elsewhere(ex, ctx, &exclude).await? else {
                return self.go(ctx, Choice::Empty, None);
            };
            // The owner adopts a generation before the loops do.
            poll_fn(|cx| self.newest.poll_epoch(cx, answer.epoch)).await;
            if let Choice::Target(Ticket { target, .. }) = answer.choice
                && !self.leads_to(target)
                && !exclude.contains(&target)
            {
                exclude.push(target);
                continue;
            }
            return self.go(ctx, answer.take(), None);
        }
    }

    async fn choose_elsewhere(
        self: &Rc<Self>,
        ex: &Exchange,
        ctx: &RequestContext,
        exclude: &[TargetId],
    ) -> Result<Option<Answer>, Failure> {
        let nobody_waits = self.semaphore.as_ref().is_none_or(|semaphore| semaphore.queue.is_empty());
        if nobody_waits {
            let mut asked = self.ask_owner(self.asked(ex, ctx, exclude), true);
            let Some(answer) = poll_fn(|cx| asked.poll(cx)).await? else { return Ok(None) };
            if answer.choice != Choice::Full {
                if let (Some(waits), Choice::Target(_)) = (&self.waits, answer.choice) {
                    waits.entered(0);
                }
                return Ok(Some(answer));
            }
        }
        let Some(semaphore) = &self.semaphore else { return Err(Failure::new(Kind::NoTarget)) };
        let Some(waiter) = semaphore.queue.join(self.max_waiting) else {
            return Err(self.rejects(Rejected::Full));
        };
        let since_ns = self.core.now();
        let timers = &self.core.timers;
        let mut limit = self.wait_timeout_ns.map(|ns| timers.after(ns));
        // The open question, and how often the first of this loop had been notified of room before it.
        let (mut asking, mut asked) = (None::<PendingPick>, None);
        // A target may come back by itself as well.
        let mut due = None;
        let answered = poll_fn(|cx| {
            loop {
                // Before the question, so that a permit that is freed meanwhile is noticed.
                let is_first = waiter.is_first(cx);
                if has_ended(&mut due, cx) {
                    (due, asked) = (None, None);
                }
                if asking.is_none() && is_first && asked != Some(semaphore.queue.notifications()) {
                    asked = Some(semaphore.queue.notifications());
                    asking = Some(self.ask_owner(self.asked(ex, ctx, exclude), false));
                }
                match asking.as_mut().map(|asking| asking.poll(cx)) {
                    Some(Poll::Ready(Ok(Some(answer)))) if answer.choice == Choice::Full => {
                        let at = answer.due_ns;
                        due = (at < u64::MAX).then(|| timers.sleep_until(at));
                        asking = None;
                        continue;
                    }
                    Some(Poll::Ready(Ok(answer))) => return Poll::Ready(Ok(Waited::Answered(answer))),
                    Some(Poll::Ready(Err(failure))) => return Poll::Ready(Err(failure)),
                    Some(Poll::Pending) | None => {}
                }
                return if has_ended(&mut limit, cx) {
                    Poll::Ready(Ok(Waited::TooLong))
                } else {
                    Poll::Pending
                };
            }
        })
        .await;
        drop((waiter, asking));
        ex.waited(self.node, ctx, since_ns);
        self.end_wait(since_ns, answered?)
    }

    /// Counts a request whose wait in line has ended.
    fn end_wait(&self, since_ns: u64, waited: Waited) -> Result<Option<Answer>, Failure> {
        match waited {
            Waited::Answered(answer) => {
                if let Some(answer) = &answer {
                    self.count_wait(since_ns, answer.choice);
                }
                Ok(answer)
            }
            Waited::TooLong => Err(self.rejects(Rejected::Timeout)),
        }
    }
}
