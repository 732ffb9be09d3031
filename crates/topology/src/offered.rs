//! Offered load: how busy each queue and each `concurrent` would be, computed from arrivals, weights and means without
//! running anything.

use crate::plan::{Point, Spec, To};
use walk::{STEERED, UNKNOWN};

mod classes;
mod walk;

pub(crate) use walk::Walk;

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
/// balancer is taken to split by weight (`lb.first`: all to the first), each node of a `sequence` or `fanout` to get every
/// request, a `route` what matches of the mix, and a rate limit to pass what it lets through; faults, retries, hedges,
/// timeouts and warm-ups are taken not to happen. What is unknown is left out: arrivals, an infinite mean, what a rate
/// limit by key lets through.
pub fn offered_load(point: &Point, scenario: usize) -> Vec<SiteLoad> {
    let Some(scenario) = point.scenarios.get(scenario) else { return Vec::new() };
    let Some(rate) = scenario.traffic.rate_per_s() else { return Vec::new() };
    let Some(walk) = Walk::of(point, scenario, rate) else { return Vec::new() };
    let holds = walk.holds_s();
    let mut sites: Vec<Option<SiteLoad>> = vec![None; point.sites.len()];
    for id in 0..point.nodes.len() {
        let node = &point.nodes[id];
        let rate = walk.rate(id);
        if rate <= 0.0 || walk.marks[id] & UNKNOWN != 0 {
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
            load.steered |= walk.marks[id] & STEERED != 0;
        }
    }
    sites.into_iter().flatten().collect()
}
