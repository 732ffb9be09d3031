//! `lb.*(targets, ...)`: picks a target by the policy that the simulator runs, and counts the request there to its end.
//!
//! Counts, cursors and estimates belong to the loop (unless `scope="process"`: [`owner`]). The process has health
//! (`health`), which loops follow, and the limits of `max_in_flight`: permits for each target, and a wait queue of
//! requests that find all targets full, in order of arrival over all loops; the first asks again whenever a permit is
//! free. A target that the loop's state picks must still be free: if another loop was faster, the policy picks again.
//! Draws: the path's, with the balancer's number.

mod load;
mod newest;
mod owner;
mod probes;
mod returns;
mod state;
mod sticky;
mod target_flags;

pub(crate) use load::Loads;
pub(crate) use newest::Newest;
pub(crate) use owner::{Owner, ToOwner};
pub(crate) use probes::Probes;
pub(crate) use returns::{Departure, HealthUpdate};
pub(crate) use state::{LbState, OwnSubset, Shape, ShapeChange};
pub(crate) use sticky::Sticky;
pub(crate) use target_flags::TargetFlags;

use super::Id;
use crate::exchange::context::OpenPick;
use crate::exchange::hold::TargetHold;
use crate::exchange::view::View;
use crate::exchange::{Exchange, Failure, NodeId, RequestContext};
use crate::metrics::{LbCounts, NodeCounts, Rejected};
use crate::sync::{LocalSemaphore, Permit};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use target_flags::Claim;
use weir_net::io::Core;
use weir_net::io::timers::has_ended;
use weir_plan::KeySource;
use weir_policy::retry::BalancerId;
use weir_policy::{Ask, Kind, Operation, PickOutcome as Choice, TargetId, Ticket, Upstream};
use weir_stats::Key;

/// The node.
pub(crate) struct Lb {
    pub core: Rc<Core>,
    /// Its number among the nodes.
    pub node: NodeId,
    /// Its name among threads.
    pub id: Id,
    /// The epoch of its graph, and the newest graph of its thread.
    pub epoch: u32,
    pub newest: Rc<dyn Newest>,
    /// Kept by what it counts at its targets: no index of them means another target meanwhile.
    pub _places: Arc<()>,
    /// The state that belongs to this thread.
    pub state: Rc<LbState>,
    /// Its targets, by index; `None`: not in this graph.
    pub targets: Arc<[Option<NodeId>]>,
    /// Whether requests may go on in a later graph though this one has targets: in a verification, whose graphs differ by
    /// targets alone.
    pub moves_on: bool,
    /// The key of the draws.
    pub choice: Key,
    /// The source of the key that is hashed.
    pub key: Option<KeySource>,
    /// The node for requests when no target is left.
    pub spare: Option<NodeId>,
    /// The cookie by which clients return to their target.
    pub sticky: Option<Sticky>,
    /// The permits of the targets and the queue for them, if there is a limit when the graph is built.
    pub semaphore: Option<Rc<LocalSemaphore>>,
    /// The number of requests that may wait while all targets are full.
    pub max_waiting: u64,
    /// How long they may wait, ns.
    pub wait_timeout_ns: Option<u64>,
    /// Whether the policy's state is the owner's.
    pub is_the_owners: bool,
    /// The way to the thread with the state of the process: health, and with that scope the policy's.
    pub owner: Owner,
    /// Whether outcomes matter to health (ejection, outlier detection).
    pub listens: bool,
    /// In a verification: called with every operation on the policy.
    pub records: Option<Box<dyn Fn(Operation)>>,
    /// In a verification of lists that may be doubted: called with a target to which a connection has failed.
    pub reports_failure: Option<Box<dyn Fn(TargetId)>>,
    /// How targets are probed for each request (`lb.prequal`); `None`: they are not.
    pub probes: Option<Probes>,
    /// The field of an answer in which a target reports its load (`lb.zuul`); `None`: none is read.
    pub load_field: Option<Box<str>>,
    /// The counters of the balancer and its targets.
    pub counts: LbCounts,
    /// The counters of waiting requests, if targets are limited.
    pub waits: Option<Rc<NodeCounts>>,
}

/// Where a request goes next.
pub(crate) struct PickedNode {
    pub node: NodeId,
    /// Held until it has come back.
    pub hold: Option<TargetHold>,
}

impl Lb {
    /// Picks the next node of a request; the hold lasts until the request has come back.
    pub async fn pick(
        self: &Rc<Self>,
        ex: &Exchange,
        ctx: &mut RequestContext,
    ) -> Result<PickedNode, Failure> {
        if self.is_elsewhere() {
            return Box::pin(self.pick_elsewhere(ex, ctx)).await;
        }
        let Some(semaphore) = &self.semaphore else {
            let (choice, _) = self.ask(ex, ctx, true);
            return self.go(ctx, choice, None);
        };
        if semaphore.queue.is_empty() {
            match self.ask(ex, ctx, true) {
                (Choice::Full, _) => {}
                (choice, slot) => {
                    if let (Some(waits), Choice::Target(_)) = (&self.waits, choice) {
                        waits.entered(0);
                    }
                    return self.go(ctx, choice, slot);
                }
            }
        }
        Box::pin(self.wait(semaphore, ex, ctx)).await
    }

