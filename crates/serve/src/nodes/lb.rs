//! `lb.*(targets, ...)`: picks a target by the policy that the simulator runs, and counts the request there to its end.
//!
//! Counts, cursors and estimates are the loop's (unless `scope="process"`: [`owner`]). The process has health
//! ([`crate::health`]), which a loop follows, and what `max_in_flight` allows: slots for each target, and a line of requests
//! that find all of them full, in order of arrival over all loops; the first asks again whenever a slot is free. What the
//! loop's own state picks must then be had: where another loop was faster, the policy picks again. Draws: the way's, with the
//! balancer's number.

mod back;
pub(crate) mod common;
pub(crate) mod load;
pub(crate) mod owner;

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::abort;
use crate::exchange::failure::Failure;
use crate::exchange::view::View;
use crate::graph::ends::Ends;
use crate::io::timers::has_ended;
use crate::nodes::sticky::Sticky;
use crate::nodes::{NodeId, Way};
use crate::sync::{Gate, Slot};
pub(crate) use back::Picked;
use common::{Claim, Common};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use weir_policy::{Ask, Kind, Picked as Choice, Ticket, Upstream};
use weir_topology::plan::{KeySource, Scope};

/// The node.
pub(crate) struct Lb {
    /// Its number among the nodes.
    pub id: NodeId,
    /// The policy and what of its surroundings is the loop's.
    pub upstream: RefCell<Upstream>,
    /// What is behind it.
    pub targets: Vec<NodeId>,
    /// Where their ways end.
    pub ends: Rc<[Ends]>,
    /// Whether what is in flight there ends, since they were removed.
    pub cuts: Box<[abort::Flag]>,
    /// What is hashed.
    pub key: Option<KeySource>,
    /// Who gets the request when no target is left.
    pub spare: Option<NodeId>,
    /// The cookie by which clients return.
    pub sticky: Option<Sticky>,
    /// Slots of the targets, where they are limited.
    pub gate: Option<Rc<Gate>>,
    /// Slots of requests of other loops.
    pub lent: RefCell<Vec<(u32, Slot)>>,
    /// Requests that may wait while all targets are full.
    pub max_waiting: u64,
    /// For how long, ns.
    pub wait_timeout_ns: Option<u64>,
    /// Whose the policy's state is.
    pub scope: Scope,
    /// What all loops know.
    pub common: Arc<Common>,
    /// Whether outcomes matter to health (ejection, outlier detection).
    pub listens: bool,
    /// Whether each request has targets probed (`lb.prequal`).
    pub probes: bool,
    /// When the policy has something to do by itself.
    pub due_ns: Cell<u64>,
    /// Whether the policy was told who is being tried.
    pub shown: Cell<bool>,
}

/// Where a request goes on, and what is held until it is back.
type Went = (NodeId, Option<Picked>);

/// A slot, where targets are limited.
type Taken = Option<Slot>;

impl Lb {
    /// Where the request goes on, and what is to be held until it is back.
    pub async fn pick(self: &Rc<Self>, lp: &Rc<Loop>, ex: &Exchange, way: &mut Way) -> Result<Went, Failure> {
        if self.is_elsewhere(lp) {
            return Box::pin(self.pick_elsewhere(lp, ex, way)).await;
        }
        let Some(gate) = &self.gate else {
            let (choice, _) = self.ask(lp, ex, way, true);
            return self.go(lp, way, choice, None);
        };
        if gate.line.is_empty() {
            match self.ask(lp, ex, way, true) {
                (Choice::Full, _) => {}
                (choice, slot) => return self.go(lp, way, choice, slot),
            }
        }
        Box::pin(self.wait(gate, lp, ex, way)).await
    }

