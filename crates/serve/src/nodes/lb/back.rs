//! What comes back to a balancer: requests, health, targets that go.

use crate::control::event_loop::Loop;
use crate::control::mailbox::{OWNER, ToLoop};
use crate::graph::ends::End;
use crate::nodes::Node;
use crate::nodes::lb::{Lb, Taken, owner};
use std::cell::RefCell;
use std::rc::Rc;
use weir_policy::config::Exclude;
use weir_policy::retry::Tried;
use weir_policy::snapshot::Snapshot;
use weir_policy::{Kind, Outcome, Release, Ticket};

impl Lb {
    /// A request that this loop's state picked for has come back.
    pub(super) fn came_back(
        self: &Rc<Self>,
        lp: &Rc<Loop>,
        ticket: Ticket,
        outcome: Outcome,
        status: Option<u16>,
    ) {
        let target = ticket.target;
        self.left(lp.lately(), ticket);
        let release = {
            let mut upstream = self.upstream.borrow_mut();
            let release = upstream.done(lp.lately(), ticket, outcome, status);
            if outcome == Some(Kind::ConnectFailed) {
                self.due_ns.set(upstream.next_deadline().unwrap_or(u64::MAX));
            }
            release
        };
        if let Release::After(ns) = release {
            let (lb, timers) = (self.clone(), lp.timers.clone());
            lp.runtime.spawn(async move {
                timers.after(ns).await;
                lb.upstream.borrow_mut().release(target);
            });
        }
        if self.listens && (outcome.is_some() || ticket.probe || self.common.heeds(target)) {
            match lp.keeper() {
                Some(keeper) => keeper.outcome(lp, self.id, target, ticket.probe, outcome, status),
                None => {
                    let (lb, probe) = (self.id, ticket.probe);
                    lp.process.tell(OWNER, ToLoop::Outcome { lb, target, probe, outcome, status });
                }
            }
        }
    }

    /// A request that this loop's state picked for was cancelled.
    pub(super) fn was_cancelled(&self, lp: &Loop, ticket: Ticket) {
        self.left(lp.now(), ticket);
        self.upstream.borrow_mut().cancelled(lp.now(), ticket);
        if ticket.probe {
            self.common.free_probe(ticket.target);
        }
    }

    fn left(&self, now_ns: u64, ticket: Ticket) {
        if let Some(load) = self.common.load(ticket.target) {
            load.left(now_ns.saturating_sub(ticket.at_ns));
        }
    }

    /// The health of the targets is another: who waits may find someone.
    pub fn follow(&self, lp: &Loop, seen: &Snapshot) {
        self.upstream.borrow_mut().follow(lp.now(), seen);
        self.tell_first();
    }

    /// Who waits first, on whichever loop, asks again.
    pub fn tell_first(&self) {
        if let Some(gate) = &self.gate {
            gate.line.tell_first();
        }
    }

    /// Takes a target away: no new picks; what is in flight there goes on to its end or `drain_timeout`, idle connections
    /// close, clients that stuck to it are free, who waits asks again.
    pub fn remove(self: &Rc<Self>, lp: &Rc<Loop>, target: u32) {
        self.upstream.borrow_mut().remove(lp.now(), target);
        if let Some(sticky) = &self.sticky {
            sticky.forget(target);
        }
        if let Some(keeper) = lp.keeper() {
            keeper.remove(lp, self.id, target);
        }
        retire(lp);
        lp.runtime.spawn(cut_off(lp.clone(), self.clone(), target));
        self.tell_first();
    }

    /// Where the ways of the targets end that were not removed.
    pub fn ends_of_targets(&self) -> Vec<End> {
        let upstream = self.upstream.borrow();
        let ends = (0u32..).zip(self.ends.iter()).filter(|(t, _)| upstream.roster().exists(*t));
        ends.flat_map(|(_, ends)| ends.all.iter().copied()).collect()
    }
}

/// Closes the idle connections of servers to which no way leads any more.
fn retire(lp: &Loop) {
    let graph = lp.graph();
    let led_to = graph.led_to();
    for (id, node) in (0..).zip(&graph.nodes) {
        if let Node::Server(server) = node
            && !led_to.contains(&id)
        {
            server.retire();
        }
    }
}

/// Ends what is in flight at a target when the longest `drain_timeout` has passed: as in a drain the client's connection is
/// closed, and nobody is blamed.
async fn cut_off(lp: Rc<Loop>, lb: Rc<Lb>, target: u32) {
    let listeners = (0..).map_while(|number| lp.listener(number));
    let timeout_ns = listeners.map(|l| l.http.drain_timeout_ns).max().unwrap_or(0);
    lp.timers.after(timeout_ns).await;
    if let Some(flag) = lb.cuts.get(target as usize) {
        flag.set(true);
    }
    // Whoever waits for an origin waits for a deadline as well.
    lp.deadlines.wake_all();
}

/// Which targets a request has tried, with the rule of the `retry` around.
type Attempts = Option<(Exclude, Rc<RefCell<Tried>>)>;

/// A request counted at a target.
pub(crate) struct Picked {
    lb: Rc<Lb>,
    lp: Rc<Loop>,
    ticket: Ticket,
    tried: Attempts,
    finished: bool,
    /// Freed last: who waits for it finds the rest done.
    _slot: Taken,
}

impl Picked {
    /// One that begins.
    pub(super) fn new(lb: &Rc<Lb>, lp: &Rc<Loop>, ticket: Ticket, tried: Attempts, slot: Taken) -> Picked {
        Picked { lb: lb.clone(), lp: lp.clone(), ticket, tried, finished: false, _slot: slot }
    }

    /// Which one.
    pub fn target(&self) -> u32 {
        self.ticket.target
    }

    /// It came back so.
    pub fn finish(mut self, outcome: Outcome, status: Option<u16>) {
        self.finished = true;
        if let Some((rule, tried)) = &self.tried {
            tried.borrow_mut().came_back(*rule, self.lb.id, self.ticket.target, outcome);
        }
        if self.lb.is_elsewhere(&self.lp) {
            owner::back(&self.lp.process, self.lb.id, self.ticket, Some((outcome, status)));
        } else {
            self.lb.came_back(&self.lp, self.ticket, outcome, status);
        }
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if self.lb.is_elsewhere(&self.lp) {
            owner::back(&self.lp.process, self.lb.id, self.ticket, None);
        } else {
            self.lb.was_cancelled(&self.lp, self.ticket);
        }
    }
}
