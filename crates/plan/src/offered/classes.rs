//! The requests of a scenario in classes: those of a class take the same branch at every `route`. Where requests are
//! rewritten each of their kinds, rewritten or not, is a separate class.

use crate::reach::Reach;
use crate::rewriting::Kinds;
use crate::{Point, RequestShape, RouteCondition, Scenario, Spec};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Numbers kept for all nodes of a scenario and its classes, at most; with more the loads are unknown.
const MOST_NUMBERS: usize = 1 << 25;

/// The common properties of the requests of a class.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RequestClass {
    /// Their kind where kinds are distinguished, else 0.
    kind: usize,
    /// The branch at each route.
    branches: Vec<Option<usize>>,
}

/// The classes of a scenario's requests.
pub(super) struct Classes {
    /// The share of each among the requests that come in.
    pub(super) shares: Vec<f64>,
    /// The kinds of each, as indices in [`Kinds::shapes`].
    pub(super) members: Vec<Vec<usize>>,
    pub(super) kinds: Kinds,
    /// The branches of each class by the spec of a `route`, as indexes in its list; `None`: not a route.
    branches: HashMap<u32, Vec<Option<usize>>>,
}

impl Classes {
    /// The classes; `None` where there are too many to keep count of.
    pub(super) fn new(point: &Point, scenario: &Scenario, reach: &Reach) -> Option<Classes> {
        let nodes = reach.ids().iter().filter_map(|id| point.nodes.get(*id as usize));
        let specs: BTreeSet<u32> = nodes.map(|node| node.spec).collect();
        let routes: Vec<(u32, &[RouteCondition], bool)> = specs
            .into_iter()
            .filter_map(|i| match point.specs.get(i as usize) {
                Some(Spec::Route { rules, otherwise }) => Some((i, rules.as_slice(), *otherwise)),
                _ => None,
            })
            .collect();
        let kinds = Kinds::new(point, scenario)?;
        if routes.is_empty() && !kinds.are_rewritten() {
            let members = vec![(0..scenario.mix.len().max(1)).collect()];
            return Some(Classes { shares: vec![1.0], members, kinds, branches: HashMap::new() });
        }
        let shares = scenario.shares();
        let share = |i: usize| shares.get(i).map_or(0.0, |(share, _)| *share);
        let mut classes: BTreeMap<RequestClass, (f64, Vec<usize>)> = BTreeMap::new();
        for (i, shape) in kinds.shapes.iter().enumerate() {
            let branches =
                routes.iter().map(|(_, rules, otherwise)| branch(rules, *otherwise, shape)).collect();
            let kind = if kinds.are_rewritten() { i } else { 0 };
            let class = classes.entry(RequestClass { kind, branches }).or_default();
            class.0 += share(i);
            class.1.push(i);
        }
        if classes.len().saturating_mul(reach.ids().len()) > MOST_NUMBERS {
            return None;
        }
        let of_route =
            |r: usize| classes.keys().map(|class| class.branches.get(r).copied().flatten()).collect();
        let branches = routes.iter().enumerate().map(|(r, (spec, ..))| (*spec, of_route(r))).collect();
        let (shares, members) = classes.into_values().unzip();
        Some(Classes { shares, members, kinds, branches })
    }

    /// The index of the branch that a `route` with this spec takes for requests of this class.
    pub(super) fn branch(&self, spec: u32, class: usize) -> Option<usize> {
        self.branches.get(&spec)?.get(class).copied().flatten()
    }

    /// The class that requests of a class belong to behind a `rewrite` with this spec.
    pub(super) fn behind(&self, spec: u32, class: usize) -> usize {
        // Where anything is rewritten classes are kinds.
        self.kinds.behind(spec, class as u32) as usize
    }
}

/// The index of the branch that a `route` takes for such a request.
fn branch(rules: &[RouteCondition], otherwise: bool, shape: &RequestShape) -> Option<usize> {
    let asked = shape.asked();
    rules.iter().position(|r| r.matches(&asked)).or(otherwise.then_some(rules.len()))
}
