//! The order of the listeners of a point: listeners behind others, and the only path to a server, or to a balancer.

use crate::{Edge, NodeId, Point, Spec};
use std::collections::{BTreeMap, BTreeSet};

/// The listeners of a point, in the order of the file.
pub fn listeners(point: &Point) -> Vec<NodeId> {
    let is_listener = |spec: u32| matches!(point.specs.get(spec as usize), Some(Spec::Listen(_)));
    (0..).zip(&point.nodes).filter(|(_, node)| is_listener(node.spec)).map(|(id, _)| id).collect()
}

/// How many listeners a request comes through before each one, on the way with the most; 0: it is outermost.
pub fn levels(point: &Point) -> BTreeMap<NodeId, u32> {
    let mut before: Vec<Option<u32>> = vec![None; point.nodes.len()];
    let mut lists: Vec<Option<u32>> = vec![None; point.lists.len()];
    // A node comes after all that it leads to: going backwards, what reached a node is complete when it is looked at.
    for (id, node) in point.nodes.iter().enumerate().rev() {
        let spec = &point.specs[node.spec as usize];
        let listens = matches!(spec, Spec::Listen(_));
        if listens {
            before[id] = before[id].max(Some(0));
        }
        let Some(level) = before[id] else { continue };
        let handed = Some(level + u32::from(listens));
        if let Spec::Lb(lb) = spec
            && let Some(spare) = lb.spare
        {
            before[spare as usize] = before[spare as usize].max(handed);
        }
        match node.to {
            Edge::None => {}
            Edge::Node(next) => before[next as usize] = before[next as usize].max(handed),
            // Routers over one long list: it is walked again only where something is new.
            Edge::List(list) if lists[list as usize] < handed => {
                lists[list as usize] = handed;
                for target in &point.lists[list as usize] {
                    before[*target as usize] = before[*target as usize].max(handed);
                }
            }
            Edge::List(_) => {}
        }
    }
    listeners(point).into_iter().map(|id| (id, before[id as usize].unwrap_or(0))).collect()
}

/// A node and what it leads to, one after another, as far as there is one way only; behind a server its model.
pub fn only_way(point: &Point, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let next = |id: &NodeId| {
        let node = &point.nodes[*id as usize];
        match (&point.specs[node.spec as usize], node.to) {
            (Spec::Server { model: Some(model), .. }, _) => Some(*model),
            (_, Edge::Node(next)) => Some(next),
            _ => None,
        }
    };
    std::iter::successors(Some(node), next)
}

/// The balancer whose requests this `timeout` ends: nothing but `retry` is between the two
/// (`docs/spec/language.md#ejection`).
pub fn timed_balancer(point: &Point, timeout: NodeId) -> Option<NodeId> {
    let spec = |id: NodeId| &point.specs[point.nodes[id as usize].spec as usize];
    let first = only_way(point, timeout).skip(1).find(|&id| !matches!(spec(id), Spec::Retry(_)))?;
    matches!(spec(first), Spec::Lb(_)).then_some(first)
}

/// These listeners and all listeners behind them, in the order of the file.
pub fn with_inner(point: &Point, chosen: &[NodeId]) -> Vec<NodeId> {
    let (mut seen, mut lists) = (BTreeSet::new(), BTreeSet::new());
    let mut stack = chosen.to_vec();
    while let Some(id) = stack.pop() {
        let Some(node) = point.nodes.get(id as usize).filter(|_| seen.insert(id)) else { continue };
        if let Spec::Lb(lb) = &point.specs[node.spec as usize] {
            stack.extend(lb.spare);
        }
        match node.to {
            Edge::None => {}
            Edge::Node(next) => stack.push(next),
            Edge::List(list) if lists.insert(list) => stack.extend(&point.lists[list as usize]),
            Edge::List(_) => {}
        }
    }
    listeners(point).into_iter().filter(|id| seen.contains(id)).collect()
}