    /// Waits while all targets are full, in order of arrival.
    async fn wait(
        self: &Rc<Self>,
        semaphore: &Rc<LocalSemaphore>,
        ex: &Exchange,
        ctx: &mut RequestContext,
    ) -> Result<PickedNode, Failure> {
        let since_ns = self.core.now();
        let Some(waiter) = semaphore.queue.join(self.max_waiting) else {
            return Err(self.rejects(Rejected::Full));
        };
        let mut limit = self.wait_timeout_ns.map(|ns| self.core.timers.after(ns));
        // A target may also become available by itself.
        let mut due = None;
        let choice = poll_fn(|cx| {
            if waiter.is_first(cx) {
                // A timer does not refresh the cheap clock.
                self.core.now();
                match self.ask(ex, ctx, false) {
                    (Choice::Full, _) => {}
                    choice => return Poll::Ready(Some(choice)),
                }
                due = Some(self.state.due_ns.get())
                    .filter(|at| *at < u64::MAX)
                    .map(|at| self.core.timers.sleep_until(at));
            }
            if has_ended(&mut due, cx) {
                due = None;
                cx.waker().wake_by_ref();
            }
            if has_ended(&mut limit, cx) { Poll::Ready(None) } else { Poll::Pending }
        })
        .await;
        drop(waiter);
        ex.waited(self.node, ctx, since_ns);
        match choice {
            Some((choice, permit)) => {
                self.count_wait(since_ns, choice);
                self.go(ctx, choice, permit)
            }
            None => Err(self.rejects(Rejected::Timeout)),
        }
    }

    /// Counts a request that entered after waiting.
    fn count_wait(&self, since_ns: u64, choice: Choice) {
        if let (Some(waits), Choice::Target(_)) = (&self.waits, choice) {
            waits.entered(self.core.now().saturating_sub(since_ns));
        }
    }

    /// Counts a rejected request; returns its failure.
    fn rejects(&self, why: Rejected) -> Failure {
        if let Some(waits) = &self.waits {
            waits.rejected.one(why);
        }
        Failure::new(if why == Rejected::Full { Kind::Overloaded } else { Kind::Timeout })
    }

    /// Reports an operation, if a verification records them.
    #[inline]
    fn note(&self, deed: impl FnOnce() -> Operation) {
        if let Some(records) = &self.records {
            records(deed());
        }
    }

    /// Asks the policy; `first`: for the first time, not again after waiting.
    fn ask(self: &Rc<Self>, ex: &Exchange, ctx: &RequestContext, first: bool) -> (Choice, Option<Permit>) {
        let exclude = self.excluded(ctx);
        self.question(&self.asked(ex, ctx, &exclude), first)
    }

    fn question(self: &Rc<Self>, ask: &Ask, first: bool) -> (Choice, Option<Permit>) {
        if first && let Some(probes) = &self.probes {
            self.probe(probes, ask);
        }
        self.choose(ask)
    }

