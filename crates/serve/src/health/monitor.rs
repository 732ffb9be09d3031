//! The health monitor: on one thread, for all balancers of the process.
//!
//! It hears how requests ended, begins checks when they are due, ends ejections and moves ramps on, and publishes what has
//! changed to all loops. Balancers inside tell those outside whether anyone is left; a plan's nodes come after all that they
//! lead to, so one pass in their order is enough.

use super::check::{NothingLeft, Question};
use super::target_set::{TargetSet, TargetSlot};
use crate::exchange::NodeId;
use crate::graph::Graph;
use crate::graph::blueprint::Blueprint;
use crate::graph::ends::{End, Ends};
use crate::log::ErrorLog;
use crate::nodes::lb::{Lb as Balancer, TargetFlags};
use crate::nodes::{Id, Node};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use weir_net::io::Core;
use weir_net::io::timers::has_ended;
use weir_policy::Outcome;
use weir_policy::health::Health;
use weir_policy::snapshot::Snapshot;
use weir_topology::plan::{Lb, Spec};

/// Sends what has changed of a balancer's health to all that follow it.
pub(crate) type Publish = Box<dyn Fn(Id, Arc<Snapshot>)>;

/// The monitor.
pub(crate) struct Monitor {
    core: Rc<Core>,
    graph: Rc<Graph>,
    errors: Arc<ErrorLog>,
    publish: Publish,
    /// By number of the node, ascending.
    lbs: RefCell<Vec<Monitored>>,
    notified: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// What is known of one balancer.
struct Monitored {
    node: NodeId,
    id: Id,
    health: Health,
    set: TargetSet,
    ends: Rc<[Ends]>,
    flags: Arc<TargetFlags>,
    /// What a check asks of each target; empty without checks.
    questions: Vec<Rc<Question>>,
    /// Whether another node takes what no target is left for.
    has_spare: bool,
    /// What others know of it.
    told: Told,
    /// What it is called.
    name: String,
    /// What its targets are called.
    names: Vec<String>,
}

/// What the loops, and the balancers outside, were told of one balancer last.
#[derive(Default)]
struct Told {
    version: Option<u64>,
    half_open: Vec<bool>,
    is_alive: bool,
}

impl Monitor {
    /// Of all balancers of a graph, which this thread runs too. `token`: what proves checks to built-in servers.
    pub fn new(
        core: Rc<Core>,
        graph: Rc<Graph>,
        blueprint: &Blueprint,
        errors: Arc<ErrorLog>,
        token: u64,
        publish: Publish,
    ) -> Rc<Monitor> {
        let lbs = (0..).zip(&blueprint.point.nodes).filter_map(|(id, _)| {
            match (blueprint.spec(id), graph.node(id)) {
                (Spec::Lb(lb), Node::Lb(node)) => Some(Monitored::new(node, lb, &graph, blueprint, token)),
                _ => None,
            }
        });
        Rc::new(Monitor {
            lbs: RefCell::new(lbs.collect()),
            core,
            graph,
            errors,
            publish,
            notified: Cell::new(false),
            waker: RefCell::default(),
        })
    }

    /// Ticks and checks, for ever.
    pub async fn run(self: Rc<Self>) {
        self.change(true, |_, _| {});
        loop {
            let mut sleep = self.turn().map(|at_ns| self.core.timers.at(at_ns));
            poll_fn(|cx| {
                if self.notified.replace(false) || has_ended(&mut sleep, cx) {
                    return Poll::Ready(());
                }
                *self.waker.borrow_mut() = Some(cx.waker().clone());
                Poll::Pending
            })
            .await;
        }
    }

