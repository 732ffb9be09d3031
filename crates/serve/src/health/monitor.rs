//! The keeper of health: on one loop, for all balancers of the process.
//!
//! It hears how requests ended, begins checks when they are due, ends ejections and moves ramps on, and sends what has
//! changed to all loops. Balancers inside tell those outside whether anyone is left; a plan's nodes come after all that they
//! lead to, so one pass in their order is enough.

use crate::control::event_loop::Loop;
use crate::control::mailbox::ToLoop;
use crate::graph::ends::{End, Ends};
use crate::health::check::{NothingLeft, Question};
use crate::io::timers::has_ended;
use crate::log::error_log::Words;
use crate::nodes::lb::common::Common;
use crate::nodes::{Node, NodeId};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use weir_policy::Outcome;
use weir_policy::health::Health;
use weir_policy::snapshot::Snapshot;

/// The keeper.
pub(crate) struct Keeper {
    /// By number of the node, ascending.
    lbs: RefCell<Vec<Kept>>,
    kicked: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// What is kept of one balancer.
pub(crate) struct Kept {
    pub id: NodeId,
    pub health: Health,
    pub ends: Rc<[Ends]>,
    pub common: Arc<Common>,
    /// What a check asks of each target; empty without checks.
    pub questions: Vec<Rc<Question>>,
    /// Whether another node takes what no target is left for.
    pub has_spare: bool,
    /// What others know of it.
    pub known: Known,
    /// What it is called.
    pub name: String,
    /// What its targets are called.
    pub names: Vec<String>,
}

/// What the loops, and the balancers outside, were told of one balancer last.
#[derive(Default)]
pub(crate) struct Known {
    version: Option<u64>,
    half_open: Vec<bool>,
    is_alive: bool,
}

impl Keeper {
    /// Of these balancers, in the order of their nodes.
    pub fn new(lbs: Vec<Kept>) -> Keeper {
        Keeper { lbs: RefCell::new(lbs), kicked: Cell::new(false), waker: RefCell::default() }
    }

    /// Ticks and checks, for ever.
    pub async fn run(self: Rc<Self>, lp: Rc<Loop>) {
        self.change(&lp, true, |_, _| {});
        loop {
            let mut sleep = self.turn(&lp).map(|at_ns| lp.timers.at(at_ns));
            poll_fn(|cx| {
                if self.kicked.replace(false) || has_ended(&mut sleep, cx) {
                    return Poll::Ready(());
                }
                *self.waker.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            })
            .await;
        }
    }

