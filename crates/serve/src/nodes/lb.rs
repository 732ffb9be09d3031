//! `lb.*(targets, ...)`: picks a target by the policy that the simulator runs, and counts the request there to its end.
//!
//! Counts, cursors and estimates are the loop's (unless `scope="process"`: [`owner`]). The process has health
//! ([`crate::health`]), which a loop follows, and limits with their line ([`common`], [`line`]). What is picked by the loop's
//! own state must then be had: where another loop took the last place meanwhile, the policy picks again.

pub(crate) mod common;
mod line;
pub(crate) mod owner;
mod sticky;

use super::{Node, NodeId, Way};
use crate::event_loop::Loop;
use crate::exchange::Exchange;
use crate::failure::Failure;
use crate::health::ends::Ends;
use crate::mailbox::ToLoop;
use crate::timers::has_ended;
use common::{Claim, Common};
use line::Line;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use weir_policy::snapshot::Snapshot;
use weir_policy::{Ask, Kind, Outcome, Picked as Choice, Release, Ticket, Upstream};
use weir_topology::plan::{KeySource, Scope};

pub(crate) use sticky::Sticky;

/// The loop that keeps health and owns balancers that all loops share.
pub(crate) const OWNER: u32 = 0;

/// How a request came back, with the status of its answer; `None`: it was cancelled.
pub(crate) type Came = Option<(Outcome, Option<u16>)>;

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
    /// What is hashed.
    pub key: Option<KeySource>,
    /// Who gets the request when no target is left.
    pub spare: Option<NodeId>,
    /// Requests that wait while all targets are full.
    pub line: Line,
    /// The most that may.
    pub max_waiting: u64,
    /// For how long, ns.
    pub wait_timeout_ns: Option<u64>,
    /// Whose the policy's state is.
    pub scope: Scope,
    /// The cookie by which clients return.
    pub sticky: Option<Sticky>,
    /// What all loops share.
    pub common: Arc<Common>,
    /// Whether outcomes matter to health (ejection, outlier detection).
    pub listens: bool,
    /// When the policy has something to do by itself.
    pub due_ns: Cell<u64>,
    /// Whether the policy was told who is being tried.
    pub shown: Cell<bool>,
}

impl Lb {
    /// Where the request goes on, and what is to be held until it is back.
    pub async fn pick(self: &Rc<Self>, lp: &Rc<Loop>, ex: &Exchange, way: &mut Way) -> Result<(NodeId, Option<Picked>), Failure> {
        let sticky = self.sticky.as_ref().and_then(|s| s.target(ex));
        if self.common.nobody_waits() {
            let choice = match self.is_elsewhere(lp) {
                false => self.ask(lp, ex, way, sticky),
                true => self.ask_owner(lp, ex, way, sticky).await,
            };
            if choice != Choice::Full {
                return self.go(lp, ex, way, sticky, choice);
            }
        }
        let choice = self.wait(lp, ex, way, sticky).await?;
        self.go(lp, ex, way, sticky, choice)
    }

    /// All targets are full: in order of arrival.
    async fn wait(self: &Rc<Self>, lp: &Rc<Loop>, ex: &Exchange, way: &Way, sticky: Option<u32>) -> Result<Choice, Failure> {
        let Some(place) = Line::join(lp, self, self.max_waiting) else {
            return Err(Failure::new(Kind::Overloaded));
        };
        let mut limit = self.wait_timeout_ns.map(|ns| lp.timers.after(ns));
        loop {
            let ended = poll_fn(|cx| {
                if place.poll_turn(cx).is_ready() {
                    return Poll::Ready(false);
                }
                if has_ended(&mut limit, cx) { Poll::Ready(true) } else { Poll::Pending }
            });
            if ended.await {
                return Err(Failure::new(Kind::Timeout));
            }
            let choice = match self.is_elsewhere(lp) {
                false => self.ask(lp, ex, way, sticky),
                true => self.ask_owner(lp, ex, way, sticky).await,
            };
            if choice != Choice::Full {
                return Ok(choice);
            }
        }
    }

