//! Arrivals per second at each node, from the root on, for each class of requests.

use super::classes::Classes;
use crate::reach::Reach;
use crate::{Edge, Node, NodeId, Point, RequestShape, Scenario, Spec};
use std::collections::HashMap;
use weir_model::{OnCancel, Traffic};
use weir_policy::config::Balance;

/// A balancer that looks at load is on the way to a node.
pub(super) const STEERED: u8 = 1;
/// A node that lets through an unknown share, or cuts off an unknown part of the work, is on the path to it.
pub(super) const UNKNOWN: u8 = 2;
/// There is a way to it on which nothing ends a request's time.
const UNTIMED: u8 = 4;
/// There is a way to it on which any number of requests may be.
const UNCAPPED: u8 = 8;

/// The rate at which requests reach a list of nodes, by class; empty: none.
#[derive(Clone, Default)]
struct Flow {
    /// Requests per second that balancers split by weight.
    split: Vec<f64>,
    /// Requests per second that come to the first (`lb.first`).
    first: Vec<f64>,
    /// Requests per second that come to each of the nodes (`sequence`, `fanout`).
    each: Vec<f64>,
    /// Marks of the first two.
    picked_marks: u8,
    /// Marks of the third.
    each_marks: u8,
}

/// The rates at all nodes of one scenario.
pub(crate) struct Walk<'a> {
    point: &'a Point,
    /// Whether spares get requests as well: then only whether a node is reached at all matters.
    everywhere: bool,
    classes: Classes,
    /// The nodes that the scenario reaches.
    reach: Reach,
    /// Arrivals per second, class by class for each of these nodes.
    rates: Vec<f64>,
    /// The properties of the path to each of them.
    marks: Vec<u8>,
}

