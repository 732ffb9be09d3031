//! Nodes that the changes of a scenario drive: one precedes each process, and each node that `change.down` names.

use super::Members;
use crate::graph::DrivenNodes;
use crate::insert::before;
use crate::{Change, ChangeKind, Edge, Faulty, First, Mode, NodeId, Point, Scenario, Spec};
use std::sync::Arc;

/// The `def` of the place of such a node: no file can have it.
const DEF: &str = "<changes>";

/// The point with those nodes. `now`: what became of each node of the compact point.
pub(super) fn with_driven(point: Point, compact: &Point, scenario: &Scenario, now: &[NodeId]) -> Point {
    let mut building = Building { roots: roots(&point, compact), point, now: now.to_vec() };
    let processes: Vec<usize> = building
        .fleets()
        .iter()
        .enumerate()
        .filter(|(_, of)| has_process(of, scenario))
        .map(|of| of.0)
        .collect();
    if !processes.is_empty() {
        let nodes = processes.iter().flat_map(|fleet| building.roots[*fleet].clone()).collect();
        building.add(nodes, Faulty::driven(Mode::Crash, 1.0, false, 0), None);
    }
    for (change, number) in scenario.events.iter().zip(0..) {
        let ChangeKind::Down { mode, slow, checks_pass, .. } = change.what else { continue };
        let nodes = building.nodes_of(compact, change);
        building.add(nodes, Faulty::driven(mode, slow, checks_pass, number + 1), Some(number));
    }
    for (change, number) in scenario.events.iter().zip(0..) {
        if let ChangeKind::Set { .. } = change.what {
            building.note_set(change, number);
        }
    }
    building.point
}

/// Whether the members of a fleet are processes that begin and end.
fn has_process(of: &Members, scenario: &Scenario) -> bool {
    let is_moved = |change: &Change| {
        let into = match change.what {
            ChangeKind::Down { .. } | ChangeKind::Set { .. } => return false,
            ChangeKind::Rolling { into, .. } => into,
            _ => None,
        };
        change.fleet == of.node || into == Some(of.node)
    };
    let is_in_place = |change: &Change| {
        change.fleet == of.node && matches!(change.what, ChangeKind::Rolling { first: First::InPlace, .. })
    };
    let events = &scenario.events;
    of.fleet.life.is_some() && events.iter().any(is_moved) || events.iter().any(is_in_place)
}

/// By fleet, then number: the node by which a member is entered.
fn roots(point: &Point, compact: &Point) -> Vec<Vec<NodeId>> {
    let of_fleet = |of: &Members| {
        let root = match compact.nodes[of.node as usize].to {
            Edge::Node(root) => root.saturating_sub(of.fleet.first),
            _ => 0,
        };
        of.nodes.iter().map(|nodes| nodes.start + root).collect()
    };
    point.fleets.as_deref().map_or_else(Vec::new, |fleets| fleets.all.iter().map(of_fleet).collect())
}

/// A point that gets such nodes, one change after another.
struct Building {
    point: Point,
    /// What became of each node of the compact point.
    now: Vec<NodeId>,
    /// By fleet, then number: the node by which a member is entered.
    roots: Vec<Vec<NodeId>>,
}

impl Building {
    fn fleets(&self) -> &[Members] {
        self.point.fleets.as_deref().map_or(&[], |fleets| &fleets.all)
    }

    /// The nodes that a change names: members of fleets, by number, and others.
    fn nodes_of(&self, compact: &Point, change: &Change) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        for id in change.nodes() {
            match self.fleets().iter().position(|of| of.node == id) {
                Some(fleet) => nodes.extend(&self.roots[fleet]),
                None => nodes.push(self.entrance(compact, id)),
            }
        }
        nodes
    }

    /// The node before which one fails that is no fleet: behind a listener where a scenario begins.
    fn entrance(&self, compact: &Point, id: NodeId) -> NodeId {
        let begins = compact.scenarios.iter().any(|scenario| scenario.root == id);
        let own = self.now[id as usize];
        match self.point.nodes[own as usize].to {
            Edge::Node(inner) if begins && matches!(compact.spec(id), Some(Spec::Listen(_))) => inner,
            _ => own,
        }
    }

    /// Notes the nodes on which a change has the operator's word.
    fn note_set(&mut self, change: &Change, number: u32) {
        let mut nodes = Vec::new();
        for id in change.nodes() {
            match self.fleets().iter().position(|of| of.node == id) {
                Some(fleet) => nodes.extend(&self.roots[fleet]),
                None => nodes.push(self.now[id as usize]),
            }
        }
        let fleets = self.point.fleets.as_mut().and_then(Arc::get_mut);
        fleets
            .into_iter()
            .for_each(|fleets| fleets.add_set(DrivenNodes { change: Some(number), nodes: nodes.clone() }));
    }

    /// Adds a node before each of these.
    fn add(&mut self, nodes: Vec<NodeId>, faulty: Faulty, change: Option<u32>) {
        let mut ascending: Vec<NodeId> = nodes.clone();
        ascending.sort_unstable();
        ascending.dedup();
        let specs: Vec<(NodeId, Spec)> =
            ascending.iter().map(|id| (*id, Spec::Faulty(faulty.clone()))).collect();
        let label = |id: NodeId| {
            let node = &self.point.nodes[id as usize];
            let what = if change.is_some() { "failure" } else { "process" };
            format!("{}/{what}", self.point.sites[node.site as usize].label)
        };
        let inserted = before(&self.point, &specs, DEF, label, |_| false);
        let own = |id: &NodeId| inserted.nodes[*id as usize];
        self.now.iter_mut().filter(|id| **id != NodeId::MAX).for_each(|id| *id = own(id));
        self.roots.iter_mut().flatten().for_each(|id| *id = own(id));
        // Each is right behind the node that it precedes.
        let driven: Vec<NodeId> = nodes.iter().map(|id| own(id) + 1).collect();
        self.point = inserted.point;
        let fleets = self.point.fleets.as_mut().and_then(Arc::get_mut);
        fleets
            .into_iter()
            .for_each(|fleets| fleets.driven.push(DrivenNodes { change, nodes: driven.clone() }));
    }
}
