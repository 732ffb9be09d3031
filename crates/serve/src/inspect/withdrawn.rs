//! Targets that only a doubted list of their fleet lacks. They are picked as before, and would look like all others.

use super::view::View;
use crate::exchange::NodeId;
use crate::fleets::{MemberKey, Withdrawn};
use std::collections::BTreeSet;
use weir_plan::fleets::Member;
use weir_plan::{Edge, Point};

/// The sentence for such a target.
const WORDS: &str = "withdrawn: the last list of its fleet, too short to be believed at once, lacks it; it is picked until it \
    fails, is listed again, or its grace is over";

/// Marks the targets that these members are.
pub(super) fn mark(view: &mut View, withdrawn: &BTreeSet<Withdrawn>) {
    let Some(point) = view.point.clone().filter(|_| !withdrawn.is_empty()) else { return };
    for pool in &mut view.pools {
        let nodes = find_nodes(&point, pool.node, withdrawn);
        for target in pool.targets.iter_mut().filter(|target| nodes.contains(&target.node)) {
            target.is_withdrawn = true;
            target.why.push(WORDS.to_owned());
        }
    }
}

/// The nodes of a balancer's targets that these members are.
fn find_nodes(point: &Point, lb: NodeId, withdrawn: &BTreeSet<Withdrawn>) -> BTreeSet<NodeId> {
    let is_withdrawn = |fleet: u32, number: u32| {
        let listed = point.fleets.as_ref()?.all.get(fleet as usize)?.listed.get(number as usize)?.as_ref()?;
        let key = MemberKey { addr: listed.addr.clone(), id: listed.id.clone() };
        Some(withdrawn.contains(&(fleet as usize, key)))
    };
    let Some(Edge::List(list)) = point.node(lb).map(|node| node.to) else { return BTreeSet::new() };
    let members = point.fleets.as_ref().and_then(|fleets| fleets.of_list(list)).unwrap_or_default();
    let nodes = point.lists.get(list as usize).map(Vec::as_slice).unwrap_or_default();
    let is_one = |member: &Option<Member>| {
        member.as_ref().and_then(|member| is_withdrawn(member.fleet, member.number)) == Some(true)
    };
    let all = nodes.iter().zip(members);
    all.filter_map(|(node, member)| is_one(member).then_some(*node)).collect()
}
