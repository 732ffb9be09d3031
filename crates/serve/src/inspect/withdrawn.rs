//! Targets that only a doubted list of their fleet lacks. They are picked as before, and would look like all others.

use super::view::View;
use crate::exchange::NodeId;
use crate::fleets::MemberKey;
use std::collections::BTreeSet;
use weir_plan::fleets::{ListedMember, Member};
use weir_plan::{Edge, Point};

/// The sentence for such a target.
const WORDS: &str = "withdrawn: the last list of its fleet, too short to be believed at once, lacks it; it is picked until it \
    fails, is listed again, or its grace is over";

/// Marks the targets that these members are. `withdrawn`: by the number of the fleet in the topology.
pub(super) fn mark(view: &mut View, withdrawn: &[(usize, Vec<MemberKey>)]) {
    let Some(point) = view.point.clone() else { return };
    let members = find_members(&point, withdrawn);
    if members.is_empty() {
        return;
    }
    for pool in &mut view.pools {
        let nodes = find_nodes(&point, pool.node, &members);
        for target in pool.targets.iter_mut().filter(|target| nodes.contains(&target.node)) {
            target.is_withdrawn = true;
            target.why.push(WORDS.to_owned());
        }
    }
}

/// The places that these members have in what is served, which may be older than the fleets are.
fn find_members(point: &Point, withdrawn: &[(usize, Vec<MemberKey>)]) -> BTreeSet<Member> {
    let mut members = BTreeSet::new();
    let Some(fleets) = &point.fleets else { return members };
    for (fleet, keys) in withdrawn.iter().filter(|(_, keys)| !keys.is_empty()) {
        let keys: BTreeSet<(&str, Option<&str>)> =
            keys.iter().map(|key| (key.addr.as_str(), key.id.as_deref())).collect();
        let listed = fleets.all.get(*fleet).map(|of| of.listed.as_slice()).unwrap_or_default();
        let is_one = |one: &ListedMember| keys.contains(&(one.addr.as_str(), one.id.as_deref()));
        let found = (0..).zip(listed).filter(|(_, place)| place.as_ref().is_some_and(is_one));
        members.extend(found.map(|(number, _)| Member { fleet: *fleet as u32, number }));
    }
    members
}

/// The nodes of a balancer's targets that these members are.
fn find_nodes(point: &Point, lb: NodeId, withdrawn: &BTreeSet<Member>) -> BTreeSet<NodeId> {
    let Some(Edge::List(list)) = point.node(lb).map(|node| node.to) else { return BTreeSet::new() };
    let members = point.fleets.as_ref().and_then(|fleets| fleets.of_list(list)).unwrap_or_default();
    let nodes = point.lists.get(list as usize).map(Vec::as_slice).unwrap_or_default();
    let is_one = |member: &Option<Member>| member.is_some_and(|member| withdrawn.contains(&member));
    let all = nodes.iter().zip(members);
    all.filter_map(|(node, member)| is_one(member).then_some(*node)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plan::Spec;
    use weir_plan::fleets::with_members;
    use weir_topology::{Request, evaluate};

    fn listed(id: &str) -> Option<ListedMember> {
        let (addr, id) = ("10.0.0.1:80".to_owned(), Some(id.to_owned()));
        Some(ListedMember { addr, id, weight: 1.0, drain: false })
    }

    fn key(id: Option<&str>) -> MemberKey {
        MemberKey { addr: "10.0.0.1:80".to_owned(), id: id.map(str::to_owned) }
    }

    /// A balancer over two fleets. The first has the members `x`, a vacant place and `y`, the second has `x`; all at one
    /// address.
    fn make_point() -> Point {
        let source = "a = find.file(\"/nowhere/a.json\", lambda: server(\"app\"))\n\
                      b = find.file(\"/nowhere/b.json\", lambda: server(\"app\"))\n\
                      listen(\"127.0.0.1:0\", lb.random([a, b]), name = \"front\")\n";
        let request = Request { source: source.into(), name: "t.star".into(), ..Request::default() };
        let plan = evaluate(&request).unwrap_or_else(|wrong| panic!("{wrong:#?}")).plan;
        let lists = [Some(vec![listed("x"), None, listed("y")]), Some(vec![listed("x")])];
        with_members(&plan.points[0], &lists)
    }

    /// The targets that are withdrawn, by their places in the balancer's list.
    fn find_targets(point: &Point, withdrawn: &[(usize, Vec<MemberKey>)]) -> Vec<usize> {
        let is_lb = |id: &NodeId| {
            let node = point.node(*id).expect("a node");
            matches!(point.specs[node.spec as usize], Spec::Lb(_))
        };
        let lb = (0..point.nodes.len() as NodeId).find(is_lb).expect("a balancer");
        let Some(Edge::List(list)) = point.node(lb).map(|node| node.to) else { panic!("it has targets") };
        let nodes = find_nodes(point, lb, &find_members(point, withdrawn));
        let targets = point.lists[list as usize].iter().enumerate();
        targets.filter(|(_, node)| nodes.contains(node)).map(|(at, _)| at).collect()
    }

    #[test]
    fn a_member_is_found_by_its_fleet_and_its_id() {
        let point = make_point();
        let of = |a: Vec<MemberKey>, b: Vec<MemberKey>| find_targets(&point, &[(0, a), (1, b)]);
        assert_eq!(of(vec![], vec![]), [0; 0]);
        assert_eq!(of(vec![key(Some("x"))], vec![]), [0]);
        assert_eq!(of(vec![key(Some("y"))], vec![]), [1]);
        assert_eq!(of(vec![], vec![key(Some("x"))]), [2]);
        assert_eq!(of(vec![key(Some("x")), key(Some("y"))], vec![key(Some("x"))]), [0, 1, 2]);
        // Another member of that address, and one that is served no more.
        assert_eq!(of(vec![key(None)], vec![key(Some("y"))]), [0; 0]);
        assert_eq!(find_targets(&point, &[(7, vec![key(Some("x"))])]), [0; 0]);
    }
}
