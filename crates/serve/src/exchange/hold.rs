//! What nodes hold until a response has come back whole: a balancer's count, a queue's slot, a limit of time.
//!
//! Dropped unfinished, the request was cancelled; finished, a hold learns how it ended.

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::drain;
use crate::exchange::failure::Failure;
use crate::exchange::origin_reply::OriginReply;
use crate::exchange::reply::{Answer, From};
use crate::nodes::{faulty, lb, queue, timeout};
use smallvec::SmallVec;
use std::rc::Rc;
use std::task::Context;
use weir_policy::{Kind, Outcome};

/// Something that a node holds.
pub(crate) enum Hold {
    /// A balancer's count of a target.
    Target(lb::Picked),
    /// A limit of time.
    Timeout(timeout::Limit),
    /// A queue's slot.
    Slot(queue::Held),
    /// A process that may crash.
    Process(faulty::Watch),
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
        for hold in self.0 {
            match hold {
                Hold::Target(picked) => picked.finish(outcome, status),
                Hold::Timeout(_) | Hold::Slot(_) | Hold::Process(_) => {}
            }
        }
    }

    /// The answer from behind, with these holds around its own. Of what is there whole nothing is held any longer.
    pub fn around(self, answer: Answer) -> Answer {
        match answer {
            Ok(reply) if matches!(reply.from, From::Own(_)) => {
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
            Err(failure) => {
                // Where the client is to blame no target's account is touched.
                if !failure.is_clients() {
                    self.finish(Some(failure.kind), None);
                }
                Err(failure)
            }
        }
    }

    /// Whether something among them ends the response before its time: a limit, or a crash. Which, and as what. Without an
    /// exchange nobody waits for a client.
    pub fn poll_broken(
        &mut self,
        cx: &mut Context<'_>,
        lp: &Loop,
        ex: Option<&Exchange>,
    ) -> Option<(usize, Kind)> {
        (0..).zip(&mut self.0).find_map(|(at, hold)| match hold {
            Hold::Timeout(limit) => limit.has_ended(cx, lp, ex).then_some((at, Kind::Timeout)),
            Hold::Process(watch) => watch.has_crashed(cx).then_some((at, Kind::Reset)),
            Hold::Target(_) | Hold::Slot(_) => None,
        })
    }

    /// One of them has ended the response so: those around it learn that, and what is inside is cancelled. A crash takes
    /// along what would go on.
    pub fn broken(mut self, at: usize, kind: Kind, lp: &Rc<Loop>, ex: &Exchange, reply: Box<OriginReply>) {
        let around: SmallVec<[Hold; 1]> = self.0.drain((at + 1).min(self.0.len())..).collect();
        let crashed = matches!(self.0.pop(), Some(Hold::Process(_)));
        Holds(around).finish(Some(kind), None);
        if !crashed {
            self.cancel(lp, ex, reply);
        }
    }

    /// From now on no limit of time holds: the connection is a tunnel.
    pub fn end_timeouts(&mut self) {
        self.0.retain(|hold| !matches!(hold, Hold::Timeout(_)));
    }

    /// Leaves what is inside of the outermost hold that goes on without a client, that one included; the rest is
    /// cancelled. Whether there is any.
    pub fn keep_what_goes_on(&mut self) -> bool {
        let last = self.0.iter().rposition(|hold| matches!(hold, Hold::Slot(slot) if slot.goes_on()));
        self.0.truncate(last.map_or(0, |at| at + 1));
        last.is_some()
    }

    /// The client has gone: what goes on regardless does so in the background, the rest is cancelled.
    pub fn cancel(mut self, lp: &Rc<Loop>, ex: &Exchange, reply: Box<OriginReply>) {
        if reply.is_sent_whole() && ex.is_complete() && self.keep_what_goes_on() {
            lp.runtime.spawn(drain::drain(lp.clone(), reply, self, None));
        }
    }

    /// As [`Holds::around`], for a node's own failure.
    pub fn fail(self, failure: Failure) -> Answer {
        self.around(Err(failure))
    }
}