impl<'a> Walk<'a> {
    /// The rates of a scenario; `None` where there are too many classes of requests, or no root.
    pub(super) fn offered(point: &'a Point, scenario: &Scenario, per_s: f64) -> Option<Walk<'a>> {
        Walk::new(point, scenario, per_s, false)
    }

    /// Which nodes are reached by which classes, at any rate, once targets fail.
    pub(crate) fn reaching(point: &'a Point, scenario: &Scenario) -> Option<Walk<'a>> {
        Walk::new(point, scenario, 1.0, true)
    }

    fn new(point: &'a Point, scenario: &Scenario, per_s: f64, everywhere: bool) -> Option<Walk<'a>> {
        let reach = Reach::new(point, scenario.root);
        let classes = Classes::new(point, scenario, &reach)?;
        let (n, k) = (reach.ids().len(), classes.shares.len());
        let mut walk = Walk { point, everywhere, reach, rates: vec![0.0; n * k], marks: vec![0; n], classes };
        let closed = matches!(scenario.traffic, Traffic::Closed { .. });
        let marks =
            if closed { 0 } else { UNCAPPED } | if scenario.patience_ns.is_some() { 0 } else { UNTIMED };
        let rates: Vec<f64> = walk.classes.shares.iter().map(|share| per_s * share).collect();
        walk.reach.index(scenario.root)?;
        walk.add(scenario.root, &rates, 1.0, marks);
        walk.spread();
        Some(walk)
    }

    /// The nodes that the scenario reaches, each after all that it leads to.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, &'a Node)> {
        self.reach.ids().iter().filter_map(|id| Some((*id, self.point.nodes.get(*id as usize)?)))
    }

    /// Arrivals per second at a node, all classes together.
    pub(super) fn rate(&self, id: NodeId) -> f64 {
        self.rates_of(id).iter().sum()
    }

    fn rates_of(&self, id: NodeId) -> &[f64] {
        let k = self.classes.shares.len();
        self.reach.index(id).map_or(&[], |at| &self.rates[at * k..(at + 1) * k])
    }

    /// The properties of the path to a node.
    pub(super) fn marks(&self, id: NodeId) -> u8 {
        self.reach.index(id).map_or(0, |at| self.marks[at])
    }

    fn spec(&self, id: NodeId) -> Option<&'a Spec> {
        let node = self.point.nodes.get(id as usize)?;
        self.point.specs.get(node.spec as usize)
    }

    fn weight(&self, id: NodeId) -> f64 {
        match self.spec(id) {
            Some(Spec::Weight { weight }) => *weight,
            _ => 1.0,
        }
    }

    /// Adds to the rate that reaches a node.
    fn add(&mut self, id: NodeId, rates: &[f64], share: f64, marks: u8) {
        if share <= 0.0 || rates.iter().all(|r| *r <= 0.0) {
            return;
        }
        let Some(at) = self.reach.index(id) else { return };
        let from = at * self.classes.shares.len();
        self.rates[from..].iter_mut().zip(rates).for_each(|(to, rate)| *to += rate * share);
        self.marks[at] |= marks;
    }

    /// Arrivals from the root on. A node comes after all that it leads to, so backwards every rate is final in time.
    /// Balancers over one list are added up first: a list of a quarter of a million is walked once, not per router.
    fn spread(&mut self) {
        let point = self.point;
        let mut lists: HashMap<u32, Flow> = HashMap::new();
        // The highest target of each list: once all nodes above it are done, the list's rate is final.
        let mut ending: HashMap<NodeId, Vec<u32>> = HashMap::new();
        for list in self.reach.lists() {
            if let Some(highest) = point.lists.get(*list as usize).and_then(|nodes| nodes.iter().max()) {
                ending.entry(*highest).or_default().push(*list);
            }
        }
        for at in (0..self.reach.ids().len()).rev() {
            let id = self.reach.ids()[at];
            for list in ending.remove(&id).unwrap_or_default() {
                let flow = lists.remove(&list).unwrap_or_default();
                self.share(&point.lists[list as usize], &flow);
            }
            let rates = self.rates_of(id).to_vec();
            if rates.iter().all(|r| *r <= 0.0) {
                continue;
            }
            match (point.nodes[id as usize].to, self.spec(id)) {
                (Edge::None, Some(Spec::Server { model: Some(model), .. })) => {
                    self.add(*model, &rates, 1.0, self.marks(id));
                }
                (Edge::None, _) => {}
                (Edge::Node(next), _) => {
                    let rates = self.rewritten(id, rates);
                    let (passing, more) = self.passing(id);
                    self.add(next, &rates, passing, self.marks_behind(id) | more);
                }
                (Edge::List(list), _) => self.fan(id, list, &rates, lists.entry(list).or_default()),
            }
        }
    }

    /// The rate that leaves a node, by class: a `rewrite` turns requests into ones of other classes.
    fn rewritten(&self, id: NodeId, rates: Vec<f64>) -> Vec<f64> {
        let spec = self.point.nodes[id as usize].spec;
        if !matches!(self.spec(id), Some(Spec::Rewrite(_))) {
            return rates;
        }
        let mut out = vec![0.0; rates.len()];
        for (class, rate) in rates.into_iter().enumerate().filter(|(_, rate)| *rate > 0.0) {
            if let Some(to) = out.get_mut(self.classes.behind(spec, class)) {
                *to += rate;
            }
        }
        out
    }

    /// The share of requests that a node with one node behind it passes on, and the flags to set.
    fn passing(&self, id: NodeId) -> (f64, u8) {
        let total = self.rate(id);
        match self.spec(id) {
            Some(Spec::Rate { rate, .. }) if total <= rate.per_s => (1.0, 0),
            Some(Spec::Rate { rate, key: None }) => (rate.per_s / total, 0),
            Some(Spec::Rate { .. }) => (1.0, UNKNOWN),
            _ => (1.0, 0),
        }
    }

    /// Whether something keeps the line of requests at a queue or at a server that shares its cores from growing
    /// without end: its own bounds, or what caps or cuts off requests around it.
    pub(crate) fn is_bounded(&self, id: NodeId) -> bool {
        let marks = self.marks(id);
        let (capped, timed) = (marks & UNCAPPED == 0, marks & UNTIMED == 0);
        match self.spec(id) {
            Some(Spec::Queue { capacity, timeout_ns, on_cancel, .. }) => {
                capped
                    || capacity.is_some()
                    || timeout_ns.is_some()
                    || timed && *on_cancel != OnCancel::Finish
            }
            // Requests inside continue unless they are stopped, and without threads all are inside.
            Some(Spec::Concurrent { threads, on_cancel, .. }) => {
                let leaves = match on_cancel {
                    OnCancel::Stop => true,
                    OnCancel::Skip => threads.is_some(),
                    OnCancel::Finish => false,
                };
                capped || timed && leaves
            }
            _ => capped,
        }
    }

    /// The marks of a node, and what it changes of them for what is behind it.
    fn marks_behind(&self, id: NodeId) -> u8 {
        let marks = self.marks(id);
        match self.spec(id) {
            Some(Spec::Timeout { time_ns: Some(_) }) => marks & !UNTIMED,
            Some(Spec::Queue { on_cancel, .. }) => {
                // The number inside is limited, so the excess waits in its line.
                let marks = if self.is_bounded(id) { marks & !UNCAPPED } else { marks };
                if *on_cancel == OnCancel::Stop { marks } else { marks | UNTIMED }
            }
            Some(Spec::Lb(lb)) if lb.max_in_flight.is_some() => {
                let bounded =
                    lb.max_waiting.is_some() || lb.wait_timeout_ns.is_some() || marks & UNTIMED == 0;
                if bounded { marks & !UNCAPPED } else { marks }
            }
            _ => marks,
        }
    }

    /// Passes the rate that reaches a node to its list.
    fn fan(&mut self, id: NodeId, list: u32, rates: &[f64], flow: &mut Flow) {
        let point = self.point;
        let nodes = &point.lists[list as usize];
        let marks = self.marks_behind(id);
        match self.spec(id) {
            Some(Spec::Lb(lb)) => {
                let first = lb.balance == Balance::First && !self.everywhere;
                if let Some(spare) = lb.spare.filter(|_| self.everywhere) {
                    self.add(spare, rates, 1.0, marks);
                }
                sum(if first { &mut flow.first } else { &mut flow.split }, rates);
                flow.picked_marks |= marks | if lb.balance.traits().counts { STEERED } else { 0 };
            }
            Some(Spec::Split { weights, .. }) => {
                let total: f64 = weights.iter().sum();
                for (node, weight) in nodes.iter().zip(weights) {
                    self.add(*node, rates, weight / total, marks);
                }
            }
            Some(Spec::Route { .. }) => {
                for (class, rate) in rates.iter().enumerate() {
                    let Some(node) = self.branch(id, class).and_then(|b| nodes.get(b)) else { continue };
                    let mut one = vec![0.0; rates.len()];
                    one[class] = *rate;
                    self.add(*node, &one, 1.0, marks);
                }
            }
            spec => {
                // What the others of a fan-out do is cut off once enough have answered.
                let is_cut = matches!(spec, Some(Spec::Fanout { need }) if (*need as usize) < nodes.len());
                sum(&mut flow.each, rates);
                flow.each_marks |= marks | if is_cut { UNKNOWN } else { 0 };
            }
        }
    }

    /// The index of the branch that a `route` takes for a class.
    fn branch(&self, id: NodeId, class: usize) -> Option<usize> {
        self.classes.branch(self.point.nodes[id as usize].spec, class)
    }

    /// Which requests come to a node, as they look there.
    pub(crate) fn members(&self, id: NodeId) -> impl Iterator<Item = &RequestShape> {
        let members = self.coming(id).into_iter().filter_map(|c| self.classes.members.get(c)).flatten();
        members.filter_map(|i| self.classes.kinds.shapes.get(*i))
    }

    /// Which classes come to a node.
    pub(crate) fn coming(&self, id: NodeId) -> Vec<usize> {
        let rates = self.rates_of(id).iter().enumerate();
        rates.filter(|(_, rate)| **rate > 0.0).map(|(class, _)| class).collect()
    }

    /// Whether a `route` has a branch for any class that reaches it.
    pub(crate) fn matches_any(&self, id: NodeId) -> bool {
        self.coming(id).into_iter().any(|class| self.branch(id, class).is_some())
    }

    /// Divides the rate that reaches a list among its nodes.
    fn share(&mut self, targets: &[NodeId], flow: &Flow) {
        if flow.split.is_empty() && flow.first.is_empty() && flow.each.is_empty() {
            return;
        }
        let total: f64 = targets.iter().map(|t| self.weight(*t)).sum();
        let first = targets.iter().find(|t| self.weight(**t) > 0.0);
        for target in targets {
            let part = if total > 0.0 { self.weight(*target) / total } else { 0.0 };
            self.add(*target, &flow.each, 1.0, flow.each_marks);
            self.add(*target, &flow.split, part, flow.picked_marks);
        }
        if let Some(first) = first {
            self.add(*first, &flow.first, 1.0, flow.picked_marks);
        }
    }

    /// The mean time that a request spends at each node and behind it, without waiting, s; infinite where a mean is.
    pub(super) fn holds_s(&self) -> Holds<'_> {
        let mut holds = Holds { reach: &self.reach, times: Vec::with_capacity(self.reach.ids().len()) };
        let mut of_list: HashMap<(u32, u32), f64> = HashMap::new();
        // A node comes after all that it leads to, so forwards everything behind it is known.
        for (id, node) in self.nodes() {
            let spec = self.point.specs.get(node.spec as usize);
            let (own_ns, model) = match spec {
                Some(Spec::Delay { time }) => (time.mean_ns().unwrap_or(f64::INFINITY), None),
                Some(Spec::Cable { time, .. }) => (2.0 * time.mean_ns().unwrap_or(f64::INFINITY), None),
                Some(Spec::Server { model, .. }) => (0.0, *model),
                // A request alone inside progresses at the rate of one core, or of a part of one.
                Some(Spec::Concurrent { work, cores, .. }) => {
                    (work.mean_ns().unwrap_or(f64::INFINITY) / cores.min(1.0), None)
                }
                _ => (0.0, None),
            };
            let behind = match (node.to, model) {
                (Edge::Node(next), _) | (Edge::None, Some(next)) => {
                    // Rejected requests take no time (and 0 times an infinite mean is not a number).
                    let (passing, _) = self.passing(id);
                    if passing > 0.0 { holds.get(next) * passing } else { 0.0 }
                }
                (Edge::None, None) => 0.0,
                (Edge::List(list), _) if matches!(spec, Some(Spec::Route { .. })) => {
                    self.route_s(id, list, &holds)
                }
                (Edge::List(list), _) => {
                    *of_list.entry((list, node.spec)).or_insert_with(|| self.list_s(list, node.spec, &holds))
                }
            };
            holds.times.push(own_ns / 1e9 + behind);
        }
        holds
    }

