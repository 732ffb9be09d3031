//! Offered load: how busy each queue and each `concurrent` would be, computed from arrivals, weights and means without
//! running anything.

use crate::{Edge, Node, NodeId, Point, Scenario, Spec};
use std::collections::{BTreeMap, BTreeSet};
use walk::{STEERED, UNKNOWN};
use weir_model::concurrent::Law;

mod classes;
mod effort;
mod walk;

pub use effort::{Effort, effort};
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
    /// Their total capacity, per second.
    pub capacity_per_s: f64,
    /// Whether something keeps their lines from growing without end: they reject requests, or a node around them caps
    /// or cuts off what waits.
    pub bounded: bool,
    /// Whether a balancer that looks at load splits the arrivals: then the split by weight is only where it begins.
    pub steered: bool,
}

/// The offered load of every site of queues or `concurrent` that the scenario reaches, in the order of the sites. Each
/// balancer is taken to split by weight (`lb.first`: all to the first), each node of a `sequence` or `fanout` to get
/// every request, a `route` what matches of the mix, and a rate limit to pass what it lets through; faults, retries,
/// hedges, timeouts and warm-ups are taken not to happen. What is unknown is left out: arrivals, an infinite mean, what
/// a rate limit by key lets through.
///
/// A server that shares its cores can do what it can with the best number of requests inside; a server with a model is
/// offered what its model is.
pub fn offered_load(point: &Point, scenario: usize) -> Vec<SiteLoad> {
    let Some(scenario) = point.scenarios.get(scenario) else { return Vec::new() };
    let Some(rate) = scenario.traffic.rate_per_s() else { return Vec::new() };
    let Some(walk) = Walk::offered(point, scenario, rate) else { return Vec::new() };
    let holds = walk.holds_s();
    let mut sites: BTreeMap<u32, SiteLoad> = BTreeMap::new();
    for (id, node) in walk.nodes() {
        let (rate, marks) = (walk.rate(id), walk.marks(id));
        if rate <= 0.0 || marks & UNKNOWN != 0 {
            continue;
        }
        let (hold_s, places) = match (point.specs.get(node.spec as usize), node.to) {
            (Some(Spec::Queue { concurrency, .. }), Edge::Node(inner)) => {
                (holds.get(inner), f64::from(*concurrency))
            }
            (Some(Spec::Concurrent { work, cores, contention, coherency, threads, .. }), _) => {
                let Some(mean_ns) = work.mean_ns() else { continue };
                (mean_ns / 1e9, most_at_work(*cores, *contention, *coherency, *threads))
            }
            _ => continue,
        };
        if !hold_s.is_finite() {
            continue;
        }
        let load = sites.entry(node.site).or_insert(SiteLoad {
            site: node.site,
            count: 0,
            utilisation: 0.0,
            rate_per_s: 0.0,
            capacity_per_s: 0.0,
            bounded: true,
            steered: false,
        });
        load.count += 1;
        load.rate_per_s += rate;
        load.capacity_per_s += places / hold_s;
        load.utilisation = load.utilisation.max(rate * hold_s / places);
        load.bounded &= walk.is_bounded(id);
        load.steered |= marks & STEERED != 0;
    }
    sites.into_values().collect()
}

/// The sites of queues and shared servers whose lines nothing keeps from growing without end at some rate; `None` where
/// that is not known. In a closed loop there are never more requests than users.
pub fn unbounded_sites(point: &Point, scenario: &Scenario) -> Option<BTreeSet<u32>> {
    let walk = Walk::reaching(point, scenario)?;
    let is_unbounded = |(id, node): &(NodeId, &Node)| {
        let spec = point.specs.get(node.spec as usize);
        let queues = matches!(spec, Some(Spec::Queue { .. } | Spec::Concurrent { .. }));
        queues && walk.rate(*id) > 0.0 && !walk.is_bounded(*id)
    };
    Some(walk.nodes().filter(is_unbounded).map(|(_, node)| node.site).collect())
}

/// The speed of all together at a server that shares its cores, in cores, with the best number of requests inside: m of
/// them do min(m, cores) / (1 + contention·(m−1) + coherency·m·(m−1)).
fn most_at_work(cores: f64, contention: f64, coherency: f64, threads: Option<u32>) -> f64 {
    let law = Law::new(cores, contention, coherency, threads);
    let together = |m: f64| {
        let m = (m.max(1.0) as u32).min(threads.unwrap_or(u32::MAX)).max(1);
        f64::from(m) * law.rate(m)
    };
    // It rises up to the cores at most, and there up to where its slope is 0.
    let peak = if coherency > 0.0 { ((1.0 - contention).max(0.0) / coherency).sqrt() } else { cores };
    let peak = peak.min(cores);
    [peak.floor(), peak.ceil(), cores.floor(), cores.ceil(), 1.0]
        .into_iter()
        .map(together)
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::most_at_work;

    /// Against all numbers up to a thousand.
    #[test]
    fn the_best_number_inside_is_found() {
        for cores in [0.5, 1.0, 2.0, 2.5, 16.0] {
            for (contention, coherency) in [(0.0, 0.0), (0.2, 0.0), (0.0, 0.01), (0.05, 0.02), (1.5, 0.0)] {
                for threads in [None, Some(1), Some(3), Some(100)] {
                    let best = (1..=threads.unwrap_or(1000)).map(|m| {
                        let m = f64::from(m);
                        m.min(cores) / (1.0 + contention * (m - 1.0) + coherency * m * (m - 1.0))
                    });
                    let best = best.fold(0.0, f64::max);
                    let got = most_at_work(cores, contention, coherency, threads);
                    assert!(
                        (got - best).abs() < 1e-12,
                        "{cores} {contention} {coherency} {threads:?}: {got} {best}"
                    );
                }
            }
        }
    }
}
