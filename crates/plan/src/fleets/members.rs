//! The members that a source lists, as nodes: what is served of a `find.*`. Every list makes a new point of the compact
//! one, so that a later list, or a later file, starts from what was written.

use super::{Fleets, ListedMember, compact, expand, has_fleets};
use crate::ranges::WEIGHTS;
use crate::{Fleet, NodeId, Point, Spec};

impl ListedMember {
    /// The weight by which it is picked, times what the file gives its fleet; 0: it is not.
    pub(super) fn weight_of(&self, of_fleet: f64) -> f64 {
        let weight = self.weight * of_fleet;
        if self.drain || weight <= 0.0 { 0.0 } else { weight.clamp(WEIGHTS.0, WEIGHTS.1) }
    }
}

/// The members of a fleet by place. A place may be vacant, so that members come and go while the nodes of others keep their
/// numbers.
pub type MemberPlaces = Vec<Option<ListedMember>>;

/// The point whose fleets have the members that their sources list: by the number of the fleet; `None`: as many as it
/// has in the file. Without a member the balancer has no target there.
pub fn with_members(point: &Point, lists: &[Option<MemberPlaces>]) -> Point {
    let written = compact(point);
    if has_fleets(written) { expand::expand(written, &[], lists) } else { point.clone() }
}

/// The point with one member in each fleet that a source lists, somewhere; `None`: there is no such fleet. What holds of
/// it holds of any list.
pub fn with_one_member(point: &Point) -> Option<Point> {
    let somewhere = || ListedMember { addr: SOMEWHERE.to_owned(), id: None, weight: 1.0, drain: false };
    let mut lists: Vec<Option<MemberPlaces>> = Vec::new();
    for (number, _) in point.sourced() {
        lists.resize(number, None);
        lists.push(Some(vec![Some(somewhere())]));
    }
    (!lists.is_empty()).then(|| with_members(point, &lists))
}

/// An address of no machine (RFC 5737).
const SOMEWHERE: &str = "192.0.2.1:80";

impl Point {
    /// The point as it is written: with the template of each fleet once.
    pub fn written(&self) -> &Point {
        compact(self)
    }

    /// The fleets whose members a source lists, each with its number among all fleets.
    pub fn sourced(&self) -> impl Iterator<Item = (usize, &Fleet)> {
        let all = self.fleets.iter().flat_map(|fleets| &fleets.all).map(|members| &members.fleet).enumerate();
        all.filter(|(_, fleet)| fleet.source.is_some())
    }

    /// The servers that members of such fleets are, whether there is a member or not.
    pub fn sourced_servers(&self) -> impl Iterator<Item = &Spec> {
        let written = self.written();
        let templates = self.sourced().flat_map(move |(number, fleet)| {
            let end = self.fleets.as_ref().map_or(fleet.first, |fleets| fleets.all[number].node);
            fleet.first..end
        });
        templates.filter_map(|id| written.spec(id)).filter(|spec| matches!(spec, Spec::Server { .. }))
    }
}

impl Fleets {
    /// The listed member that a node is part of; `None`: it belongs to none.
    pub fn listed(&self, node: NodeId) -> Option<&ListedMember> {
        self.place(node)?.as_ref()
    }

    /// Whether a node is of a vacant place.
    pub fn is_vacant(&self, node: NodeId) -> bool {
        self.place(node).is_some_and(Option::is_none)
    }

    fn place(&self, node: NodeId) -> Option<&Option<ListedMember>> {
        self.all.iter().find_map(|members| {
            // Most nodes are of another fleet, or of none.
            let all = members.nodes.first()?.start..members.nodes.last()?.end;
            if !all.contains(&node) {
                return None;
            }
            let at = members.nodes.partition_point(|range| range.end <= node);
            members.nodes.get(at).filter(|range| range.contains(&node)).and(members.listed.get(at))
        })
    }
}
