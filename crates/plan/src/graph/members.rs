//! The members of fleets: what a plan in memory has beside the templates.

use super::{Edge, Fleet, Line, NodeId, Point, Spec};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::OnceLock;

/// The fleets of a point whose members are made. No plan has it; processes of a verification send it to each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fleets {
    /// The point with each template once, as the plan is written.
    pub compact: Point,
    /// In the order of the file.
    pub all: Vec<Members>,
    /// The lists of targets with members of fleets: by index of the list, who each target is; `None`: a single node.
    /// Newcomers are at the end of a list.
    pub lists: Vec<(u32, Vec<Option<Member>>)>,
    /// Whether they change: the point has every member that ever is.
    pub changes: bool,
    /// The nodes that the changes of a scenario drive.
    #[serde(default)]
    pub driven: Vec<DrivenNodes>,
    /// The nodes on which the changes of a scenario have the operator's word.
    #[serde(default)]
    pub set: Vec<DrivenNodes>,
    /// The same nodes of all changes, ascending.
    #[serde(default)]
    pub(crate) set_nodes: Vec<NodeId>,
    /// The nodes that newcomers consist of, ascending.
    pub(crate) newcomers: Vec<Range<NodeId>>,
    /// The point of each scenario that changes fleets, once it is asked for.
    #[serde(skip)]
    pub(crate) grown: Vec<OnceLock<Option<Box<Point>>>>,
}

/// A member: the fleet's number, and its own there from 0, as they join.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Member {
    /// The fleet, as an index of [`Fleets::all`].
    pub fleet: u32,
    /// The member's number in it.
    pub number: u32,
}

/// The members of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Members {
    /// The fleet's node in the compact point.
    pub node: NodeId,
    /// The fleet.
    pub fleet: Fleet,
    /// The nodes of each member that ever is, by number.
    pub nodes: Vec<Range<NodeId>>,
    /// The same as its source lists them; empty where none does, and in a simulation. `None`: the place is vacant, and
    /// its nodes lead nowhere.
    pub listed: Vec<Option<ListedMember>>,
}

impl Fleets {
    /// Whether a node belongs to a member that joins during the run.
    pub fn is_newcomer(&self, node: NodeId) -> bool {
        let at = self.newcomers.partition_point(|range| range.end <= node);
        self.newcomers.get(at).is_some_and(|range| range.contains(&node))
    }

    /// The targets of a list that are members of fleets; `None`: it has none.
    pub fn of_list(&self, list: u32) -> Option<&[Option<Member>]> {
        let at = self.lists.binary_search_by_key(&list, |(list, _)| *list).ok()?;
        Some(&self.lists[at].1)
    }

    /// The node that a target of a balancer is, if a change has the operator's word on it: behind its weight, and behind nodes
    /// that take connections or that changes drive.
    #[must_use]
    pub fn set_node(&self, point: &Point, target: NodeId) -> Option<NodeId> {
        if self.set_nodes.is_empty() {
            return None;
        }
        let mut id = target;
        loop {
            if self.set_nodes.binary_search(&id).is_ok() {
                return Some(id);
            }
            let leads_on = match point.spec(id) {
                Some(Spec::Weight { .. } | Spec::Connection(_)) => true,
                Some(Spec::Faulty(faulty)) => matches!(faulty.line, Line::Driven(_)),
                _ => false,
            };
            match point.nodes[id as usize].to {
                Edge::Node(next) if leads_on => id = next,
                _ => return None,
            }
        }
    }

    /// Whether a change has the operator's word on any target of a list.
    #[must_use]
    pub fn is_set(&self, point: &Point, list: u32) -> bool {
        !self.set_nodes.is_empty()
            && point.lists[list as usize].iter().any(|id| self.set_node(point, *id).is_some())
    }

    /// A change has the operator's word on these nodes.
    pub(crate) fn add_set(&mut self, nodes: DrivenNodes) {
        self.set_nodes.extend(&nodes.nodes);
        self.set_nodes.sort_unstable();
        self.set_nodes.dedup();
        self.set.push(nodes);
    }

    /// The same for a point in which nodes have other numbers: `moved` has the new range of each range of nodes.
    #[must_use]
    pub fn renumbered(&self, moved: impl Fn(&Range<NodeId>) -> Range<NodeId>) -> Fleets {
        let mut new = self.clone();
        let members = new.all.iter_mut().flat_map(|members| &mut members.nodes);
        members.chain(&mut new.newcomers).for_each(|nodes| *nodes = moved(nodes));
        for id in new.driven.iter_mut().chain(&mut new.set).flat_map(|of| &mut of.nodes) {
            *id = moved(&(*id..*id)).start;
        }
        new.set_nodes.iter_mut().for_each(|id| *id = moved(&(*id..*id)).start);
        new
    }
}

/// The nodes that a change drives, or that processes are driven by: each precedes what fails or stops with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrivenNodes {
    /// The number of the change in the scenario's list; `None`: processes.
    pub change: Option<u32>,
    /// In the order of what the change names, members by number; ascending where they are processes.
    pub nodes: Vec<NodeId>,
}

/// A member as a source lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedMember {
    /// Where its server is, as `addr=` has it.
    pub addr: String,
    /// What tells it from another that had its address before.
    pub id: Option<String>,
    /// Its weight.
    pub weight: f64,
    /// Whether it gets no new requests. A member of weight 0 gets none either.
    pub drain: bool,
}
