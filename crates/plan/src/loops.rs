//! How many event loops are before each node, and which listeners' loops have subsets.

use crate::ways::down;
use crate::{Edge, Lb, NodeId, Point, Spec};

/// By node: the most event loops of a listener before it, 1 where there is none; `None`: as many as the machine has.
pub fn most_loops(point: &Point) -> Vec<Option<u32>> {
    let own = |id: NodeId, before: Option<u32>| match point.spec(id) {
        Some(Spec::Listen(listen)) => listen.loops.map(|loops| before.unwrap_or(1).max(loops)),
        _ => before,
    };
    let most = |a: Option<u32>, b: Option<u32>| a.zip(b).map(|(a, b)| a.max(b));
    down(point, vec![Some(1); point.nodes.len()], |id, _, before| own(id, before), most)
}

/// By node: whether it leads to a balancer with a subset without another listener in between. What such a listener's loops
/// carry is what their subsets' targets get.
pub fn leads_to_subsets(point: &Point) -> Vec<bool> {
    let has_subset = |spec: &Spec| matches!(spec, Spec::Lb(Lb { subset: Some(_), .. }));
    let (mut leads, mut lists) = (vec![false; point.nodes.len()], vec![None; point.lists.len()]);
    if !point.specs.iter().any(has_subset) {
        return leads;
    }
    // A node comes after all that it leads to.
    for (id, node) in point.nodes.iter().enumerate() {
        let Some(spec) = point.specs.get(node.spec as usize) else { continue };
        let goes_on =
            |next: NodeId| leads[next as usize] && !matches!(point.spec(next), Some(Spec::Listen(_)));
        let behind = match node.to {
            Edge::None => false,
            Edge::Node(next) => goes_on(next),
            Edge::List(list) => *lists[list as usize]
                .get_or_insert_with(|| point.lists[list as usize].iter().any(|next| goes_on(*next))),
        };
        leads[id] = has_subset(spec) || behind || spec.aside().is_some_and(goes_on);
    }
    leads
}
