//! Connections to servers in a simulation: before each server that has them is a node that takes one, or opens it.
//!
//! A server with an address needs one where a request comes to it; one without, where a request has passed the last balancer
//! or listener before it, as when weir itself answers in its place ([`crate::serving`]).

use crate::graph::WithConnections;
use crate::insert::before;
use crate::listen::Connecting;
use crate::reach::Reach;
use crate::serving::{named_server, servers};
use crate::{Edge, NodeId, Point, Scenario, Spec};
use std::sync::OnceLock;

/// The `def` of the place of such a node: no file can have it.
pub const DEF: &str = "<connections>";

impl Point {
    /// The point with the connections of a scenario's servers, and the scenario in it; the same where it has none. `all`: each
    /// server has them. The point has every member that ever is ([`Point::grown`]).
    pub fn connected<'p>(&'p self, scenario: &'p Scenario, all: bool) -> (&'p Point, &'p Scenario) {
        let is_wanted = |spec: &Spec| matches!(spec, Spec::Server { origin, .. } if origin.connect.is_some());
        if !all && !self.specs.iter().any(is_wanted) {
            return (self, scenario);
        }
        let connected = || {
            let at = self.scenarios.iter().position(|s| s.name == scenario.name)?;
            let connected = self.connected.with(all).get_or_init(|| Box::new(connect(self, all)));
            let point = connected.point(self, at)?;
            Some((point, point.scenarios.get(at)?))
        };
        connected().unwrap_or((self, scenario))
    }
}

impl WithConnections {
    /// The point of a scenario; `None`: it has no connections.
    fn point(&self, plain: &Point, at: usize) -> Option<&Point> {
        let nodes = self.nodes.get(at).filter(|nodes| !nodes.is_empty())?;
        match self.shares.get(at)? {
            true => self.shared.as_ref(),
            false => Some(self.own.get(at)?.get_or_init(|| with_nodes(plain, nodes))),
        }
    }
}

fn connect(point: &Point, all: bool) -> WithConnections {
    let roots: Vec<NodeId> = point.scenarios.iter().map(|scenario| scenario.root).collect();
    let connection = |id: NodeId| {
        let Some(Spec::Server { origin, .. }) = point.spec(named_server(point, id)?) else { return None };
        Some((id, Spec::Connection(Box::new(Connecting::new(origin, all)?))))
    };
    let nodes: Vec<Vec<(NodeId, Spec)>> = servers(point, &roots)
        .into_iter()
        .map(|ids| ids.into_iter().filter_map(connection).collect())
        .collect();
    let mut any: Vec<(NodeId, Spec)> = nodes.iter().flatten().cloned().collect();
    any.sort_by_key(|(id, _)| *id);
    any.dedup_by_key(|(id, _)| *id);
    let is_any = |id: &&NodeId| any.binary_search_by_key(*id, |(id, _)| *id).is_ok();
    let shares = |(root, own): (&NodeId, &Vec<(NodeId, Spec)>)| {
        Reach::new(point, *root).ids().iter().filter(is_any).count() == own.len()
    };
    let shares: Vec<bool> = roots.iter().zip(&nodes).map(shares).collect();
    let shared = (!any.is_empty()).then(|| with_nodes(point, &any));
    WithConnections { own: nodes.iter().map(|_| OnceLock::new()).collect(), nodes, shared, shares }
}

fn with_nodes(point: &Point, nodes: &[(NodeId, Spec)]) -> Point {
    let site_of = |id: NodeId| point.sites.get(point.nodes[id as usize].site as usize);
    let label = |id: NodeId| {
        let site = named_server(point, id).and_then(site_of);
        format!("{}/connection", site.map_or("server", |site| site.label.as_str()))
    };
    // A node of one server may lead to another that is a target itself: a request has its connection by then.
    let inside = inside(point, nodes);
    before(point, nodes, DEF, label, |id| inside[id as usize]).point
}

/// By node, whether it is a part of these servers.
fn inside(point: &Point, servers: &[(NodeId, Spec)]) -> Vec<bool> {
    let mut inside = vec![false; point.nodes.len()];
    let mut stack: Vec<NodeId> = servers.iter().map(|(id, _)| *id).collect();
    while let Some(id) = stack.pop() {
        if std::mem::replace(&mut inside[id as usize], true) {
            continue;
        }
        stack.extend(point.spec(id).and_then(Spec::aside));
        match point.nodes[id as usize].to {
            Edge::None => {}
            Edge::Node(next) => stack.push(next),
            Edge::List(list) => stack.extend(&point.lists[list as usize]),
        }
    }
    inside
}

/// By node of a point with connections, its number in the point without; that of a node which takes a connection is its
/// server's.
pub fn plain_numbers(point: &Point) -> Vec<NodeId> {
    let mut added = 0;
    let number = |id: NodeId| {
        added += NodeId::from(matches!(point.spec(id), Some(Spec::Connection(_))));
        id - added
    };
    (0..point.nodes.len() as NodeId).map(number).collect()
}