    /// Whether another loop owns its state.
    fn is_elsewhere(&self, lp: &Loop) -> bool {
        self.scope == Scope::Process && lp.keeper().is_none()
    }

    fn ask(&self, lp: &Loop, ex: &Exchange, way: &Way, sticky: Option<u32>) -> Choice {
        let exclude = self.excluded(way);
        self.choose(&self.asked(lp, ex, way, &exclude, sticky))
    }

    async fn ask_owner(&self, lp: &Loop, ex: &Exchange, way: &Way, sticky: Option<u32>) -> Choice {
        let exclude = self.excluded(way);
        owner::ask(lp, self.id, self.asked(lp, ex, way, &exclude, sticky)).await
    }

    fn asked<'a>(&self, lp: &Loop, ex: &Exchange, way: &Way, exclude: &'a [u32], sticky: Option<u32>) -> Ask<'a> {
        let key = self.key.as_ref().and_then(|source| ex.key(source));
        let draw = way.draw.with(u64::from(self.id));
        Ask { draw, key, now_ns: lp.now(), exclude, sticky }
    }

    /// Targets that other attempts of this request have tried, or are at.
    fn excluded(&self, way: &Way) -> Vec<u32> {
        let mut exclude = Vec::new();
        if let Some((_, tried)) = &way.tried {
            tried.borrow().at(self.id, &mut exclude);
        }
        if let Some(open) = &way.open {
            exclude.extend(open.borrow().iter().filter(|(lb, _)| *lb == self.id).map(|(_, t)| *t));
        }
        exclude
    }

    /// The policy picks, until what it picked could be had.
    pub fn choose(&self, ask: &Ask) -> Choice {
        let mut upstream = self.upstream.borrow_mut();
        if self.due_ns.get() <= ask.now_ns {
            upstream.tick(ask.now_ns);
            self.due_ns.set(upstream.next_deadline().unwrap_or(u64::MAX));
        }
        self.shown.set(self.common.show(&mut upstream, self.shown.get()));
        loop {
            let choice = upstream.pick(ask);
            let Choice::Target(ticket) = choice else { return choice };
            match self.common.claim(ticket.target) {
                Claim::Had { probe } => return Choice::Target(Ticket { probe, ..ticket }),
                Claim::Full => {
                    upstream.give_up(ticket);
                    upstream.set_full(ticket.target, true);
                }
                Claim::Tried => {
                    upstream.give_up(ticket);
                    upstream.set_probing(ticket.target, true);
                    self.shown.set(true);
                }
            }
        }
    }

    fn go(
        self: &Rc<Self>,
        lp: &Rc<Loop>,
        ex: &Exchange,
        way: &mut Way,
        sticky: Option<u32>,
        choice: Choice,
    ) -> Result<(NodeId, Option<Picked>), Failure> {
        match choice {
            Choice::Target(ticket) => {
                if let Some((rule, tried)) = &way.tried {
                    tried.borrow_mut().picked(*rule, self.id, ticket.target);
                }
                if let Some(open) = &way.open {
                    open.borrow_mut().push((self.id, ticket.target));
                }
                let tried = way.tried.clone();
                let is_new = sticky != Some(ticket.target);
                let secure = ex.conn.hop().https;
                let cookie = self.sticky.as_ref().filter(|_| is_new).and_then(|s| s.set_cookie(ticket.target, secure));
                let hold = Picked { lb: self.clone(), lp: lp.clone(), ticket, tried, cookie, finished: false };
                Ok((self.targets[ticket.target as usize], Some(hold)))
            }
            Choice::Full | Choice::Empty => match self.spare {
                Some(spare) => Ok((spare, None)),
                None => Err(Failure::new(Kind::NoTarget)),
            },
        }
    }
}

