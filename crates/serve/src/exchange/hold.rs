//! What nodes hold until a response has come back completely: a balancer's count, a queue's permit, a time limit.
//!
//! A hold that is dropped unfinished was cancelled; a hold that is finished is given the request's outcome.

use super::drain;
use super::origin_reply::OriginReplyBox;
use super::reply::{Answer, Reply, ReplySource};
use super::time_limit::TimeLimit;
use super::{Exchange, Failure};
use crate::sync::Permit;
use crate::sync::process::CrashWatch;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::rc::Rc;
use std::task::Context;
use weir_model::OnCancel;
use weir_net::io::Core;
use weir_policy::config::Exclude;
use weir_policy::retry::{BalancerId, TriedTargets};
use weir_policy::{Kind, Outcome, TargetId, Ticket};

/// Something that a node holds.
pub(crate) enum Hold {
    /// A balancer's count of a target.
    Target(TargetHold),
    /// A time limit.
    Timeout(TimeLimit),
    /// A queue's permit.
    Permit(HeldPermit),
    /// A process that may crash.
    Process(CrashWatch),
}

/// How a request ended.
#[derive(Clone, Copy)]
pub(crate) struct Completion {
    pub outcome: Outcome,
    /// The status of its answer, if there was one.
    pub status: Option<u16>,
    /// Whether a balancer further in has relayed an error ([`Failure::relayed`]).
    pub relayed: bool,
}

/// A balancer that counts requests at its targets.
pub(crate) trait InFlightCounter {
    /// Called when the head of an answer to a counted request arrives.
    fn on_head(&self, ticket: Ticket, reply: &Reply);

    /// Called when a counted request has ended.
    fn on_completed(self: Rc<Self>, ticket: Ticket, end: Completion);

    /// Called when a counted request was cancelled.
    fn on_cancelled(self: Rc<Self>, ticket: Ticket);
}

/// The targets that a request has tried, with the rule of the `retry` around.
pub(crate) type Attempts = Option<(Exclude, Rc<RefCell<TriedTargets>>)>;

/// A request counted at a target.
pub(crate) struct TargetHold {
    /// The balancer; `None` once it was notified.
    balancer: Option<Rc<dyn InFlightCounter>>,
    /// Its identity.
    id: BalancerId,
    ticket: Ticket,
    tried: Attempts,
    /// Freed last: a request that waits for it finds the rest done.
    _permit: Option<Permit>,
}

impl TargetHold {
    /// Begins to count a request.
    pub fn new(
        balancer: Rc<dyn InFlightCounter>,
        id: BalancerId,
        ticket: Ticket,
        tried: Attempts,
        permit: Option<Permit>,
    ) -> TargetHold {
        TargetHold { balancer: Some(balancer), id, ticket, tried, _permit: permit }
    }

    /// The index of the target.
    pub fn target(&self) -> TargetId {
        self.ticket.target
    }

    /// Reports that the head of its answer has arrived.
    fn headed(&self, reply: &Reply) {
        if let Some(balancer) = &self.balancer {
            balancer.on_head(self.ticket, reply);
        }
    }

    /// Reports how it ended.
    fn finish(mut self, end: Completion) {
        if let Some((rule, tried)) = &self.tried {
            let its_own = end.outcome.filter(|_| !end.relayed);
            tried.borrow_mut().came_back(*rule, self.id, self.ticket.target, its_own);
        }
        if let Some(balancer) = self.balancer.take() {
            balancer.on_completed(self.ticket, end);
        }
    }
}

impl Drop for TargetHold {
    fn drop(&mut self) {
        if let Some(balancer) = self.balancer.take() {
            balancer.on_cancelled(self.ticket);
        }
    }
}

/// A queue's permit while a response comes back.
pub(crate) struct HeldPermit {
    _permit: Permit,
    on_cancel: OnCancel,
}

impl HeldPermit {
    /// A permit of a queue with this rule for clients that leave.
    pub fn new(permit: Permit, on_cancel: OnCancel) -> HeldPermit {
        HeldPermit { _permit: permit, on_cancel }
    }

    /// Whether the request continues without its client.
    fn goes_on(&self) -> bool {
        self.on_cancel.goes_on(true)
    }
}

/// The holds of a request, the innermost first.
#[derive(Default)]
pub(crate) struct Holds(SmallVec<[Hold; 1]>);

impl Holds {
    /// Adds a hold around the others.
    pub fn push(&mut self, hold: Hold) {
        self.0.push(hold);
    }

    /// Adds a hold inside of the others: for a walk inwards.
    pub fn push_inside(&mut self, hold: Hold) {
        self.0.insert(0, hold);
    }

