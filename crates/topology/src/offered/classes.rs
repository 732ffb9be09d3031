//! The requests of a scenario in classes: those of a class take the same branch at every `route`.

use crate::plan::{Point, RequestShape, Scenario, Spec, When};
use std::collections::{BTreeMap, HashMap};

/// Numbers kept for all nodes and classes, at most; with more the loads are unknown.
const MOST_NUMBERS: usize = 1 << 25;

/// The classes of a scenario's requests.
pub(super) struct Classes {
    /// The share of each among all requests.
    pub(super) shares: Vec<f64>,
    /// The requests of each, as indices of the scenario's shares.
    pub(super) members: Vec<Vec<usize>>,
    /// By the spec of a `route`: the index in its list that each class takes; `None`: no route.
    branches: HashMap<u32, Vec<Option<usize>>>,
}

impl Classes {
    /// The classes; `None` where there are too many to keep count of.
    pub(super) fn of(point: &Point, scenario: &Scenario) -> Option<Classes> {
        let routes: Vec<(u32, &[When], bool)> = (0u32..)
            .zip(&point.specs)
            .filter_map(|(i, spec)| match spec {
                Spec::Route { rules, otherwise } => Some((i, rules.as_slice(), *otherwise)),
                _ => None,
            })
            .collect();
        if routes.is_empty() {
            let members = vec![(0..scenario.mix.len().max(1)).collect()];
            return Some(Classes { shares: vec![1.0], members, branches: HashMap::new() });
        }
        let mut classes: BTreeMap<Vec<Option<usize>>, (f64, Vec<usize>)> = BTreeMap::new();
        for (i, (share, shape)) in scenario.shares().into_iter().enumerate() {
            let taken =
                routes.iter().map(|(_, rules, otherwise)| branch(rules, *otherwise, &shape)).collect();
            let class = classes.entry(taken).or_default();
            class.0 += share;
            class.1.push(i);
        }
        if classes.len().saturating_mul(point.nodes.len()) > MOST_NUMBERS {
            return None;
        }
        let of_route = |r: usize| classes.keys().map(|taken| taken.get(r).copied().flatten()).collect();
        let branches = routes.iter().enumerate().map(|(r, (spec, ..))| (*spec, of_route(r))).collect();
        let (shares, members) = classes.into_values().unzip();
        Some(Classes { shares, members, branches })
    }

    /// Which of its list a `route` with this spec takes for requests of this class.
    pub(super) fn branch(&self, spec: u32, class: usize) -> Option<usize> {
        self.branches.get(&spec)?.get(class).copied().flatten()
    }
}

/// Which of its list a `route` takes for such a request.
fn branch(rules: &[When], otherwise: bool, shape: &RequestShape) -> Option<usize> {
    let asked = shape.asked();
    rules.iter().position(|r| r.matches(&asked)).or(otherwise.then_some(rules.len()))
}