    fn notify(&self) {
        self.notified.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Does what is due; when the next is.
    fn turn(self: &Rc<Self>) -> Option<u64> {
        let mut due = Vec::new();
        self.change(false, |now_ns, lb| {
            if lb.health.next_deadline().is_some_and(|at| at <= now_ns) {
                lb.health.tick(now_ns);
            }
            while let Some(target) = lb.health.start_check(now_ns) {
                due.push((lb.id, target));
            }
        });
        for (lb, target) in due {
            self.check(lb, target);
        }
        let mut lbs = self.lbs.borrow_mut();
        lbs.iter_mut()
            .filter_map(|lb| lb.health.next_deadline().into_iter().chain(lb.health.next_check()).min())
            .min()
    }

    /// Checks a target, in a task of its own.
    fn check(self: &Rc<Self>, lb: Id, target: u32) {
        let asked = self.with(lb, |lb| Some((lb.questions.get(target as usize)?.clone(), lb.ends.clone())));
        let Some((question, ends)) = asked.flatten() else { return };
        let monitor = self.clone();
        self.core.runtime.spawn(async move {
            let Some(ends) = ends.get(target as usize) else { return };
            let passed = question.ask(&monitor.core, &monitor.graph, ends).await;
            monitor.change_one(lb, |now_ns, lb| match passed {
                Ok(passed) => drop(lb.health.check_result(now_ns, target, passed)),
                Err(NothingLeft) => lb.health.check_said_nothing(now_ns, target),
            });
            monitor.notify();
        });
    }

    /// A request came back from a target, of whichever loop.
    pub fn outcome(&self, lb: Id, target: u32, probe: bool, outcome: Outcome, status: Option<u16>) {
        let changed = self.with(lb, |lb| {
            if target >= lb.health.len() {
                return (false, false);
            }
            if probe {
                lb.health.picked(target);
            }
            let changed = lb.health.outcome(self.core.now(), target, probe, outcome, status);
            let free = probe && !changed;
            if free {
                // It said nothing of the target: another may try it.
                lb.flags.free_probe(target);
            }
            lb.flags.set_wants_successes(target, lb.health.heeds_success(target));
            (changed, free)
        });
        let Some((changed, free)) = changed else { return };
        if let (true, Some(lb)) = (free, self.graph.lb(lb)) {
            lb.notify_first();
        }
        if changed {
            self.change(false, |_, _| {});
            self.notify();
        }
    }

    /// Takes a target away; which one that is. `None`: there is none.
    pub fn remove(&self, lb: Id, target: u32) -> Option<TargetSlot> {
        let slot = self.with(lb, |lb| lb.set.remove(target)).flatten()?;
        self.change_one(lb, |_, lb| lb.health.remove(target));
        self.notify();
        Some(slot)
    }

    /// Looks at the health of a balancer's targets; `None`: it is of another graph.
    pub fn look<T>(&self, lb: Id, at: impl FnOnce(&Health) -> T) -> Option<T> {
        self.with(lb, |lb| at(&lb.health))
    }

    /// Whether a request would find anyone at the end of a way.
    pub fn finds_anyone(&self, end: End) -> bool {
        is_up(end, &self.graph, &self.lbs.borrow())
    }

    /// Names have other addresses: who has none is down.
    pub fn look_at_names(&self) {
        self.change(true, |_, _| {});
        self.notify();
    }

    fn with<T>(&self, lb: Id, act: impl FnOnce(&mut Monitored) -> T) -> Option<T> {
        let node = self.graph.lb(lb)?.node;
        let mut lbs = self.lbs.borrow_mut();
        let at = lbs.binary_search_by_key(&node, |lb| lb.node).ok()?;
        lbs.get_mut(at).map(act)
    }

    fn change_one(&self, lb: Id, act: impl FnOnce(u64, &mut Monitored)) {
        let now_ns = self.core.now();
        let changed = self.with(lb, |lb| {
            act(now_ns, lb);
            lb.told.version != Some(lb.health.version())
        });
        if changed == Some(true) {
            self.change(false, |_, _| {});
        }
    }

    /// Does something to each balancer, and tells all loops of what has changed, which may be more than that. `all`: ends of
    /// ways may have changed.
    fn change(&self, all: bool, mut act: impl FnMut(u64, &mut Monitored)) {
        let now_ns = self.core.now();
        let mut news = Vec::new();
        let mut behind = all;
        {
            let mut lbs = self.lbs.borrow_mut();
            for at in 0..lbs.len() {
                let (inside, rest) = lbs.split_at_mut(at);
                let Some(lb) = rest.first_mut() else { continue };
                act(now_ns, lb);
                if behind {
                    lb.look_behind(now_ns, &self.graph, inside);
                }
                if lb.has_changed(&self.errors) {
                    news.push((lb.id, Arc::new(Snapshot::of(&lb.health))));
                    let is_alive = lb.is_alive();
                    behind |= std::mem::replace(&mut lb.told.is_alive, is_alive) != is_alive;
                }
            }
        }
        for (lb, seen) in news {
            if let Some(lb) = self.graph.lb(lb) {
                lb.follow(&seen);
            }
            (self.publish)(lb, seen);
        }
    }
}

impl Monitored {
    fn new(own: &Balancer, lb: &Lb, graph: &Graph, blueprint: &Blueprint, token: u64) -> Monitored {
        let node = own.node;
        let (targets, ends) = (blueprint.list(node), graph.ends(node));
        let question = |ends: &Ends, check| {
            let at = (ends.addr(&blueprint.point), ends.tls(&blueprint.point));
            Rc::new(Question::new(check, at, token))
        };
        let questions = lb.health.iter().flat_map(|check| ends.iter().map(move |e| question(e, check)));
        Monitored {
            node,
            id: own.id,
            health: blueprint.health(node, lb),
            set: TargetSet::new(targets.len()),
            flags: own.flags.clone(),
            questions: questions.collect(),
            ends: ends.clone(),
            has_spare: lb.spare.is_some(),
            told: Told::default(),
            name: blueprint.point.nodes[node as usize]
                .name
                .clone()
                .unwrap_or_else(|| "a balancer".to_owned()),
            names: targets.iter().map(|t| blueprint.described(*t)).collect(),
        }
    }

