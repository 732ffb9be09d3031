//! Nodes that no file has, put into a point before others: hops of a machine, connections to servers. Their places are their
//! own, so they change no draw of another node.

use crate::{Edge, Lb, Node, NodeId, Place, Point, Site, Spec};
use std::collections::BTreeMap;
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
/// those that lead to it, but for nodes with the property `passes`, which go on without it. `def` is the `def` of its place:
/// one that no file can have; `label` names its site.
#[must_use]
pub fn before(
    point: &Point,
    nodes: &[(NodeId, Spec)],
    def: &str,
    label: impl Fn(NodeId) -> String,
    passes: impl Fn(NodeId) -> bool,
) -> Inserted {
    let own = |id: NodeId| id + nodes.partition_point(|(node, _)| *node < id) as NodeId;
    let at = |id: NodeId| nodes.binary_search_by_key(&id, |(node, _)| *node).ok();
    let led = |id: NodeId| own(id) + NodeId::from(at(id).is_some());
    let (mut to, mut known) = (point.clone(), SiteNumbers::new());
    renumber(&mut to, led);
    let mut own_lists = BTreeMap::new();
    for (id, node) in (0..).zip(&point.nodes).filter(|(id, _)| passes(*id)) {
        let edge = match node.to {
            Edge::None => continue,
            Edge::Node(next) => Edge::Node(own(next)),
            Edge::List(list) => Edge::List(*own_lists.entry(list).or_insert_with(|| {
                to.lists.push(point.lists[list as usize].iter().map(|id| own(*id)).collect());
                to.lists.len() as u32 - 1
            })),
        };
        to.nodes[id as usize].to = edge;
    }
    // It belongs to the member that the node behind it belongs to.
    renumber_members(&mut to, |nodes| own(nodes.start)..own(nodes.end));
    for (id, node) in (0..).zip(std::mem::take(&mut to.nodes)) {
        to.nodes.push(node);
        if let Some(at) = at(id) {
            let inserted = node_before(&mut to, &mut known, own(id), nodes[at].1.clone(), (def, label(id)));
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
    let inserted = node_before(point, &mut SiteNumbers::new(), inner, spec, (def, format!("{def}/entrance")));
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

/// A node at a place of its own; one place and site for all of a spec and a label. Sites of one label are numbered, as others
/// are: `label`, `label#2`.
fn node_before(
    point: &mut Point,
    known: &mut SiteNumbers,
    to: NodeId,
    spec: Spec,
    at: (&str, String),
) -> Node {
    let (def, label) = at;
    let kind = spec.kind();
    let equal = point.specs.iter().rposition(|other| *other == spec);
    let spec = equal.unwrap_or_else(|| {
        point.specs.push(spec);
        point.specs.len() - 1
    }) as u32;
    let site = known.get(&(label.clone(), spec)).copied().unwrap_or_else(|| {
        let place = point.places.len() as u32;
        point.places.push(Place {
            file: 0,
            def: def.to_owned(),
            kind: kind.to_owned(),
            via: String::new(),
            number: place,
        });
        let others = known.range((label.clone(), 0)..=(label.clone(), u32::MAX)).count();
        let unique = if others == 0 { label.clone() } else { format!("{label}#{}", others + 1) };
        point.sites.push(Site { place, label: unique, span: String::new() });
        let site = point.sites.len() as u32 - 1;
        known.insert((label, spec), site);
        site
    });
    Node { site, spec, to: Edge::Node(to), name: None }
}

/// The sites of nodes that were added, by label and spec.
type SiteNumbers = BTreeMap<(String, u32), u32>;
