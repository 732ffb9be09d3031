//! What comes back to a balancer: requests, health, removed targets.

use super::{Lb, ToOwner};
use crate::exchange::hold::{Completion, InFlightCounter};
use crate::exchange::reply::{Reply, ReplySource};
use std::rc::Rc;
use std::sync::Arc;
use weir_http1::Response;
use weir_policy::snapshot::Snapshot;
use weir_policy::zuul::field::first_load;
use weir_policy::{Kind, Operation, Release, Table, TargetId, Ticket};

/// A change of health, which the owner sends to a balancer's loops.
#[derive(Debug)]
pub(crate) struct HealthUpdate {
    pub health: Snapshot,
    /// The table by which its policy chooses, if that is large.
    pub table: Option<Table>,
}

/// How a request left its target.
pub(crate) enum Departure {
    /// It has come back.
    Completed(Completion),
    /// It was cancelled; `late`: by a `timeout` around the balancer.
    Cancelled { late: bool },
}

impl InFlightCounter for Lb {
    fn on_head(&self, ticket: Ticket, reply: &Reply) {
        let now_ns = self.core.recent();
        self.counts.headed(now_ns, ticket.target, now_ns.saturating_sub(ticket.at_ns));
        if let (Some(name), ReplySource::Origin(origin)) = (&self.load_field, &reply.source) {
            self.read_load(now_ns, ticket.target, name, origin.response());
        }
    }

    fn on_completed(self: Rc<Self>, ticket: Ticket, end: Completion) {
        self.counts.ended(self.core.recent(), ticket.target, end.outcome);
        if self.is_elsewhere() {
            self.owner.tell(ToOwner::Back { lb: self.id, ticket, departure: Departure::Completed(end) });
        } else {
            self.returned(ticket, end);
        }
    }

    fn on_cancelled(self: Rc<Self>, ticket: Ticket) {
        self.counts.ended(self.core.recent(), ticket.target, Some(Kind::Cancelled));
        let late = self.state.late.is_set();
        if self.is_elsewhere() {
            self.owner.tell(ToOwner::Back { lb: self.id, ticket, departure: Departure::Cancelled { late } });
        } else {
            self.cancelled(ticket, late);
        }
    }
}

impl Lb {
    /// Reads the load that a target reports in its answer.
    fn read_load(&self, now_ns: u64, target: TargetId, name: &str, response: &Response) {
        let named = response.fields().filter(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes()));
        let Some(load) = first_load(named.map(|(_, value)| value)) else { return };
        self.state.upstream.borrow_mut().loaded(now_ns, target, load);
        self.state.flags().report(target, load);
        self.note(|| Operation::Loaded { now_ns, target, load });
    }

    /// Ends a request that this thread's state picked for.
    pub(super) fn returned(self: &Rc<Self>, ticket: Ticket, end: Completion) {
        let Completion { outcome, status, relayed } = end;
        let (target, now_ns) = (ticket.target, self.core.recent());
        self.state.left(ticket, now_ns, outcome);
        let release = {
            let mut upstream = self.state.upstream.borrow_mut();
            let release = if relayed {
                upstream.relayed(now_ns, ticket, outcome, status)
            } else {
                upstream.done(now_ns, ticket, outcome, status)
            };
            self.note(|| Operation::Done { now_ns, ticket, outcome, status, relayed });
            if outcome == Some(Kind::ConnectFailed) {
                self.state.due_ns.set(upstream.next_deadline().unwrap_or(u64::MAX));
            }
            release
        };
        // What a balancer further in could not connect to is no failure of this target.
        if let (Some(report), Some(Kind::ConnectFailed), false) = (&self.reports_failure, outcome, relayed) {
            report(target);
        }
        if let Release::After(ns) = release {
            let lb = self.clone();
            self.core.runtime.spawn(async move {
                lb.core.timers.after(ns).await;
                lb.state.upstream.borrow_mut().release(lb.core.now(), target);
                lb.state.uncount(target, ticket.at_ns);
                lb.note(|| Operation::Release { target });
            });
        } else {
            self.state.uncount(target, ticket.at_ns);
        }
        if self.listens && (outcome.is_some() || ticket.probe || self.state.flags().wants_successes(target)) {
            let (lb, probe) = (self.id, ticket.probe);
            self.owner.tell(ToOwner::Outcome { lb, target, probe, outcome, status });
        }
    }

    /// Cancels a request that this thread's state picked for; `late`: a `timeout` around the balancer did.
    pub(super) fn cancelled(&self, ticket: Ticket, late: bool) {
        let now_ns = self.core.now();
        self.state.left(ticket, now_ns, Some(Kind::Cancelled));
        {
            let mut upstream = self.state.upstream.borrow_mut();
            match late {
                true => upstream.timed_out(now_ns, ticket),
                false => upstream.cancelled(now_ns, ticket),
            }
        }
        self.note(|| Operation::Cancelled { now_ns, ticket, late });
        self.state.uncount(ticket.target, ticket.at_ns);
        if late && self.listens {
            let (target, probe) = (ticket.target, ticket.probe);
            let outcome = Some(Kind::Timeout);
            self.owner.tell(ToOwner::Outcome { lb: self.id, target, probe, outcome, status: None });
        } else if ticket.probe {
            self.state.flags().free_probe(ticket.target);
        }
    }

    /// Applies a change of health; the first waiting request asks again.
    pub fn follow(&self, seen: &HealthUpdate) {
        let now_ns = self.core.now();
        {
            let mut upstream = self.state.upstream.borrow_mut();
            upstream.follow(now_ns, &seen.health);
            if let Some(table) = &seen.table {
                upstream.balancer().share(table);
            }
        }
        self.note(|| Operation::Follow { now_ns, health: seen.health.clone() });
        self.notify_first();
    }

    /// Applies a change of health on the owner's thread, which sets the limits of targets for all loops; returns the
    /// message for the loops, with a table that they need not build.
    pub fn follow_first(&self, health: Snapshot) -> Arc<HealthUpdate> {
        if let Some(semaphore) = &self.semaphore {
            semaphore.heed(&health);
        }
        let mut seen = HealthUpdate { health, table: None };
        self.follow(&seen);
        seen.table = self.state.upstream.borrow_mut().balancer().table();
        Arc::new(seen)
    }

    /// Lets the first waiting request of all loops ask again.
    pub fn notify_first(&self) {
        if let Some(semaphore) = &self.semaphore {
            semaphore.queue.notify_first();
        }
    }

    /// Whether the target still exists.
    pub fn has_target(&self, target: TargetId) -> bool {
        self.state.upstream.borrow().roster().exists(target)
    }
}
