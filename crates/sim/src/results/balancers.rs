//! The nodes of balancers.

use crate::code::{Code, Instance};
use std::collections::BTreeMap;
use weir_plan::{NodeId, Point, Scenario, Spec};
use weir_workload::{numbers, reachable};

/// The node of each balancer, by the number of its instance.
pub(super) fn balancers(point: &Point, scenario: &Scenario, code: &Code) -> Vec<NodeId> {
    let met = reachable(point, &[scenario.root]);
    let numbers = numbers(point, &met);
    let known: BTreeMap<(u32, u32), NodeId> = (0..)
        .zip(&point.nodes)
        .filter(|(id, _)| met[*id as usize] && matches!(point.spec(*id), Some(Spec::Lb(_))))
        .map(|(id, node)| ((point.sites[node.site as usize].place, numbers[id as usize]), id))
        .collect();
    let node = |of: &Instance| known.get(&(of.place, of.number)).copied();
    code.instances.iter().map(|of| node(of).unwrap_or(NodeId::MAX)).collect()
}
