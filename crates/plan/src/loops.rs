//! How many event loops are before each node.

use crate::ways::down;
use crate::{NodeId, Point, Spec};

/// By node: the most event loops of a listener before it, 1 where there is none; `None`: as many as the machine has.
pub fn most_loops(point: &Point) -> Vec<Option<u32>> {
    let own = |id: NodeId, before: Option<u32>| match point.spec(id) {
        Some(Spec::Listen(listen)) => listen.loops.map(|loops| before.unwrap_or(1).max(loops)),
        _ => before,
    };
    let most = |a: Option<u32>, b: Option<u32>| a.zip(b).map(|(a, b)| a.max(b));
    down(point, vec![Some(1); point.nodes.len()], |id, _, before| own(id, before), most)
}
