//! How much a simulation will have to do: requests, and nodes that each of them visits.

use crate::reach::Reach;
use crate::{Edge, NodeId, Point, Scenario, Spec};
use std::collections::HashMap;
use weir_model::Traffic;

/// The effort of one replication of a scenario, estimated beforehand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Requests that are sent.
    pub requests: f64,
    /// Nodes that one visits on the longest way, if no attempt fails.
    pub visits: f64,
    /// The same if every attempt fails: attempts inside attempts multiply.
    pub most_visits: f64,
}

/// The effort of a scenario; `None` where it is not known how many requests it sends.
pub fn effort(point: &Point, scenario: &Scenario) -> Option<Effort> {
    // The root comes after all that it leads to.
    let (visits, most_visits) = visits(point, scenario.root).pop()?;
    Some(Effort { requests: requests(scenario)?, visits, most_visits })
}

/// How many requests one replication sends.
fn requests(scenario: &Scenario) -> Option<f64> {
    let by_number = scenario.requests.map(|n| n as f64);
    let seconds = scenario.duration_ns.map(|ns| ns as f64 / 1e9);
    let by_time = match &scenario.traffic {
        Traffic::Trace { arrivals_ns, .. } => Some(arrivals_ns.len() as f64),
        Traffic::Closed { users, think } => {
            let turn_s = think.mean_ns().filter(|ns| *ns > 0.0).map(|ns| ns / 1e9);
            turn_s.zip(seconds).map(|(turn_s, s)| f64::from(*users) * s / turn_s)
        }
        traffic => traffic.rate_per_s().zip(seconds).map(|(rate, s)| rate * s),
    };
    match (by_number, by_time) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The least and greatest number of nodes that a request visits from each node on that the root leads to.
fn visits(point: &Point, root: NodeId) -> Vec<(f64, f64)> {
    let reach = Reach::new(point, root);
    let mut all: Vec<(f64, f64)> = Vec::with_capacity(reach.ids().len());
    // For a list: the longest path of one of its nodes, and the sum of all.
    let mut lists: HashMap<u32, [(f64, f64); 2]> = HashMap::new();
    let longer = |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), a.1.max(b.1));
    let together = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
    // A node comes after all that it leads to.
    for node in reach.ids().iter().filter_map(|id| point.nodes.get(*id as usize)) {
        let spec = point.specs.get(node.spec as usize);
        let of = |id: u32| reach.index(id).and_then(|at| all.get(at)).copied().unwrap_or_default();
        let behind = match node.to {
            Edge::None => spec.and_then(Spec::aside).map(of).unwrap_or_default(),
            Edge::Node(next) => of(next),
            Edge::List(list) => {
                let [longest, sum] = *lists.entry(list).or_insert_with(|| {
                    let nodes = point.lists.get(list as usize).map_or(&[][..], Vec::as_slice);
                    let each = nodes.iter().map(|id| of(*id));
                    [each.clone().fold((0.0, 0.0), longer), each.fold((0.0, 0.0), together)]
                });
                if matches!(spec, Some(Spec::Sequence | Spec::Fanout { .. })) { sum } else { longest }
            }
        };
        let attempts = match spec {
            Some(Spec::Retry(retry)) => f64::from(retry.attempts),
            Some(Spec::Hedge(hedged)) => f64::from(hedged.hedge.attempts),
            _ => 1.0,
        };
        all.push((1.0 + behind.0, 1.0 + attempts * behind.1));
    }
    all
}
