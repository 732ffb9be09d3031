//! Which nodes belong to a process alone: those that every way from the entrance passes it for.

use crate::code::NOT;
use crate::compile::blocks::{Layout, inside, spare};
use std::collections::BTreeSet;
use weir_plan::{Edge, NodeId};

/// By node, the innermost process around it.
pub(crate) struct Owners {
    /// By node; [`NOT`]: none.
    of: Vec<u32>,
}

/// No way has come to a node so far.
const UNSEEN: u32 = NOT - 1;

impl Owners {
    /// Of the processes that begin at these nodes.
    pub fn new(layout: &Layout, entrances: &BTreeSet<NodeId>) -> Owners {
        let mut owners = Owners { of: vec![UNSEEN; layout.point.nodes.len()] };
        owners.of[layout.root as usize] = NOT;
        let mut lists = vec![UNSEEN; layout.point.lists.len()];
        // Nodes come after all that they lead to.
        for id in (0..layout.point.nodes.len() as NodeId).rev() {
            if !layout.reachable[id as usize] || owners.of[id as usize] == UNSEEN {
                continue;
            }
            let own = if entrances.contains(&id) { id } else { owners.of[id as usize] };
            spare(layout.point, id).into_iter().for_each(|node| owners.meet(node, own));
            match inside(layout.point, id) {
                Edge::None => {}
                Edge::Node(node) => owners.meet(node, own),
                Edge::List(list) if lists[list as usize] == own => {}
                Edge::List(list) => {
                    lists[list as usize] = own;
                    layout.point.lists[list as usize].iter().for_each(|node| owners.meet(*node, own));
                }
            }
        }
        owners
    }

    /// A way from a process, or from outside of all, comes to a node.
    fn meet(&mut self, node: NodeId, from: u32) {
        let before = self.of[node as usize];
        self.of[node as usize] = if before == UNSEEN { from } else { self.common(before, from) };
    }

    /// The innermost process that is around both.
    fn common(&self, mut a: u32, mut b: u32) -> u32 {
        // What is around a process has a higher number.
        while a != b {
            match a < b {
                true => a = self.of[a as usize],
                false => b = self.of[b as usize],
            }
        }
        a
    }

    /// The processes around a node, from the inside out.
    pub fn around(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let known = |id: u32| (id != NOT && id != UNSEEN).then_some(id);
        std::iter::successors(known(self.of[node as usize]), move |id| known(self.of[*id as usize]))
    }
}
