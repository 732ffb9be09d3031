//! What nodes hold until a response has come back whole: a balancer's count, a queue's permit, a limit of time.
//!
//! Dropped unfinished, the request was cancelled; finished, a hold learns how it ended.

use super::drain;
use super::origin_reply::OriginReply;
use super::reply::{Answer, ReplySource};
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
use weir_policy::retry::Tried;
use weir_policy::{Kind, Outcome, Ticket};

/// Something that a node holds.
pub(crate) enum Hold {
    /// A balancer's count of a target.
    Target(TargetHold),
    /// A limit of time.
    Timeout(TimeLimit),
    /// A queue's permit.
    Permit(HeldPermit),
    /// A process that may crash.
    Process(CrashWatch),
}

/// How a request came back.
#[derive(Clone, Copy)]
pub(crate) struct Completion {
    pub outcome: Outcome,
    /// That of its answer, where there was one.
    pub status: Option<u16>,
    /// Whether a balancer further in has passed an error on ([`Failure::relayed`]).
    pub relayed: bool,
}

/// A balancer that counts requests at its targets.
pub(crate) trait InFlightCounter {
    /// The head of an answer has come to a request that it picked for.
    fn on_head(&self, ticket: Ticket);

    /// A request that it picked for has come back so.
    fn on_completed(self: Rc<Self>, ticket: Ticket, end: Completion);

    /// A request that it picked for was cancelled.
    fn on_cancelled(self: Rc<Self>, ticket: Ticket);
}

/// Which targets a request has tried, with the rule of the `retry` around.
pub(crate) type Attempts = Option<(Exclude, Rc<RefCell<Tried>>)>;

/// A request counted at a target.
pub(crate) struct TargetHold {
    /// The balancer; `None` once it was told.
    balancer: Option<Rc<dyn InFlightCounter>>,
    /// Its number among the nodes.
    node: super::NodeId,
    ticket: Ticket,
    tried: Attempts,
    /// Freed last: who waits for it finds the rest done.
    _permit: Option<Permit>,
}

impl TargetHold {
    /// One that begins.
    pub fn new(
        balancer: Rc<dyn InFlightCounter>,
        node: super::NodeId,
        ticket: Ticket,
        tried: Attempts,
        permit: Option<Permit>,
    ) -> TargetHold {
        TargetHold { balancer: Some(balancer), node, ticket, tried, _permit: permit }
    }

    /// Which one.
    pub fn target(&self) -> u32 {
        self.ticket.target
    }

    /// The head of its answer is there.
    fn headed(&self) {
        if let Some(balancer) = &self.balancer {
            balancer.on_head(self.ticket);
        }
    }

    /// It came back so.
    fn finish(mut self, end: Completion) {
        if let Some((rule, tried)) = &self.tried {
            let its_own = end.outcome.filter(|_| !end.relayed);
            tried.borrow_mut().came_back(*rule, self.node, self.ticket.target, its_own);
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
    /// Of a queue whose requests do so when their client goes.
    pub fn new(permit: Permit, on_cancel: OnCancel) -> HeldPermit {
        HeldPermit { _permit: permit, on_cancel }
    }

    /// Whether the request goes on without its client.
    fn goes_on(&self) -> bool {
        self.on_cancel.goes_on(true)
    }
}

/// What is held, the innermost first.
#[derive(Default)]
pub(crate) struct Holds(SmallVec<[Hold; 1]>);

impl Holds {
    /// One more, around all that are there.
    pub fn push(&mut self, hold: Hold) {
        self.0.push(hold);
    }

    /// One more, inside of all that are there: for who walks inwards.
    pub fn push_inside(&mut self, hold: Hold) {
        self.0.insert(0, hold);
    }

    /// The request ended so: innermost first.
    pub fn finish(self, outcome: Outcome, status: Option<u16>) {
        self.finish_as(Completion { outcome, status, relayed: false });
    }

    /// Whether a balancer has passed an error on by now.
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

    /// The answer from behind, with these holds around its own. Of what is there whole nothing is held any longer.
    pub fn around(self, answer: Answer) -> Answer {
        if answer.is_ok() {
            self.headed();
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
                // Where the client is to blame no target's account is touched.
                if !failure.is_clients() {
                    let end =
                        Completion { outcome: Some(failure.kind), status: None, relayed: failure.relayed };
                    failure.relayed = self.finish_as(end);
                }
                Err(failure)
            }
        }
    }

    /// Each balancer among them learns that there is an answer.
    fn headed(&self) {
        for hold in &self.0 {
            if let Hold::Target(picked) = hold {
                picked.headed();
            }
        }
    }

    /// Whether something among them ends the response before its time: a limit, or a crash. Which, and as what. Without an
    /// exchange nobody waits for a client.
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

    /// One of them has ended the response so: those around it learn that, and what is inside is cancelled. A crash takes
    /// along what would go on.
    pub fn broken(mut self, at: usize, kind: Kind, ex: &Exchange, reply: Box<OriginReply>) {
        let around: SmallVec<[Hold; 1]> = self.0.drain((at + 1).min(self.0.len())..).collect();
        let crashed = matches!(self.0.pop(), Some(Hold::Process(_)));
        Holds(around).finish(Some(kind), None);
        if !crashed {
            self.cancel(ex, reply);
        }
    }

    /// From now on no limit of time holds: the connection is a tunnel.
    pub fn end_timeouts(&mut self) {
        self.0.retain(|hold| !matches!(hold, Hold::Timeout(_)));
    }

    /// Leaves what is inside of the outermost hold that goes on without a client, that one included; the rest is
    /// cancelled. Whether there is any.
    fn keep_what_goes_on(&mut self) -> bool {
        let last = self.0.iter().rposition(|hold| matches!(hold, Hold::Permit(permit) if permit.goes_on()));
        self.0.truncate(last.map_or(0, |at| at + 1));
        last.is_some()
    }

    /// The client has gone: what goes on regardless does so in the background, the rest is cancelled.
    pub fn cancel(mut self, ex: &Exchange, reply: Box<OriginReply>) {
        if reply.is_sent_whole() && ex.is_complete() && self.keep_what_goes_on() {
            let core = ex.core.clone();
            ex.core.runtime.spawn(drain::drain(core, reply, self, None));
        }
    }

    /// As [`Holds::around`], for a node's own failure.
    pub fn fail(self, failure: Failure) -> Answer {
        self.around(Err(failure))
    }
}
