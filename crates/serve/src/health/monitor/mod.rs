//! The health monitor: on one thread, for all balancers of the process.
//!
//! It receives the outcomes of requests, begins checks when they are due, ends ejections and advances ramps, and
//! publishes changes to all loops. Inner balancers report to outer ones whether any target is left; a plan's nodes
//! come after all nodes behind them, so one pass in their order is enough.

mod events;
mod gather;

use super::check::{CheckFailure, Question};
use super::overrides::{ByHand, Overrides};
pub(crate) use events::{Event, TargetPast};

use crate::exchange::NodeId;
use crate::graph::Graph;
use crate::graph::ends::{End, Ends};
use crate::log::ErrorLog;
use crate::metrics::TargetHealth;
use crate::nodes::lb::{HealthUpdate, Lb as Balancer, Shape, TargetFlags};
use crate::nodes::{Id, Node};
use events::Events;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use weir_net::io::Core;
use weir_net::io::timers::has_ended;
use weir_plan::{Lb, Spec, label};
use weir_policy::eligibility::Transition;
use weir_policy::health::{Health, HealthRecord};
use weir_policy::snapshot::Snapshot;
use weir_policy::{Outcome, TargetChange, TargetId};

/// Callbacks for changes in health.
pub(crate) struct Callbacks {
    /// Publishes the changed health of a balancer to all followers.
    pub publish: Box<dyn Fn(Id, Arc<HealthUpdate>)>,
    /// The number of ejections of a balancer since the last call.
    pub ejected: Box<dyn Fn(u64)>,
    /// A target of the balancer of this node was ejected, or a check of it has failed.
    pub failed: Box<dyn Fn(NodeId, TargetId)>,
}

/// The monitor.
pub(crate) struct Monitor {
    pub core: Rc<Core>,
    graph: RefCell<Rc<Graph>>,
    errors: Arc<ErrorLog>,
    hears: Callbacks,
    /// By number of the node, ascending.
    lbs: RefCell<Vec<Monitored>>,
    /// The token that authenticates checks to built-in servers.
    token: u64,
    /// The settings by hand, by balancer and target, until they are revoked.
    overrides: RefCell<Overrides>,
    /// The last changes of targets.
    events: RefCell<Events>,
    notified: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The health of one balancer.
struct Monitored {
    node: NodeId,
    id: Id,
    health: Health,
    /// Which targets exist, and their weights in the file, by index.
    shape: Arc<Shape>,
    ends: Arc<[Ends]>,
    /// Whether what is behind a target may not be usable, now or in an earlier generation.
    looks_behind: bool,
    flags: Arc<TargetFlags>,
    /// The check of each target; empty without checks.
    questions: Vec<Rc<Question>>,
    /// Whether another node takes requests for which no target is left.
    has_spare: bool,
    /// The published state.
    told: Published,
    /// Its display name.
    name: String,
    /// The display names of its targets.
    names: Arc<[Arc<str>]>,
    /// The names of it and them in the admin interface (`docs/spec/operating.md#metric-rules`).
    label: String,
    labels: Arc<[Arc<str>]>,
    /// Their counters.
    counts: Vec<TargetHealth>,
    /// Their pasts.
    pasts: Vec<TargetPast>,
}

/// The state last published to the loops, and to the balancers outside.
#[derive(Default)]
struct Published {
    version: Option<u64>,
    half_open: Vec<bool>,
    is_alive: bool,
    ejections: u64,
}

impl Monitor {
    /// For all balancers of a graph, which this thread runs too. `token`: authenticates checks to built-in servers.
    pub fn new(
        core: Rc<Core>,
        graph: Rc<Graph>,
        errors: Arc<ErrorLog>,
        token: u64,
        hears: Callbacks,
    ) -> Rc<Monitor> {
        let lbs = monitored(&graph, token, &mut BTreeMap::new(), 0);
        Rc::new(Monitor {
            lbs: RefCell::new(lbs),
            core,
            graph: RefCell::new(graph),
            errors,
            hears,
            token,
            overrides: RefCell::default(),
            events: RefCell::default(),
            notified: Cell::new(false),
            waker: RefCell::default(),
        })
    }

