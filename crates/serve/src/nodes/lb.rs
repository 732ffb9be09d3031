//! `lb.*(targets, ...)`: picks a target by the policy that the simulator runs, and counts the request there to its end.
//!
//! Counts, cursors and estimates are the loop's. What `max_in_flight` allows is the process's: slots for each target, and a
//! line of requests that find all of them full, in order of arrival over all loops; the first asks again whenever a slot is
//! free. Draws: the way's, with the balancer's number.

use super::sticky::Sticky;
use super::view::View;
use super::{NodeId, Way};
use crate::event_loop::Loop;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::shared::{Gate, Slot};
use crate::timers::has_ended;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_policy::config::Exclude;
use weir_policy::retry::Tried;
use weir_policy::{Ask, Kind, Outcome, Picked as Choice, Release, Ticket, Upstream};
use weir_topology::plan::KeySource;

/// The node.
pub(crate) struct Lb {
    /// Its number among the nodes.
    pub id: NodeId,
    /// The policy and what stands around it.
    pub upstream: RefCell<Upstream>,
    /// What is behind it.
    pub targets: Vec<NodeId>,
    /// What is hashed.
    pub key: Option<KeySource>,
    /// Who gets the request when no target is left.
    pub spare: Option<NodeId>,
    /// The cookie by which clients return.
    pub sticky: Option<Sticky>,
    /// Slots of the targets, where they are limited.
    pub gate: Option<Rc<Gate>>,
    /// Requests that may wait while all targets are full.
    pub max_waiting: u64,
    /// For how long, ns.
    pub wait_timeout_ns: Option<u64>,
    /// When the policy has something to do by itself.
    pub due_ns: Cell<u64>,
}

/// Where a request goes on, and what is held until it is back.
type Went = (NodeId, Option<Picked>);

impl Lb {
    /// Where the request goes on, and what is to be held until it is back.
    pub async fn pick(self: &Rc<Self>, lp: &Rc<Loop>, ex: &Exchange, way: &mut Way) -> Result<Went, Failure> {
        let Some(gate) = &self.gate else {
            let choice = self.ask(lp, ex, way);
            return self.go(lp, way, choice, None);
        };
        if gate.line.is_empty() {
            match self.ask_gated(gate, lp, ex, way) {
                (Choice::Full, _) => {}
                (choice, slot) => return self.go(lp, way, choice, slot),
            }
        }
        self.wait(gate, lp, ex, way).await
    }

    /// All targets are full: in order of arrival.
    async fn wait(self: &Rc<Self>, gate: &Rc<Gate>, lp: &Rc<Loop>, ex: &Exchange, way: &mut Way) -> Result<Went, Failure> {
        let Some(place) = gate.line.join(self.max_waiting) else { return Err(Failure::new(Kind::Overloaded)) };
        let mut limit = self.wait_timeout_ns.map(|ns| lp.timers.after(ns));
        // A target may come back by itself as well.
        let mut due = None;
        let choice = poll_fn(|cx| {
            if place.is_first(cx) {
                match self.ask_gated(gate, lp, ex, way) {
                    (Choice::Full, _) => {}
                    choice => return Poll::Ready(Some(choice)),
                }
                due = Some(self.due_ns.get()).filter(|at| *at < u64::MAX).map(|at| lp.timers.at(at));
            }
            if has_ended(&mut due, cx) {
                cx.waker().wake_by_ref();
            }
            if has_ended(&mut limit, cx) { Poll::Ready(None) } else { Poll::Pending }
        })
        .await;
        drop(place);
        match choice {
            Some((choice, slot)) => self.go(lp, way, choice, slot),
            None => Err(Failure::new(Kind::Timeout)),
        }
    }

    /// Asks the policy, and takes a slot of the target that it names.
    fn ask_gated(&self, gate: &Rc<Gate>, lp: &Loop, ex: &Exchange, way: &Way) -> (Choice, Option<Slot>) {
        loop {
            {
                let mut upstream = self.upstream.borrow_mut();
                (0..self.targets.len() as u32).for_each(|t| upstream.set_full(t, gate.slots.is_full(t)));
            }
            match self.ask(lp, ex, way) {
                Choice::Target(ticket) if gate.slots.take(ticket.target) => {
                    return (Choice::Target(ticket), Some(gate.slot(ticket.target)));
                }
                // Another loop was faster.
                Choice::Target(ticket) => self.upstream.borrow_mut().cancelled(lp.now(), ticket),
                choice => return (choice, None),
            }
        }
    }

    fn ask(&self, lp: &Loop, ex: &Exchange, way: &Way) -> Choice {
        let now_ns = lp.lately();
        let mut upstream = self.upstream.borrow_mut();
        if self.due_ns.get() <= now_ns {
            upstream.tick(now_ns);
            self.due_ns.set(upstream.next_deadline().unwrap_or(u64::MAX));
        }
        let mut exclude = Vec::new();
        if let Some((_, tried)) = &way.tried {
            tried.borrow().at(self.id, &mut exclude);
        }
        if let Some((open, me)) = &way.open {
            let others = |(attempt, lb, _): &&(u32, NodeId, u32)| attempt != me && *lb == self.id;
            exclude.extend(open.borrow().iter().filter(others).map(|(_, _, target)| *target));
        }
        let key = self.key.as_ref().and_then(|source| View::new(ex, way.edits.as_deref()).key(source));
        let sticky = self.sticky.as_ref().and_then(|s| s.target(ex));
        let draw = way.draw.with(u64::from(self.id));
        upstream.pick(&Ask { draw, key, now_ns, exclude: &exclude, sticky })
    }

    fn go(self: &Rc<Self>, lp: &Rc<Loop>, way: &mut Way, choice: Choice, slot: Option<Slot>) -> Result<Went, Failure> {
        match choice {
            Choice::Target(ticket) => {
                if let Some((rule, tried)) = &way.tried {
                    tried.borrow_mut().picked(*rule, self.id, ticket.target);
                }
                if let Some((open, me)) = &way.open {
                    open.borrow_mut().push((*me, self.id, ticket.target));
                }
                let tried = way.tried.clone();
                let hold = Picked { lb: self.clone(), lp: lp.clone(), ticket, tried, finished: false, _slot: slot };
                Ok((self.targets[ticket.target as usize], Some(hold)))
            }
            Choice::Full | Choice::Empty => match self.spare {
                Some(spare) => Ok((spare, None)),
                None => Err(Failure::new(Kind::NoTarget)),
            },
        }
    }

    /// A request has come back, which may have changed what is due.
    fn came_back(&self) {
        let due = self.upstream.borrow_mut().next_deadline().unwrap_or(u64::MAX);
        self.due_ns.set(due);
    }
}

/// A request counted at a target.
pub(crate) struct Picked {
    lb: Rc<Lb>,
    lp: Rc<Loop>,
    ticket: Ticket,
    tried: Option<(Exclude, Rc<RefCell<Tried>>)>,
    finished: bool,
    /// Freed last: who waits for it finds the rest done.
    _slot: Option<Slot>,
}

impl Picked {
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
        let release = self.lb.upstream.borrow_mut().done(self.lp.lately(), self.ticket, outcome, status);
        if let Release::After(ns) = release {
            let (lb, timers, target) = (self.lb.clone(), self.lp.timers.clone(), self.ticket.target);
            tokio::task::spawn_local(async move {
                timers.after(ns).await;
                lb.upstream.borrow_mut().release(target);
                lb.came_back();
            });
        }
        self.lb.came_back();
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        if !self.finished {
            self.lb.upstream.borrow_mut().cancelled(self.lp.now(), self.ticket);
            self.lb.came_back();
        }
    }
}
