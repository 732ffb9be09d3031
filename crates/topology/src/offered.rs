//! Offered load: how busy each queue and each `concurrent` would be, computed from arrivals, weights and means without
//! running anything.

use crate::plan::{NodeId, Point, Spec, To};
use std::collections::HashMap;

/// The load of the queues (or servers that share their cores) of a site in one scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteLoad {
    /// Index in [`Point::sites`].
    pub site: u32,
    /// How many queues of the site the scenario reaches.
    pub count: u64,
    /// Arrivals over capacity of the busiest of them, as a share: 1 is full.
    pub utilisation: f64,
    /// Arrivals at all of them together, per second.
    pub rate_per_s: f64,
    /// Whether they turn requests away rather than let any number wait.
    pub bounded: bool,
    /// Whether a balancer that looks at load splits the arrivals: then the split by weight is only where it begins.
    pub steered: bool,
}

/// The offered load of every site of queues or `concurrent` that the scenario reaches, in the order of the sites. Each
/// balancer is taken to split by weight, each node of a `sequence` or `fanout` to get every request; faults, retries,
/// timeouts and warm-ups are taken not to happen. Empty where arrivals or means are unknown (an infinite mean).
pub fn offered_load(point: &Point, scenario: usize) -> Vec<SiteLoad> {
    let Some(scenario) = point.scenarios.get(scenario) else { return Vec::new() };
    let Some(rate) = scenario.traffic.rate_per_s() else { return Vec::new() };
    let n = point.nodes.len();
    let mut walk = Walk { point, rates: vec![0.0; n], steered: vec![false; n] };
    let Some(root) = walk.rates.get_mut(scenario.root as usize) else { return Vec::new() };
    *root = rate;
    walk.spread(scenario.root);
    let holds = walk.holds_s();
    let mut sites: Vec<Option<SiteLoad>> = vec![None; point.sites.len()];
    for id in 0..point.nodes.len() {
        let node = &point.nodes[id];
        let rate = walk.rates[id];
        if rate <= 0.0 {
            continue;
        }
        let (hold_s, places, bounded) = match (point.specs.get(node.spec as usize), node.to) {
            (Some(Spec::Queue { concurrency, capacity, timeout_ns, .. }), To::Node(inner)) => {
                let Some(hold_s) = holds.get(inner as usize) else { continue };
                (*hold_s, f64::from(*concurrency), capacity.is_some() || timeout_ns.is_some())
            }
            (Some(Spec::Concurrent { work, cores, .. }), _) => {
                let Some(mean_ns) = work.mean_ns() else { continue };
                (mean_ns / 1e9, *cores, false)
            }
            _ => continue,
        };
        if !hold_s.is_finite() {
            continue;
        }
        let utilisation = rate * hold_s / places;
        let load = SiteLoad {
            site: node.site,
            count: 0,
            utilisation: 0.0,
            rate_per_s: 0.0,
            bounded: false,
            steered: false,
        };
        if let Some(slot) = sites.get_mut(node.site as usize) {
            let load = slot.get_or_insert(load);
            load.count += 1;
            load.rate_per_s += rate;
            load.utilisation = load.utilisation.max(utilisation);
            load.bounded |= bounded;
            load.steered |= walk.steered[id];
        }
    }
    sites.into_iter().flatten().collect()
}

/// What comes to a list of nodes.
#[derive(Clone, Copy, Default)]
struct Flow {
    /// Requests per second that balancers split by weight.
    split: f64,
    /// Whether one of these, or one before them, looks at load.
    split_steered: bool,
    /// Requests per second that come to each of the nodes (`sequence`, `fanout`).
    each: f64,
    /// Whether a balancer before these looks at load.
    each_steered: bool,
}

struct Walk<'a> {
    point: &'a Point,
    /// Arrivals per second at each node.
    rates: Vec<f64>,
    /// Whether a balancer that looks at load is on the way to each node.
    steered: Vec<bool>,
}