    fn kick(&self) {
        self.kicked.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Does what is due; when the next is.
    fn turn(self: &Rc<Self>, lp: &Rc<Loop>) -> Option<u64> {
        let mut due = Vec::new();
        self.change(lp, false, |now_ns, kept| {
            if kept.health.next_deadline().is_some_and(|at| at <= now_ns) {
                kept.health.tick(now_ns);
            }
            while let Some(target) = kept.health.start_check(now_ns) {
                due.push((kept.id, target));
            }
        });
        for (lb, target) in due {
            self.check(lp, lb, target);
        }
        let mut lbs = self.lbs.borrow_mut();
        lbs.iter_mut()
            .filter_map(|k| k.health.next_deadline().into_iter().chain(k.health.next_check()).min())
            .min()
    }

    /// Checks a target, in a task of its own.
    fn check(self: &Rc<Self>, lp: &Rc<Loop>, lb: NodeId, target: u32) {
        let (keeper, own) = (self.clone(), lp.clone());
        let asked =
            self.with(lb, |kept| Some((kept.questions.get(target as usize)?.clone(), kept.ends.clone())));
        let Some((question, ends)) = asked.flatten() else { return };
        lp.runtime.spawn(async move {
            let Some(ends) = ends.get(target as usize) else { return };
            let passed = question.ask(&own, ends).await;
            keeper.change_one(&own, lb, |now_ns, kept| match passed {
                Ok(passed) => drop(kept.health.check_result(now_ns, target, passed)),
                Err(NothingLeft) => kept.health.check_said_nothing(now_ns, target),
            });
            keeper.kick();
        });
    }

    /// A request came back from a target, of whichever loop.
    pub fn outcome(
        &self,
        lp: &Rc<Loop>,
        lb: NodeId,
        target: u32,
        probe: bool,
        outcome: Outcome,
        status: Option<u16>,
    ) {
        let changed = self.with(lb, |kept| {
            if target >= kept.health.len() {
                return (false, false);
            }
            if probe {
                kept.health.picked(target);
            }
            let changed = kept.health.outcome(lp.now(), target, probe, outcome, status);
            let free = probe && !changed;
            if free {
                // It said nothing of the target: another may try it.
                kept.common.free_probe(target);
            }
            kept.common.set_heeds(target, kept.health.heeds_success(target));
            (changed, free)
        });
        let Some((changed, free)) = changed else { return };
        if let (true, Node::Lb(node)) = (free, lp.graph().node(lb)) {
            node.tell_first();
        }
        if changed {
            self.change(lp, false, |_, _| {});
            self.kick();
        }
    }

    /// A target is gone.
    pub fn remove(&self, lp: &Rc<Loop>, lb: NodeId, target: u32) {
        self.change_one(lp, lb, |_, kept| kept.health.remove(target));
        self.kick();
    }

    /// Names have other addresses: who has none is down.
    pub fn look_at_names(&self, lp: &Rc<Loop>) {
        self.change(lp, true, |_, _| {});
        self.kick();
    }

    fn with<T>(&self, lb: NodeId, act: impl FnOnce(&mut Kept) -> T) -> Option<T> {
        let mut lbs = self.lbs.borrow_mut();
        let at = lbs.binary_search_by_key(&lb, |k| k.id).ok()?;
        lbs.get_mut(at).map(act)
    }

    fn change_one(&self, lp: &Rc<Loop>, lb: NodeId, act: impl FnOnce(u64, &mut Kept)) {
        let now_ns = lp.now();
        let changed = self.with(lb, |kept| {
            act(now_ns, kept);
            kept.known.version != Some(kept.health.version())
        });
        if changed == Some(true) {
            self.change(lp, false, |_, _| {});
        }
    }

    /// Does something to each balancer, and tells all loops of what has changed, which may be more than that. `all`: ends of
    /// ways may have changed.
    fn change(&self, lp: &Rc<Loop>, all: bool, mut act: impl FnMut(u64, &mut Kept)) {
        let now_ns = lp.now();
        let mut news = Vec::new();
        let mut behind = all;
        {
            let mut lbs = self.lbs.borrow_mut();
            for at in 0..lbs.len() {
                let (inside, rest) = lbs.split_at_mut(at);
                let Some(kept) = rest.first_mut() else { continue };
                act(now_ns, kept);
                if behind {
                    kept.look_behind(now_ns, lp, inside);
                }
                if kept.has_changed(&lp.process.words) {
                    news.push((kept.id, Arc::new(Snapshot::of(&kept.health))));
                    let is_alive = kept.is_alive();
                    behind |= std::mem::replace(&mut kept.known.is_alive, is_alive) != is_alive;
                }
            }
        }
        for (lb, seen) in news {
            if let Node::Lb(node) = lp.graph().node(lb) {
                node.follow(lp, &seen);
            }
            lp.tell_others(|| ToLoop::Health { lb, seen: seen.clone() });
        }
    }
}

impl Kept {
    /// Looks whether what is behind each target is of any use. `inside`: the balancers that may be behind it.
    fn look_behind(&mut self, now_ns: u64, lp: &Loop, inside: &[Kept]) {
        let ends = self.ends.clone();
        for (target, ends) in (0u32..).zip(ends.iter()) {
            let up = ends.all.is_empty() || ends.all.iter().any(|end| is_up(*end, lp, inside));
            if ends.servers().next().is_some() {
                self.health.set_resolved(now_ns, target, up);
            } else {
                self.health.set_behind(now_ns, target, up);
            }
        }
    }

    /// Whether any view has changed since the last call; the atomics then say who may be tried, before anyone may pick it.
    fn has_changed(&mut self, words: &Words) -> bool {
        let version = Some(self.health.version());
        if self.known.version == version {
            return false;
        }
        self.known.version = version;
        for one in self.health.take_transitions().filter(|t| t.was_eligible != t.is_eligible) {
            let reason = one.reason.name();
            let now = match one.is_eligible {
                true => "up",
                false if reason.starts_with("ejected") => "ejected",
                false => "down",
            };
            let Some(target) = self.names.get(one.target as usize) else { continue };
            words.say(|| format!("{target}, a target of {}, is {now} ({reason})", self.name));
        }
        self.known.half_open.resize(self.health.len() as usize, false);
        for (target, known) in (0u32..).zip(&mut self.known.half_open) {
            let half_open = self.health.is_half_open(target);
            if std::mem::replace(known, half_open) != half_open {
                self.common.set_half_open(target, half_open);
            }
        }
        true
    }

    /// Whether a request would find anyone here.
    fn is_alive(&self) -> bool {
        self.has_spare || self.health.has_anyone()
    }
}

fn is_up(end: End, lp: &Loop, inside: &[Kept]) -> bool {
    match end {
        End::Own => true,
        End::Lb(id) => inside.binary_search_by_key(&id, |k| k.id).map_or(true, |at| inside[at].is_alive()),
        End::Server(id) => match lp.graph().node(id) {
            Node::Server(server) => server.target.has_address(),
            _ => true,
        },
    }
}