    /// Replaces the graph: remaining targets keep their health. Returns that of each balancer's targets, which is to be
    /// published with the graph.
    pub fn adopt(&self, graph: Rc<Graph>) -> Vec<(Id, Snapshot)> {
        let mut before: BTreeMap<Id, Monitored> =
            self.lbs.borrow_mut().drain(..).map(|lb| (lb.id, lb)).collect();
        *self.lbs.borrow_mut() = monitored(&graph, self.token, &mut before, self.core.now());
        *self.graph.borrow_mut() = graph;
        self.heed_overrides();
        // Loops get it with the generation: until then their targets are those of the one before.
        let mut changed: BTreeMap<Id, Snapshot> = self.settle(true, |_, _| {}).into_iter().collect();
        self.notify();
        let health =
            |lb: &Monitored| (lb.id, changed.remove(&lb.id).unwrap_or_else(|| Snapshot::new(&lb.health)));
        self.lbs.borrow().iter().map(health).collect()
    }

    /// Sets a target by hand; or revokes that.
    pub fn set_by_hand(&self, changes: Overrides) {
        for (target, by_hand) in changes {
            self.overrides.borrow_mut().insert(target, by_hand);
        }
        self.heed_overrides();
        self.overrides.borrow_mut().retain(|_, by_hand| *by_hand != ByHand::default());
        self.change(false, |_, _| {});
        self.notify();
    }

    /// The settings by hand.
    pub fn by_hand(&self) -> Overrides {
        self.overrides.borrow().clone()
    }

    /// What is known of targets: balancer, index among balancers of that name, target. Without checks and ramps only ejected
    /// targets are named. With ramps all are: where the successor has checks, a target that it knows nothing of may begin a
    /// ramp with its first check.
    pub fn known(&self) -> Vec<(String, u32, String, HealthRecord)> {
        let (now_ns, mut counted) = (self.core.now(), BTreeMap::<String, u32>::new());
        let mut all = Vec::new();
        for lb in self.lbs.borrow().iter() {
            let number = counted.entry(lb.label.clone()).or_default();
            let all_matter = !lb.questions.is_empty() || lb.health.has_ramps();
            for (target, label) in
                (0..).map(TargetId).zip(lb.labels.iter()).filter(|(_, label)| !label.is_empty())
            {
                let known = lb.health.known(now_ns, target);
                if all_matter || known.out_for_ns.is_some() {
                    all.push((lb.label.clone(), *number, String::from(&**label), known));
                }
            }
            *number += 1;
        }
        all
    }

    /// Restores another process's knowledge of them.
    pub fn believe(&self, known: &[(String, u32, String, HealthRecord)]) {
        let known: BTreeMap<_, _> =
            known.iter().map(|(lb, n, target, known)| ((lb, *n, &target[..]), *known)).collect();
        let (now_ns, mut counted) = (self.core.now(), BTreeMap::<String, u32>::new());
        for lb in self.lbs.borrow_mut().iter_mut() {
            let number = counted.entry(lb.label.clone()).or_default();
            for (target, label) in (0..).map(TargetId).zip(lb.labels.iter()) {
                if let Some(known) = known.get(&(&lb.label, *number, &**label)) {
                    lb.health.restore(now_ns, target, *known);
                }
            }
            *number += 1;
        }
        self.change(false, |_, _| {});
        self.notify();
    }

    /// Revokes settings whose time is over; returns the time of the next.
    fn take_back(&self) -> Option<u64> {
        let now_ns = self.core.now();
        let mut left = self.by_hand();
        left.retain(|_, by_hand| by_hand.keep_from(now_ns) != *by_hand);
        if !left.is_empty() {
            self.set_by_hand(left.into_iter().map(|(target, b)| (target, b.keep_from(now_ns))).collect());
        }
        self.overrides.borrow().values().filter_map(ByHand::next_end_ns).min()
    }

    fn heed_overrides(&self) {
        let (now_ns, overrides) = (self.core.now(), self.overrides.borrow());
        if overrides.is_empty() {
            return;
        }
        for lb in self.lbs.borrow_mut().iter_mut() {
            for (target, label) in (0..).map(TargetId).zip(lb.labels.iter()) {
                if let Some(by_hand) = overrides.get(&(lb.label.clone(), String::from(&**label))) {
                    by_hand.apply(now_ns, target, lb.shape.weights[target.index()], &mut lb.health);
                }
            }
        }
    }