/// What comes back, and what other loops say.
impl Lb {
    /// A request of this loop's state has come back.
    pub fn came_back(self: &Rc<Self>, lp: &Rc<Loop>, ticket: Ticket, outcome: Outcome, status: Option<u16>) {
        let target = ticket.target;
        let release = {
            let mut upstream = self.upstream.borrow_mut();
            let release = upstream.done(lp.now(), ticket, outcome, status);
            if outcome == Some(Kind::ConnectFailed) {
                self.due_ns.set(upstream.next_deadline().unwrap_or(u64::MAX));
            }
            release
        };
        if let Release::After(ns) = release {
            let (lb, timers) = (self.clone(), lp.timers.clone());
            tokio::task::spawn_local(async move {
                timers.after(ns).await;
                lb.upstream.borrow_mut().release(target);
            });
        }
        self.left(lp, target);
        if self.listens && (outcome.is_some() || ticket.probe || self.common.heeds(target)) {
            match lp.keeper() {
                Some(keeper) => keeper.outcome(lp, self.id, target, ticket.probe, outcome, status),
                None => lp.process.tell(OWNER, ToLoop::Outcome { lb: self.id, target, probe: ticket.probe, outcome, status }),
            }
        }
    }

    /// A request of this loop's state was cancelled.
    pub fn was_cancelled(self: &Rc<Self>, lp: &Rc<Loop>, ticket: Ticket) {
        self.upstream.borrow_mut().cancelled(lp.now(), ticket);
        if ticket.probe {
            self.common.free_probe(ticket.target);
        }
        self.left(lp, ticket.target);
    }

    fn left(&self, lp: &Loop, target: u32) {
        if self.common.is_limited() {
            self.common.leave(target);
            self.room(lp);
        }
    }

    /// There may be room: the lowest ticket of all loops asks again.
    pub fn room(&self, lp: &Loop) {
        match self.common.lowest() {
            Some((_, slot)) if self.common.is_slot_of(slot, lp.number) => self.line.wake_first(),
            Some((_, slot)) => lp.process.tell(slot as u32, ToLoop::Room { lb: self.id }),
            None => {}
        }
    }

    /// The health of the targets is another.
    pub fn follow(&self, lp: &Loop, seen: &Snapshot) {
        self.upstream.borrow_mut().follow(lp.now(), seen);
        self.shown.set(true);
        if !self.common.nobody_waits() {
            self.room(lp);
        }
    }

    /// Takes a target away: no new picks; what is in flight there goes on to its end, idle connections close, clients that
    /// stuck to it are free.
    pub fn remove(&self, lp: &Rc<Loop>, target: u32) {
        self.upstream.borrow_mut().remove(lp.now(), target);
        if let Some(sticky) = &self.sticky {
            sticky.forget(target);
        }
        if let Some(keeper) = lp.keeper() {
            keeper.remove(lp, self.id, target);
        }
        self.retire(lp, target);
        self.room(lp);
    }

    /// Closes the idle connections of servers to which no target leads any more.
    fn retire(&self, lp: &Loop, target: u32) {
        let graph = lp.graph();
        let lbs = || graph.nodes.iter().filter_map(|n| if let Node::Lb(lb) = n { Some(lb) } else { None });
        for server in self.ends.get(target as usize).into_iter().flat_map(Ends::servers) {
            let is_led_to = lbs().any(|lb| lb.leads_to(server));
            if let (Node::Server(server), false) = (graph.node(server), is_led_to) {
                server.retire();
            }
        }
    }

    fn leads_to(&self, server: NodeId) -> bool {
        let upstream = self.upstream.borrow();
        let exists = |target: u32| upstream.roster().exists(target);
        (0u32..).zip(self.ends.iter()).any(|(t, ends)| exists(t) && ends.servers().any(|s| s == server))
    }
}

/// A request counted at a target.
pub(crate) struct Picked {
    lb: Rc<Lb>,
    lp: Rc<Loop>,
    ticket: Ticket,
    tried: Option<(weir_policy::config::Exclude, Rc<RefCell<weir_policy::retry::Tried>>)>,
    /// What the client is to return with.
    cookie: Option<String>,
    finished: bool,
}

impl Picked {
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

    /// The value of Set-Cookie for the client.
    pub fn set_cookie(&self) -> Option<&str> {
        self.cookie.as_deref()
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

/// The cookies that holds of a response set.
pub(crate) type SetCookies<'a> = SmallVec<[(&'a str, &'a [u8]); 1]>;
