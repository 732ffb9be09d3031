//! The names of nodes for people, metrics and the admin interface: a `name=`, else the address, else the site with the
//! number there.

use crate::{Edge, NodeId, Point, Spec};
use std::collections::HashMap;

/// A node's name: its `name=`, else its site.
pub fn label(point: &Point, id: NodeId) -> String {
    let Some(node) = point.nodes.get(id as usize) else { return String::new() };
    let site = point.sites.get(node.site as usize);
    node.name.clone().or_else(|| site.map(|site| site.label.clone())).unwrap_or_default()
}

/// The names of a balancer's targets, in their order: by the first of these that no other target of it has: the name of
/// the server or listener that its only way leads to, that one's address, its own site and number.
pub fn target_labels(point: &Point, lb: NodeId) -> Vec<String> {
    let Some(Edge::List(list)) = point.nodes.get(lb as usize).map(|node| node.to) else { return Vec::new() };
    let targets = &point.lists[list as usize];
    let ends: Vec<Option<NodeId>> = targets.iter().map(|target| end(point, *target)).collect();
    // What a source lists is known by its address, also while it is alone.
    let is_listed = |id| point.fleets.as_deref().is_some_and(|fleets| fleets.listed(id).is_some());
    let named = |end: &Option<NodeId>| end.filter(|id| !is_listed(*id));
    let names = unique(ends.iter().map(|end| point.nodes[named(end)? as usize].name.as_deref()));
    let addresses =
        unique(ends.iter().map(|end| match &point.specs[point.nodes[(*end)? as usize].spec as usize] {
            Spec::Server { addr, .. } => addr.as_deref(),
            Spec::Listen(listen) => Some(&*listen.addr),
            _ => None,
        }));
    let known: Vec<Option<&str>> =
        names.into_iter().zip(addresses).map(|(name, address)| name.or(address)).collect();
    if known.iter().all(Option::is_some) {
        return known.into_iter().flatten().map(str::to_owned).collect();
    }
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let label_of = |(target, known): (&NodeId, Option<&str>)| {
        let label = label(point, of_file(point, *target));
        let number = numbers.entry(label.clone()).or_default();
        *number += 1;
        known.map_or_else(|| format!("{label} #{}", *number - 1), str::to_owned)
    };
    targets.iter().zip(known).map(label_of).collect()
}

/// The node of the file at a target: what was put before it has no name of its own ([`crate::insert`]).
fn of_file(point: &Point, mut id: NodeId) -> NodeId {
    let is_added = |id: NodeId| {
        let site = point.sites.get(point.nodes[id as usize].site as usize);
        let place = site.and_then(|site| point.places.get(site.place as usize));
        place.is_some_and(|place| place.def.starts_with('<') && place.def != "<file>")
    };
    while let (true, Edge::Node(next)) = (is_added(id), point.nodes[id as usize].to) {
        id = next;
    }
    id
}

/// The server or listener that a target's only way leads to.
fn end(point: &Point, mut id: NodeId) -> Option<NodeId> {
    loop {
        let node = &point.nodes[id as usize];
        match (&point.specs[node.spec as usize], node.to) {
            (Spec::Server { .. } | Spec::Listen(_), _) => return Some(id),
            (_, Edge::Node(next)) => id = next,
            _ => return None,
        }
    }
}

/// Keeps the items that occur once; the others become `None`.
fn unique<'a>(all: impl Iterator<Item = Option<&'a str>>) -> Vec<Option<&'a str>> {
    let all: Vec<Option<&str>> = all.collect();
    let mut seen: HashMap<&str, u32> = HashMap::new();
    for one in all.iter().flatten() {
        *seen.entry(one).or_default() += 1;
    }
    all.into_iter().map(|one| one.filter(|one| seen.get(one) == Some(&1))).collect()
}
