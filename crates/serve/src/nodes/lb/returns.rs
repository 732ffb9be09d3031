//! What comes back to a balancer: requests, health, targets that go.

use super::{Lb, ToOwner};
use crate::exchange::hold::{Completion, InFlightCounter};
use std::rc::Rc;
use std::sync::Arc;
use weir_policy::snapshot::Snapshot;
use weir_policy::{Deed, Kind, Release, Table, Ticket};

/// What the owner of health tells the loops of a balancer.
#[derive(Debug)]
pub(crate) struct HealthUpdate {
    pub health: Snapshot,
    /// What its policy chooses by, if that is large.
    pub table: Option<Table>,
}

impl InFlightCounter for Lb {
    fn on_head(&self, ticket: Ticket) {
        self.counts.headed(self.core.recent().saturating_sub(ticket.at_ns));
    }

    fn on_completed(self: Rc<Self>, ticket: Ticket, end: Completion) {
        self.counts.ended(ticket.target, end.outcome);
        if self.is_elsewhere() {
            self.owner.tell(ToOwner::Back { lb: self.id, ticket, returned: Some(end) });
        } else {
            self.returned(ticket, end);
        }
    }

    fn on_cancelled(self: Rc<Self>, ticket: Ticket) {
        self.counts.ended(ticket.target, Some(Kind::Cancelled));
        if self.is_elsewhere() {
            self.owner.tell(ToOwner::Back { lb: self.id, ticket, returned: None });
        } else {
            self.cancelled(ticket);
        }
    }
}

impl Lb {
    /// A request that this thread's state picked for has come back.
    pub(super) fn returned(self: &Rc<Self>, ticket: Ticket, end: Completion) {
        let Completion { outcome, status, relayed } = end;
        let (target, now_ns) = (ticket.target, self.core.recent());
        self.left(now_ns, ticket);
        let release = {
            let mut upstream = self.state.upstream.borrow_mut();
            let release = if relayed {
                upstream.relayed(now_ns, ticket, outcome, status)
            } else {
                upstream.done(now_ns, ticket, outcome, status)
            };
            self.note(|| Deed::Done { now: now_ns, ticket, outcome, status, relayed });
            if outcome == Some(Kind::ConnectFailed) {
                self.state.due_ns.set(upstream.next_deadline().unwrap_or(u64::MAX));
            }
            release
        };
        if let Release::After(ns) = release {
            let lb = self.clone();
            self.core.runtime.spawn(async move {
                lb.core.timers.after(ns).await;
                lb.state.upstream.borrow_mut().release(target);
                lb.state.uncount(target, ticket.at_ns);
                lb.note(|| Deed::Release { target });
            });
        } else {
            self.state.uncount(target, ticket.at_ns);
        }
        if self.listens && (outcome.is_some() || ticket.probe || self.state.flags().wants_successes(target)) {
            let (lb, probe) = (self.id, ticket.probe);
            self.owner.tell(ToOwner::Outcome { lb, target, probe, outcome, status });
        }
    }

    /// A request that this thread's state picked for was cancelled.
    pub(super) fn cancelled(&self, ticket: Ticket) {
        let now_ns = self.core.now();
        self.left(now_ns, ticket);
        self.state.upstream.borrow_mut().cancelled(now_ns, ticket);
        self.note(|| Deed::Cancelled { now: now_ns, ticket });
        self.state.uncount(ticket.target, ticket.at_ns);
        if ticket.probe {
            self.state.flags().free_probe(ticket.target);
        }
    }

    fn left(&self, now_ns: u64, ticket: Ticket) {
        self.state.left(ticket.target, ticket.at_ns, now_ns);
    }

    /// The health of the targets is another: who waits may find someone.
    pub fn follow(&self, seen: &HealthUpdate) {
        let now = self.core.now();
        {
            let mut upstream = self.state.upstream.borrow_mut();
            upstream.follow(now, &seen.health);
            if let Some(table) = &seen.table {
                upstream.balancer().share(table);
            }
        }
        self.note(|| Deed::Follow { now, health: seen.health.clone() });
        self.notify_first();
    }

    /// The owner follows first; what the loops are to know, with a table that they need not make.
    pub fn follow_first(&self, health: Snapshot) -> Arc<HealthUpdate> {
        let mut seen = HealthUpdate { health, table: None };
        self.follow(&seen);
        seen.table = self.state.upstream.borrow_mut().balancer().table();
        Arc::new(seen)
    }

    /// Who waits first, on whichever loop, asks again.
    pub fn notify_first(&self) {
        if let Some(semaphore) = &self.semaphore {
            semaphore.queue.notify_first();
        }
    }

    /// Whether the target was not removed.
    pub fn has_target(&self, target: u32) -> bool {
        self.state.upstream.borrow().roster().exists(target)
    }
}