impl Walk<'_> {
    fn spec(&self, id: NodeId) -> Option<&Spec> {
        let node = self.point.nodes.get(id as usize)?;
        self.point.specs.get(node.spec as usize)
    }

    fn weight(&self, id: NodeId) -> f64 {
        match self.spec(id) {
            Some(Spec::Weight { weight }) => *weight,
            _ => 1.0,
        }
    }

    /// Arrivals from the root on. A node comes after all that it leads to, so backwards every rate is final in time.
    /// Balancers over one list are added up first: a list of a quarter of a million is walked once, not per router.
    fn spread(&mut self, root: NodeId) {
        let mut lists: Vec<Flow> = vec![Flow::default(); self.point.lists.len()];
        // The highest target of each list: once all nodes above it are done, the list's rate is final.
        let mut ending: HashMap<NodeId, Vec<u32>> = HashMap::new();
        for (i, list) in self.point.lists.iter().enumerate() {
            if let (Some(highest), Ok(i)) = (list.iter().max(), u32::try_from(i)) {
                ending.entry(*highest).or_default().push(i);
            }
        }
        for id in (0..=root).rev() {
            for list in ending.remove(&id).unwrap_or_default() {
                self.share(list, lists[list as usize]);
            }
            let rate = self.rates[id as usize];
            if rate <= 0.0 {
                continue;
            }
            match self.point.nodes[id as usize].to {
                To::None => {}
                To::Node(next) => {
                    self.rates[next as usize] += rate;
                    self.steered[next as usize] |= self.steered[id as usize];
                }
                To::List(list) => {
                    let flow = &mut lists[list as usize];
                    match self.spec(id) {
                        Some(Spec::Lb(lb)) => {
                            flow.split += rate;
                            flow.split_steered |= lb.balance.counts_in_flight() || self.steered[id as usize];
                        }
                        _ => {
                            flow.each += rate;
                            flow.each_steered |= self.steered[id as usize];
                        }
                    }
                }
            }
        }
    }

    fn share(&mut self, list: u32, flow: Flow) {
        if flow.split <= 0.0 && flow.each <= 0.0 {
            return;
        }
        let point = self.point;
        let targets = &point.lists[list as usize];
        let total: f64 = targets.iter().map(|t| self.weight(*t)).sum();
        for target in targets {
            let part = if total > 0.0 { self.weight(*target) / total } else { 0.0 };
            self.rates[*target as usize] += flow.each + flow.split * part;
            self.steered[*target as usize] |=
                flow.each_steered || (flow.split_steered && flow.split > 0.0 && total > 0.0);
        }
    }

    /// The mean time that a request spends at each node and behind it, without waiting, s; infinite where a mean is.
    fn holds_s(&self) -> Vec<f64> {
        let mut holds: Vec<f64> = Vec::with_capacity(self.point.nodes.len());
        let mut of_list: HashMap<(u32, u32), f64> = HashMap::new();
        // A node comes after all that it leads to, so forwards everything behind it is known.
        for node in &self.point.nodes {
            let (own_ns, model) = match self.point.specs.get(node.spec as usize) {
                Some(Spec::Delay { time }) => (time.mean_ns().unwrap_or(f64::INFINITY), None),
                Some(Spec::Cable { time, .. }) => (2.0 * time.mean_ns().unwrap_or(f64::INFINITY), None),
                Some(Spec::Server { model, .. }) => (0.0, *model),
                // Alone inside, it progresses at the rate of one core, or of what there is of one.
                Some(Spec::Concurrent { work, cores, .. }) => {
                    (work.mean_ns().unwrap_or(f64::INFINITY) / cores.min(1.0), None)
                }
                _ => (0.0, None),
            };
            let behind = match (node.to, model) {
                (To::Node(next), _) | (To::None, Some(next)) => {
                    holds.get(next as usize).copied().unwrap_or(0.0)
                }
                (To::None, None) => 0.0,
                (To::List(list), _) => {
                    *of_list.entry((list, node.spec)).or_insert_with(|| self.list_s(list, node.spec, &holds))
                }
            };
            holds.push(own_ns / 1e9 + behind);
        }
        holds
    }

    fn list_s(&self, list: u32, spec: u32, holds: &[f64]) -> f64 {
        let Some(targets) = self.point.lists.get(list as usize) else { return 0.0 };
        let each = targets.iter().map(|t| holds.get(*t as usize).copied().unwrap_or(0.0));
        match self.point.specs.get(spec as usize) {
            Some(Spec::Sequence) => return each.sum(),
            Some(Spec::Fanout { need }) => {
                // The means in order: at least so long, on average, until enough have answered.
                let mut each: Vec<f64> = each.collect();
                each.sort_by(f64::total_cmp);
                return each.get((*need as usize).saturating_sub(1)).copied().unwrap_or(0.0);
            }
            _ => {}
        }
        let weighed =
            targets.iter().map(|t| (self.weight(*t), holds.get(*t as usize).copied().unwrap_or(0.0)));
        let (total, sum) =
            weighed.filter(|(w, _)| *w > 0.0).fold((0.0, 0.0), |(t, s), (w, h)| (t + w, s + w * h));
        if total > 0.0 { sum / total } else { 0.0 }
    }
}