    fn asked<'a>(&self, ex: &Exchange, ctx: &RequestContext, exclude: &'a [TargetId]) -> Ask<'a> {
        let key = self.key.as_ref().and_then(|source| View::new(ex, ctx.edits.as_deref()).key(source));
        let sticky = self.sticky.as_ref().and_then(|s| s.target(ex));
        Ask { draw: ctx.way.choice(self.choice), key, now_ns: self.core.recent(), exclude, sticky }
    }

    /// Targets that other attempts of this request have tried or are using.
    fn excluded(&self, ctx: &RequestContext) -> Vec<TargetId> {
        let mut exclude = Vec::new();
        if let Some((_, tried)) = &ctx.tried {
            tried.borrow().add_to(self.balancer(), &mut exclude);
        }
        if let Some((open, me)) = &ctx.open {
            let others = |pick: &&OpenPick| pick.attempt != *me && pick.balancer == self.balancer();
            exclude.extend(open.borrow().iter().filter(others).map(|pick| pick.target));
        }
        exclude
    }

    /// Tells the policy what has changed since its last pick: time, targets that are probed, targets that are full.
    #[inline]
    fn update(&self, upstream: &mut Upstream, permits: Option<&LocalSemaphore>, now_ns: u64) {
        let flags = self.state.flags();
        if self.state.due_ns.get() <= now_ns {
            upstream.tick(now_ns);
            self.note(|| Operation::Tick { now_ns });
            self.state.due_ns.set(upstream.next_deadline().unwrap_or(u64::MAX));
        }
        if self.state.shown.replace(flags.has_probation()) || self.state.shown.get() {
            flags.show(|target, probing| {
                upstream.set_probing(target, probing);
                self.note(|| Operation::Probing { target, probing });
            });
        }
        if let Some(semaphore) = permits {
            semaphore.changes(|target, full| {
                let target = TargetId(target);
                upstream.set_full(target, full);
                self.note(|| Operation::Full { target, full });
            });
        }
    }

    /// Lets the policy pick until a picked target is available.
    fn choose(&self, ask: &Ask) -> (Choice, Option<Permit>) {
        let (mut upstream, flags) = (self.state.upstream.borrow_mut(), self.state.flags());
        let permits = self.state.permits();
        self.update(&mut upstream, permits.as_deref(), ask.now_ns);
        upstream.see_others(ask.now_ns, |counted| self.note(|| counted));
        // Targets of a later graph than this one.
        let mut foreign: Vec<TargetId> = Vec::new();
        loop {
            let without;
            let ask = if foreign.is_empty() {
                ask
            } else {
                without = Ask { exclude: &foreign, ..*ask };
                &without
            };
            let choice = upstream.pick(ask);
            self.note(|| Operation::pick(ask, choice));
            let Choice::Target(ticket) = choice else { return (choice, None) };
            let target = ticket.target;
            if !self.knows(target) && !self.moves_on && !self.is_superseded() {
                upstream.give_up(ticket);
                self.note(|| Operation::GiveUp { ticket });
                if foreign.contains(&target) {
                    return (Choice::Empty, None);
                }
                foreign = ask.exclude.iter().copied().chain([target]).collect();
                continue;
            }
            let permit = match &permits {
                None => None,
                Some(semaphore) => match semaphore.take(target.0) {
                    Some(permit) => Some(permit),
                    // Another loop was faster.
                    None => {
                        upstream.give_up(ticket);
                        upstream.set_full(target, true);
                        self.note(|| Operation::GiveUp { ticket });
                        self.note(|| Operation::Full { target, full: true });
                        continue;
                    }
                },
            };
            let claim = flags.claim(target);
            if claim == Claim::Tried {
                upstream.give_up(ticket);
                upstream.set_probing(target, true);
                self.note(|| Operation::GiveUp { ticket });
                self.note(|| Operation::Probing { target, probing: true });
                self.state.shown.set(true);
                continue;
            }
            let (probe, met) = (ticket.probe || claim == Claim::Probe, self.state.count(target));
            return (Choice::Target(Ticket { probe, met, ..ticket }), permit);
        }
    }

    /// Its identity, by which requests remember the targets that they have tried.
    fn balancer(&self) -> BalancerId {
        BalancerId(self.id.0)
    }

    /// Whether a target is in this graph.
    fn knows(&self, target: TargetId) -> bool {
        self.targets.get(target.index()).is_some_and(Option::is_some)
    }

    /// Whether all targets of this graph were removed: its requests go to those of the newest graph.
    #[cold]
    fn is_superseded(&self) -> bool {
        !(0..)
            .zip(self.targets.iter())
            .any(|(index, target)| target.is_some() && self.state.has(TargetId(index)))
    }

    /// Whether a request can be sent to a target that the owner has picked: it may have been removed again since.
    fn leads_to(&self, target: TargetId) -> bool {
        let is_there = || self.newest.balancer(self.id).is_none_or(|(newest, _)| newest.knows(target));
        self.knows(target) || (self.moves_on || self.is_superseded()) && is_there()
    }

    fn go(
        self: &Rc<Self>,
        ctx: &mut RequestContext,
        choice: Choice,
        permit: Option<Permit>,
    ) -> Result<PickedNode, Failure> {
        match choice {
            Choice::Target(ticket) => {
                if self.knows(ticket.target) {
                    return self.send(ctx, ticket, permit);
                }
                match self.newest.balancer(self.id) {
                    Some((newest, graph)) => {
                        ctx.move_to(graph);
                        newest.send(ctx, ticket, permit)
                    }
                    None => self.send(ctx, ticket, permit),
                }
            }
            Choice::Full | Choice::Empty => match self.spare {
                Some(node) => Ok(PickedNode { node, hold: None }),
                None => Err(Failure::new(Kind::NoTarget)),
            },
        }
    }

    /// Sends a request to a target that was picked.
    fn send(
        self: &Rc<Self>,
        ctx: &mut RequestContext,
        ticket: Ticket,
        permit: Option<Permit>,
    ) -> Result<PickedNode, Failure> {
        if let Some((rule, tried)) = &ctx.tried {
            tried.borrow_mut().picked(*rule, self.balancer(), ticket.target);
        }
        if let Some((open, me)) = &ctx.open {
            let pick = OpenPick { attempt: *me, balancer: self.balancer(), target: ticket.target };
            open.borrow_mut().push(pick);
        }
        ctx.way.goes_on();
        self.counts.begins(ticket.target);
        ctx.abort.push(self.state.abort(ticket.target));
        let hold = TargetHold::new(self.clone(), self.balancer(), ticket, ctx.tried.clone(), permit);
        match self.targets.get(ticket.target.index()) {
            Some(Some(node)) => Ok(PickedNode { node: *node, hold: Some(hold) }),
            _ => Err(Failure::new(Kind::NoTarget)),
        }
    }
}
