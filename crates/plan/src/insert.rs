//! Nodes that no file has, put into a point before others: hops of a machine, connections to servers. Their places are their
//! own, so they change no draw of another node.

use crate::{Edge, Lb, Node, NodeId, Place, Point, Site, Spec};
use std::ops::Range;
use std::sync::Arc;

/// A point with further nodes.
#[derive(Clone, Debug)]
pub struct Inserted {
    /// The point.
    pub point: Point,
    /// The present number of each node that was there.
    pub nodes: Vec<NodeId>,
}

/// Adds a node before each of these (ascending), with that spec. It is right behind the node it leads to, which precedes
/// those that lead to it. `def` is the `def` of its place: one that no file can have.
#[must_use]
pub fn before(point: &Point, nodes: &[(NodeId, Spec)], def: &str) -> Inserted {
    let own = |id: NodeId| id + nodes.partition_point(|(node, _)| *node < id) as NodeId;
    let at = |id: NodeId| nodes.binary_search_by_key(&id, |(node, _)| *node).ok();
    let led = |id: NodeId| own(id) + NodeId::from(at(id).is_some());
    let mut to = point.clone();
    renumber(&mut to, led);
    // It belongs to the member that the node behind it belongs to.
    renumber_members(&mut to, |nodes| own(nodes.start)..own(nodes.end));
    for (id, node) in (0..).zip(std::mem::take(&mut to.nodes)) {
        to.nodes.push(node);
        if let Some(at) = at(id) {
            let inserted = node_before(&mut to, own(id), nodes[at].1.clone(), def);
            to.nodes.push(inserted);
        }
    }
    Inserted { nodes: (0..point.nodes.len() as NodeId).map(own).collect(), point: to }
}

/// Adds a node with that spec at the entrance of a scenario: behind its listener, or before its first node if it has none.
pub fn before_root(point: &mut Point, scenario: &str, spec: Spec, def: &str) {
    let Some(root) = point.scenarios.iter().find(|s| s.name == scenario).map(|s| s.root) else { return };
    let node = &point.nodes[root as usize];
    let listens = matches!(point.specs[node.spec as usize], Spec::Listen(_));
    let (inner, at) = match node.to {
        Edge::Node(inner) if listens => (inner, root),
        _ => (root, root + 1),
    };
    let now = |id: NodeId| id + NodeId::from(id >= at);
    renumber(point, now);
    renumber_members(point, |nodes| now(nodes.start)..nodes.end + now(nodes.start) - nodes.start);
    let inserted = node_before(point, inner, spec, def);
    point.nodes.insert(at as usize, inserted);
    if listens {
        point.nodes[root as usize + 1].to = Edge::Node(at);
    } else {
        point.scenarios.iter_mut().filter(|s| s.name == scenario).for_each(|s| s.root = at);
    }
}

/// Redirects all edges to the new numbers of nodes.
fn renumber(point: &mut Point, new: impl Fn(NodeId) -> NodeId) {
    point.lists.iter_mut().flatten().for_each(|id| *id = new(*id));
    for spec in &mut point.specs {
        match spec {
            Spec::Server { model: Some(id), .. } | Spec::Lb(Lb { spare: Some(id), .. }) => *id = new(*id),
            _ => {}
        }
    }
    for node in &mut point.nodes {
        if let Edge::Node(id) = &mut node.to {
            *id = new(*id);
        }
    }
    point.scenarios.iter_mut().for_each(|scenario| scenario.root = new(scenario.root));
}

/// Gives the members of fleets the new numbers of their nodes.
fn renumber_members(point: &mut Point, moved: impl Fn(&Range<NodeId>) -> Range<NodeId>) {
    point.fleets = point.fleets.take().map(|fleets| Arc::new(fleets.renumbered(moved)));
}

fn node_before(point: &mut Point, to: NodeId, spec: Spec, def: &str) -> Node {
    let kind = spec.kind();
    let known = point.specs.iter().rposition(|other| *other == spec);
    let spec = known.unwrap_or_else(|| {
        point.specs.push(spec);
        point.specs.len() - 1
    });
    // One place and site for all of a kind: the last that was made, if it is for the same.
    let is_own = |site: &Site| point.places[site.place as usize].def == def;
    let same = point.sites.last().filter(|site| is_own(site) && site.label.ends_with(&format!("#{spec}")));
    if same.is_none() {
        let place = point.places.len() as u32;
        let own = Place {
            file: 0,
            def: def.to_owned(),
            kind: kind.to_owned(),
            via: String::new(),
            number: spec as u32,
        };
        point.places.push(own);
        point.sites.push(Site { place, label: format!("{def}/{kind}#{spec}"), span: String::new() });
    }
    Node { site: point.sites.len() as u32 - 1, spec: spec as u32, to: Edge::Node(to), name: None }
}