    /// All targets are full: in order of arrival.
    async fn wait(
        self: &Rc<Self>,
        gate: &Rc<Gate>,
        lp: &Rc<Loop>,
        ex: &Exchange,
        way: &mut Way,
    ) -> Result<Went, Failure> {
        let Some(place) = gate.line.join(self.max_waiting) else {
            return Err(Failure::new(Kind::Overloaded));
        };
        let mut limit = self.wait_timeout_ns.map(|ns| lp.timers.after(ns));
        // A target may come back by itself as well.
        let mut due = None;
        let choice = poll_fn(|cx| {
            if place.is_first(cx) {
                // Timers do not tell the time to whoever asks for it cheaply.
                lp.now();
                match self.ask(lp, ex, way, false) {
                    (Choice::Full, _) => {}
                    choice => return Poll::Ready(Some(choice)),
                }
                due = Some(self.due_ns.get()).filter(|at| *at < u64::MAX).map(|at| lp.timers.at(at));
            }
            if has_ended(&mut due, cx) {
                due = None;
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

    /// Asks the policy; `first`: not again, after waiting.
    fn ask(&self, lp: &Loop, ex: &Exchange, way: &Way, first: bool) -> (Choice, Taken) {
        let exclude = self.excluded(way);
        self.question(&self.asked(lp, ex, way, &exclude), first)
    }

    fn question(&self, ask: &Ask, first: bool) -> (Choice, Taken) {
        if self.probes && first {
            self.probe(ask);
        }
        self.choose(ask)
    }

    /// Targets are probed for a request.
    fn probe(&self, ask: &Ask) {
        if let Some(prequal) = self.upstream.borrow_mut().balancer().prequal() {
            let busy = |target| self.common.load(target).map(|load| load.busy()).unwrap_or_default();
            prequal.probe(ask.now_ns, ask.draw, busy);
        }
    }

    fn asked<'a>(&self, lp: &Loop, ex: &Exchange, way: &Way, exclude: &'a [u32]) -> Ask<'a> {
        let key = self.key.as_ref().and_then(|source| View::new(ex, way.edits.as_deref()).key(source));
        let sticky = self.sticky.as_ref().and_then(|s| s.target(ex));
        Ask { draw: way.draw.with(u64::from(self.id)), key, now_ns: lp.lately(), exclude, sticky }
    }

    /// Targets that other attempts of this request have tried, or are at.
    fn excluded(&self, way: &Way) -> Vec<u32> {
        let mut exclude = Vec::new();
        if let Some((_, tried)) = &way.tried {
            tried.borrow().at(self.id, &mut exclude);
        }
        if let Some((open, me)) = &way.open {
            let others = |(attempt, lb, _): &&(u32, NodeId, u32)| attempt != me && *lb == self.id;
            exclude.extend(open.borrow().iter().filter(others).map(|(_, _, target)| *target));
        }
        exclude
    }

    /// The policy picks, until what it picked could be had.
    fn choose(&self, ask: &Ask) -> (Choice, Taken) {
        let mut upstream = self.upstream.borrow_mut();
        if self.due_ns.get() <= ask.now_ns {
            upstream.tick(ask.now_ns);
            self.due_ns.set(upstream.next_deadline().unwrap_or(u64::MAX));
        }
        if self.shown.replace(self.common.has_probation()) || self.shown.get() {
            self.common.show(&mut upstream);
        }
        if let Some(gate) = &self.gate {
            (0..self.targets.len() as u32).for_each(|t| upstream.set_full(t, gate.slots.is_full(t)));
        }
        loop {
            let choice = upstream.pick(ask);
            let Choice::Target(ticket) = choice else { return (choice, None) };
            let target = ticket.target;
            // Others may have been faster.
            let slot = match &self.gate {
                Some(gate) if !gate.slots.take(target) => {
                    upstream.give_up(ticket);
                    upstream.set_full(target, true);
                    continue;
                }
                gate => gate.as_ref().map(|gate| gate.slot(target)),
            };
            let claim = self.common.claim(target);
            if claim == Claim::Tried {
                upstream.give_up(ticket);
                upstream.set_probing(target, true);
                self.shown.set(true);
                continue;
            }
            if let Some(load) = self.common.load(target) {
                load.entered();
            }
            return (Choice::Target(Ticket { probe: ticket.probe || claim == Claim::Probe, ..ticket }), slot);
        }
    }

    fn go(
        self: &Rc<Self>,
        lp: &Rc<Loop>,
        way: &mut Way,
        choice: Choice,
        slot: Taken,
    ) -> Result<Went, Failure> {
        match choice {
            Choice::Target(ticket) => {
                if let Some((rule, tried)) = &way.tried {
                    tried.borrow_mut().picked(*rule, self.id, ticket.target);
                }
                if let Some((open, me)) = &way.open {
                    open.borrow_mut().push((*me, self.id, ticket.target));
                }
                way.cut.push(&self.cuts[ticket.target as usize]);
                let hold = Picked::new(self, lp, ticket, way.tried.clone(), slot);
                Ok((self.targets[ticket.target as usize], Some(hold)))
            }
            Choice::Full | Choice::Empty => match self.spare {
                Some(spare) => Ok((spare, None)),
                None => Err(Failure::new(Kind::NoTarget)),
            },
        }
    }
}
