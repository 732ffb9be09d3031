//! Propagates properties down the graph to each node, over all paths at once.

use crate::{Edge, NodeId, Point, Spec};

/// Fills in what reaches each node. `at` holds what begins there; `pass` says which part of what reached a node it
/// passes on; where several things reach a node, `join` makes one of them (it must not matter in which order).
pub(crate) fn down<T: Copy + PartialEq>(
    point: &Point,
    mut at: Vec<T>,
    pass: impl Fn(NodeId, &Spec, T) -> T,
    join: impl Fn(T, T) -> T,
) -> Vec<T> {
    let mut lists: Vec<Option<T>> = vec![None; point.lists.len()];
    // A node comes after all that it leads to: going backwards, what reached a node is complete when it is looked at.
    for (id, node) in point.nodes.iter().enumerate().rev() {
        let id = u32::try_from(id).unwrap_or(u32::MAX);
        let Some(spec) = point.spec(id) else { continue };
        let handed = pass(id, spec, at[id as usize]);
        let mut reach = |next: NodeId, what: T| {
            let slot = &mut at[next as usize];
            *slot = join(*slot, what);
        };
        if let Some(aside) = spec.aside() {
            reach(aside, handed);
        }
        match node.to {
            Edge::None => {}
            Edge::Node(next) => reach(next, handed),
            Edge::List(list) => {
                // Many balancers over one long list mostly bring the same: it is walked only where something is new.
                let before = lists[list as usize];
                let now = before.map_or(handed, |before| join(before, handed));
                if before != Some(now) {
                    lists[list as usize] = Some(now);
                    point.lists[list as usize].iter().for_each(|next| reach(*next, now));
                }
            }
        }
    }
    at
}