    /// Looks whether what is behind each target is of any use. `inside`: the balancers that may be behind it.
    fn look_behind(&mut self, now_ns: u64, graph: &Graph, inside: &[Monitored]) {
        let ends = self.ends.clone();
        for (target, ends) in (0u32..).zip(ends.iter()) {
            let up = ends.all.is_empty() || ends.all.iter().any(|end| is_up(*end, graph, inside));
            if ends.servers().next().is_some() {
                self.health.set_resolved(now_ns, target, up);
            } else {
                self.health.set_behind(now_ns, target, up);
            }
        }
    }

    /// Whether any view has changed since the last call; the atomics then say who may be tried, before anyone may pick it.
    fn has_changed(&mut self, errors: &ErrorLog) -> bool {
        let version = Some(self.health.version());
        if self.told.version == version {
            return false;
        }
        self.told.version = version;
        for one in self.health.take_transitions().filter(|t| t.was_eligible != t.is_eligible) {
            let reason = one.reason.name();
            let now = match one.is_eligible {
                true => "up",
                false if reason.starts_with("ejected") => "ejected",
                false => "down",
            };
            let Some(target) = self.names.get(one.target as usize) else { continue };
            errors.note(|| format!("{target}, a target of {}, is {now} ({reason})", self.name));
        }
        self.told.half_open.resize(self.health.len() as usize, false);
        for (target, known) in (0u32..).zip(&mut self.told.half_open) {
            let half_open = self.health.is_half_open(target);
            if std::mem::replace(known, half_open) != half_open {
                self.flags.set_half_open(target, half_open);
            }
        }
        true
    }

    /// Whether a request would find anyone here.
    fn is_alive(&self) -> bool {
        self.has_spare || self.health.has_anyone()
    }
}

fn is_up(end: End, graph: &Graph, inside: &[Monitored]) -> bool {
    match end {
        End::Own => true,
        End::Lb(id) => inside.binary_search_by_key(&id, |m| m.node).map_or(true, |at| inside[at].is_alive()),
        End::Server(id) => match graph.node(id) {
            Node::Server(server) => server.target.place.has_address(),
            _ => true,
        },
    }
}