    /// Reports the end of the request to each hold, innermost first.
    pub fn finish(self, outcome: Outcome, status: Option<u16>) {
        self.finish_as(Completion { outcome, status, relayed: false });
    }

    /// The same; returns whether a balancer has relayed an error.
    fn finish_as(self, mut end: Completion) -> bool {
        for hold in self.0 {
            match hold {
                Hold::Target(picked) => {
                    picked.finish(end);
                    end.relayed = end.outcome.is_some();
                }
                Hold::Timeout(_) | Hold::Permit(_) | Hold::Process(_) => {}
            }
        }
        end.relayed
    }

    /// Puts these holds around those of an answer. A complete answer releases them at once.
    pub fn around(self, answer: Answer) -> Answer {
        if let Ok(reply) = &answer {
            self.headed(reply);
        }
        match answer {
            Ok(reply) if matches!(reply.source, ReplySource::Local(_)) => {
                self.finish(reply.outcome(), Some(reply.status()));
                Ok(reply)
            }
            Ok(mut reply) => {
                if reply.holds.0.is_empty() {
                    reply.holds = self;
                } else {
                    reply.holds.0.extend(self.0);
                }
                Ok(reply)
            }
            Err(mut failure) => {
                // If the client is at fault no target is charged.
                if !failure.is_clients() {
                    let end =
                        Completion { outcome: Some(failure.kind), status: None, relayed: failure.relayed };
                    failure.relayed = self.finish_as(end);
                }
                Err(failure)
            }
        }
    }

    /// Reports to each balancer that there is an answer.
    fn headed(&self, reply: &Reply) {
        for hold in &self.0 {
            if let Hold::Target(picked) = hold {
                picked.headed(reply);
            }
        }
    }

    /// Returns the hold that ends the response early, a time limit or a crash, with the kind of failure. Without an
    /// exchange there is no client to wait for.
    pub fn poll_broken(
        &mut self,
        cx: &mut Context<'_>,
        core: &Core,
        ex: Option<&Exchange>,
    ) -> Option<(usize, Kind)> {
        (0..).zip(&mut self.0).find_map(|(at, hold)| match hold {
            Hold::Timeout(limit) => limit.has_ended(cx, core, ex).then_some((at, Kind::Timeout)),
            Hold::Process(watch) => watch.has_crashed(cx).then_some((at, Kind::Reset)),
            Hold::Target(_) | Hold::Permit(_) => None,
        })
    }

    /// Ends a response that hold `at` broke off: the holds around it are given the kind, those inside are cancelled. A
    /// crash also ends what would continue without a client.
    pub fn broken(mut self, at: usize, kind: Kind, ex: &Exchange, reply: OriginReplyBox) {
        let around: SmallVec<[Hold; 1]> = self.0.drain((at + 1).min(self.0.len())..).collect();
        let broke = self.0.pop();
        Holds(around).finish(Some(kind), None);
        match broke {
            Some(Hold::Process(_)) => {}
            Some(Hold::Timeout(limit)) => limit.cut(|| self.end(ex, reply, kind == Kind::Timeout)),
            _ => self.end(ex, reply, kind == Kind::Timeout),
        }
    }

    /// Removes all time limits: the connection becomes a tunnel.
    pub fn end_timeouts(&mut self) {
        self.0.retain(|hold| !matches!(hold, Hold::Timeout(_)));
    }

    /// Keeps the outermost hold that continues without a client and those inside it; cancels the rest. Returns
    /// whether there is such a hold.
    fn keep_what_goes_on(&mut self) -> bool {
        let last = self.0.iter().rposition(|hold| matches!(hold, Hold::Permit(permit) if permit.goes_on()));
        self.0.truncate(last.map_or(0, |at| at + 1));
        last.is_some()
    }

    /// Handles the loss of the client: what continues without it does so in the background, the rest is cancelled.
    pub fn cancel(self, ex: &Exchange, reply: OriginReplyBox) {
        self.end(ex, reply, false);
    }

    /// The same. `late`: it is not the client but a time limit that ends the response.
    fn end(mut self, ex: &Exchange, reply: OriginReplyBox, late: bool) {
        if reply.is_sent_whole() && ex.is_complete() && self.keep_what_goes_on() {
            let core = ex.core.clone();
            ex.core.runtime.spawn(drain::drain(core, reply, self, None));
        } else if late {
            ex.core.drop_late(reply);
        }
    }

    /// The same as [`Holds::around`] for a failure of the node itself.
    pub fn fail(self, failure: Failure) -> Answer {
        self.around(Err(failure))
    }
}