    /// Ticks and checks, for ever.
    pub async fn run(self: Rc<Self>) {
        self.change(true, |_, _| {});
        loop {
            let mut sleep = self.turn().map(|at_ns| self.core.timers.sleep_until(at_ns));
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

    /// Does everything that is due; returns the time of the next.
    fn turn(self: &Rc<Self>) -> Option<u64> {
        let taken_back_ns = self.take_back();
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
            .chain(taken_back_ns)
            .min()
    }

    /// Checks a target, in a task of its own.
    fn check(self: &Rc<Self>, lb: Id, target: TargetId) {
        let asked = self.with(lb, |lb| Some((lb.questions.get(target.index())?.clone(), lb.ends.clone())));
        let Some((question, ends)) = asked.flatten() else { return };
        let monitor = self.clone();
        self.core.runtime.spawn(async move {
            let Some(ends) = ends.get(target.index()) else { return };
            let graph = monitor.graph.borrow().clone();
            let result = question.ask(&monitor.core, &graph, ends).await;
            monitor.change_one(lb, |now_ns, lb| {
                lb.checked(now_ns, target, &result);
                match result {
                    Err(CheckFailure::NothingLeft) => lb.health.check_said_nothing(now_ns, target),
                    Ok(()) => drop(lb.health.check_result(now_ns, target, true)),
                    Err(_) => {
                        lb.health.check_result(now_ns, target, false);
                        (monitor.hears.failed)(lb.node, target);
                    }
                }
            });
            monitor.notify();
        });
    }

    /// Notes the outcome of a request at a target, from any loop.
    pub fn outcome(&self, lb: Id, target: TargetId, probe: bool, outcome: Outcome, status: Option<u16>) {
        let changed = self.with(lb, |lb| {
            if target.0 >= lb.health.len() {
                return (false, false);
            }
            if probe {
                lb.health.picked(target);
            }
            let changed = lb.health.outcome(self.core.now(), target, probe, outcome, status);
            let free = probe && !changed;
            if free {
                // It said nothing about the target: another request may try it.
                lb.flags.free_probe(target);
            }
            lb.flags.set_wants_successes(target, lb.health.heeds_success(target));
            (changed, free)
        });
        let Some((changed, free)) = changed else { return };
        if let (true, Some(lb)) = (free, self.graph.borrow().lb(lb)) {
            lb.notify_first();
        }
        if changed {
            self.change(false, |_, _| {});
            self.notify();
        }
    }

    /// Reads the health of a balancer's targets, their names, their weights in the file, and their pasts.
    pub fn look<T>(
        &self,
        lb: Id,
        at: impl FnOnce(&Health, &[Arc<str>], &[f64], &[TargetPast]) -> T,
    ) -> Option<T> {
        self.with(lb, |lb| at(&lb.health, &lb.labels, &lb.shape.weights, &lb.pasts))
    }

    /// The last changes of targets, the newest last.
    pub fn events(&self) -> Vec<Event> {
        self.events.borrow().all()
    }

    /// The ends of ways at which a pick would find a target now: with health ignored where it is, and with the nodes
    /// of `on_empty`.
    pub fn finds(&self) -> impl Fn(&Ends) -> bool {
        let (graph, lbs) = (self.graph.borrow().clone(), self.lbs.borrow());
        // Balancers come after those behind them.
        let mut finding = BTreeMap::new();
        for lb in lbs.iter() {
            let finds = lb.finds(&graph, &finding);
            finding.insert(lb.node, finds);
        }
        move |ends| finds(ends, &graph, &finding)
    }

    /// Names have other addresses: a name without any is down.
    pub fn look_at_names(&self) {
        self.change(true, |_, _| {});
        self.notify();
    }

    fn with<T>(&self, lb: Id, act: impl FnOnce(&mut Monitored) -> T) -> Option<T> {
        let node = self.graph.borrow().lb(lb)?.node;
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

    /// Reports the ejections of a balancer since the last report.
    fn tell_ejections(&self, lb: &mut Monitored) {
        let ejections = lb.health.ejections();
        let before = std::mem::replace(&mut lb.told.ejections, ejections);
        if ejections > before {
            (self.hears.ejected)(ejections - before);
        }
    }

    /// Applies a change to each balancer, and publishes everything that has changed, which may be more. `all`: ends
    /// of ways may have changed.
    fn change(&self, all: bool, act: impl FnMut(u64, &mut Monitored)) {
        let graph = self.graph.borrow().clone();
        for (id, health) in self.settle(all, act) {
            if let Some(lb) = graph.lb(id) {
                (self.hears.publish)(id, lb.follow_first(health));
            }
        }
    }

    /// The same without publishing: returns what has changed.
    fn settle(&self, all: bool, mut act: impl FnMut(u64, &mut Monitored)) -> Vec<(Id, Snapshot)> {
        let (now_ns, graph) = (self.core.now(), self.graph.borrow().clone());
        let mut news = Vec::new();
        let mut behind = all;
        {
            let mut lbs = self.lbs.borrow_mut();
            for at in 0..lbs.len() {
                let (inside, rest) = lbs.split_at_mut(at);
                let Some(lb) = rest.first_mut() else { continue };
                act(now_ns, lb);
                if behind && lb.looks_behind {
                    lb.look_behind(now_ns, &graph, inside);
                }
                if lb.has_changed(now_ns, &self.errors, &mut self.events.borrow_mut(), &self.hears) {
                    self.tell_ejections(lb);
                    news.push((lb.id, Snapshot::new(&lb.health)));
                    let is_alive = lb.is_alive();
                    behind |= std::mem::replace(&mut lb.told.is_alive, is_alive) != is_alive;
                }
            }
        }
        news
    }
}

/// The balancers of a graph, by number of the node; existing ones are kept.
fn monitored(graph: &Graph, token: u64, before: &mut BTreeMap<Id, Monitored>, now_ns: u64) -> Vec<Monitored> {
    let monitored = |own: &Rc<Balancer>| {
        let Spec::Lb(lb) = graph.blueprint.spec(own.node) else { return None };
        Some(match before.remove(&own.id) {
            Some(old) => Monitored::after(old, own, lb, graph, token, now_ns),
            None => {
                let health = graph.blueprint.health(own.node, lb);
                let mut new = Monitored::new(own, lb, graph, token, health, Vec::new());
                new.know_all();
                new
            }
        })
    };
    let mut all: Vec<Monitored> = graph.balancers().filter_map(monitored).collect();
    // So that one is found by its node.
    all.sort_by_key(|monitored| monitored.node);
    all
}

impl Monitored {
    /// Of targets of which no more is known than their pasts; [`Monitored::know_all`] follows.
    fn new(
        own: &Balancer,
        lb: &Lb,
        graph: &Graph,
        token: u64,
        health: Health,
        mut pasts: Vec<TargetPast>,
    ) -> Monitored {
        pasts.resize(health.len() as usize, TargetPast::default());
        let (node, blueprint) = (own.node, &graph.blueprint);
        let ends = graph.ends(node);
        let question = |ends: &Ends, check| {
            let (addr, tls) = (ends.addr(&blueprint.point), ends.tls(&blueprint.point));
            Rc::new(Question::new(check, addr, tls, token))
        };
        let questions = lb.health.iter().flat_map(|check| ends.iter().map(move |e| question(e, check)));
        Monitored {
            node,
            id: own.id,
            pasts,
            health,
            shape: blueprint.shape(node),
            flags: own.state.all_flags(),
            questions: questions.collect(),
            ends: ends.clone(),
            looks_behind: !blueprint.has_fixed_ends(node),
            has_spare: lb.spare.is_some(),
            told: Published::default(),
            name: blueprint.point.nodes[node as usize]
                .name
                .clone()
                .unwrap_or_else(|| "a balancer".to_owned()),
            names: blueprint.described(node),
            counts: graph.take_healths(node),
            label: label(&blueprint.point, node),
            labels: blueprint.labels(node),
        }
    }

    /// Replaces an old one, and keeps its health. What it no longer needs is freed later.
    fn after(old: Monitored, own: &Balancer, lb: &Lb, graph: &Graph, token: u64, now_ns: u64) -> Monitored {
        let mut health = old.health;
        let (config, draw) = graph.blueprint.health_config(own.node, lb);
        health.configure(config, now_ns, draw);
        let shape = graph.blueprint.shape(own.node);
        let Shape { exists, weights, .. } = &*shape;
        let targets = || {
            let were = old.shape.exists.iter().copied().chain(std::iter::repeat(false));
            (0..).map(TargetId).zip(exists.iter().copied()).zip(were)
        };
        // No list is made of what may be all of a hundred thousand targets: writing it takes as long as the rest.
        let other_weight = |((target, is), was): ((TargetId, bool), bool)| {
            let (weight, i) = (weights[target.index()], target.index());
            (is && was && old.shape.weights[i] != weight).then_some((target, weight))
        };
        health.set_weights(targets().filter_map(other_weight));
        let change = |((target, is), was): ((TargetId, bool), bool)| match (was, is) {
            (true, false) => Some(TargetChange::Remove(target)),
            (false, true) => Some(TargetChange::Add { target, weight: weights[target.index()], name: "" }),
            _ => None,
        };
        health.change_targets(now_ns, targets().filter_map(change));
        // The caller publishes changes of the set.
        health.take_transitions().for_each(drop);
        let mut counts = old.counts;
        let mut after = Monitored::new(own, lb, graph, token, health, old.pasts);
        after.told = Published { version: None, ..old.told };
        after.looks_behind |= old.looks_behind;
        // Ejected targets stay out for their remaining time.
        let targets = after.counts.iter_mut().zip(&mut after.pasts).zip(&mut counts);
        let stays = exists.iter().zip(&old.shape.exists).map(|(is, was)| *is && *was);
        for (((new, past), was), stays) in targets.zip(stays) {
            // Counters are looked at only where they may be the same: each is in a line of memory of its own.
            if stays && new.is_same_as(was) {
                std::mem::swap(new, was);
            } else {
                *past = TargetPast::default();
            }
        }
        graph.discard(counts);
        after.know_all();
        after
    }

    /// Checks whether the node behind each target is usable. `inside`: the balancers that may be behind it.
    fn look_behind(&mut self, now_ns: u64, graph: &Graph, inside: &[Monitored]) {
        let look = |(target, ends): (TargetId, &Ends)| {
            let up = ends.has_fixed || ends.all.iter().any(|end| is_up(*end, graph, inside));
            (target, ends.has_server, up)
        };
        self.health.set_reachable(now_ns, (0..).map(TargetId).zip(self.ends.iter()).map(look));
    }

    /// Whether any view has changed since the last call; trials are set in the atomics before any request may pick
    /// the target.
    fn has_changed(
        &mut self,
        now_ns: u64,
        errors: &ErrorLog,
        events: &mut Events,
        hears: &Callbacks,
    ) -> bool {
        let version = Some(self.health.version());
        if self.told.version == version {
            return false;
        }
        self.told.version = version;
        let mut reasons = BTreeMap::new();
        let transitions: Vec<Transition> = self.health.take_transitions().collect();
        for one in transitions {
            gather::changed(&self.counts, &self.health, &one, now_ns);
            if one.reason.is_ejection() {
                (hears.failed)(self.node, one.target);
            }
            if one.was_eligible != one.is_eligible {
                reasons.insert(one.target, one.reason);
            }
        }
        self.note_changes(now_ns, &reasons, errors, events);
        if self.told.half_open.is_empty() {
            gather::settle(&self.counts, &self.health, now_ns, "checks_failed");
        }
        self.told.half_open.resize(self.health.len() as usize, false);
        for (target, known) in (0..).map(TargetId).zip(&mut self.told.half_open) {
            let half_open = self.health.is_half_open(target);
            if std::mem::replace(known, half_open) != half_open {
                self.flags.set_half_open(target, half_open);
            }
        }
        true
    }

    /// Whether a pick would find a target here, or a node takes its place that does. `inside`: those behind it.
    fn finds(&self, graph: &Graph, inside: &BTreeMap<NodeId, bool>) -> bool {
        let ends_of = |target: TargetId| self.ends.get(target.index());
        let mut ends = self.health.pickable().filter_map(ends_of);
        ends.any(|ends| finds(ends, graph, inside)) || self.spare_finds(graph, inside)
    }

    fn spare_finds(&self, graph: &Graph, inside: &BTreeMap<NodeId, bool>) -> bool {
        let plan = &graph.blueprint;
        let Spec::Lb(Lb { spare: Some(spare), .. }) = plan.spec(self.node) else { return false };
        finds(&Ends::behind(&plan.point, &plan.serving, false, *spare), graph, inside)
    }

    /// Whether a balancer in front may send a request here.
    fn is_alive(&self) -> bool {
        self.has_spare || self.health.has_anyone()
    }
}

/// Whether one of these ends takes a request. `inside`: whether each balancer would find a target.
fn finds(ends: &Ends, graph: &Graph, inside: &BTreeMap<NodeId, bool>) -> bool {
    let takes = |end: &End| match end {
        End::Lb(id) => inside.get(id).copied().unwrap_or(true),
        other => is_up(*other, graph, &[]),
    };
    ends.has_fixed || ends.all.iter().any(takes)
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