    /// The mean over the classes that reach a `route`.
    fn route_s(&self, id: NodeId, list: u32, holds: &Holds<'_>) -> f64 {
        let Some(nodes) = self.point.lists.get(list as usize) else { return 0.0 };
        let taken = self.rates_of(id).iter().enumerate().map(|(class, rate)| {
            let node = self.branch(id, class).and_then(|b| nodes.get(b));
            (*rate, node.map_or(0.0, |n| holds.get(*n)))
        });
        mean(taken)
    }

    fn list_s(&self, list: u32, spec: u32, holds: &Holds<'_>) -> f64 {
        let Some(targets) = self.point.lists.get(list as usize) else { return 0.0 };
        let each = targets.iter().map(|t| holds.get(*t));
        let weights = targets.iter().map(|t| self.weight(*t));
        match self.point.specs.get(spec as usize) {
            Some(Spec::Sequence) => each.sum(),
            Some(Spec::Fanout { need }) => {
                // The means in order: a lower bound of the mean time until enough have answered.
                let mut each: Vec<f64> = each.collect();
                each.sort_by(f64::total_cmp);
                each.get((*need as usize).saturating_sub(1)).copied().unwrap_or(0.0)
            }
            Some(Spec::Split { weights, .. }) => mean(weights.iter().copied().zip(each)),
            Some(Spec::Lb(lb)) if lb.balance == Balance::First => {
                mean(weights.zip(each).filter(|(w, _)| *w > 0.0).take(1))
            }
            _ => mean(weights.zip(each)),
        }
    }
}

/// The mean time that a request spends at each node and behind it, s.
pub(super) struct Holds<'w> {
    reach: &'w Reach,
    /// Of the nodes in their order, as far as it is known.
    times: Vec<f64>,
}

impl Holds<'_> {
    /// That of a node; 0 where it is not known.
    pub(super) fn get(&self, id: NodeId) -> f64 {
        self.reach.index(id).and_then(|at| self.times.get(at)).copied().unwrap_or(0.0)
    }
}

/// The mean of values by weight; 0 where there is nothing.
fn mean(weighed: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (total, sum) =
        weighed.filter(|(w, _)| *w > 0.0).fold((0.0, 0.0), |(t, s), (w, h)| (t + w, s + w * h));
    if total > 0.0 { sum / total } else { 0.0 }
}

/// Adds rates to rates.
fn sum(to: &mut Vec<f64>, rates: &[f64]) {
    to.resize(rates.len(), 0.0);
    to.iter_mut().zip(rates).for_each(|(to, rate)| *to += rate);
}
