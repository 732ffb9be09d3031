//! What stands behind what: which nodes a limit can cut off, which errors can come back to a balancer.

use crate::blocks::{Layout, inside, spare};
use weir_topology::plan::{Spec, To};

impl Layout<'_> {
    /// The nodes where a request can be cut off: behind a limit, and everywhere if its client can leave.
    pub fn can_be_cut(&self, everywhere: bool) -> Vec<bool> {
        self.behind(everywhere, |spec| matches!(spec, Spec::Timeout { time_ns: Some(_) }))
    }

    /// The nodes behind such ones, or all.
    pub fn behind(&self, all: bool, such: impl Fn(&Spec) -> bool) -> Vec<bool> {
        let point = self.point;
        let mut behind = vec![false; point.nodes.len()];
        let mut list_behind = vec![false; point.lists.len()];
        behind[self.root as usize] = all;
        // Nodes come after all that they lead to.
        for id in (0..point.nodes.len()).rev() {
            let is_such = || such(&point.specs[point.nodes[id].spec as usize]);
            if !self.reachable[id] || !(behind[id] || is_such()) {
                continue;
            }
            if let Some(spare) = spare(point, id as u32) {
                behind[spare as usize] = true;
            }
            match inside(point, id as u32) {
                To::None => {}
                To::Node(child) => behind[child as usize] = true,
                To::List(l) => {
                    if !std::mem::replace(&mut list_behind[l as usize], true) {
                        point.lists[l as usize].iter().for_each(|&t| behind[t as usize] = true);
                    }
                }
            }
        }
        behind
    }

    /// The nodes that lead to such ones, and those themselves.
    pub fn leads_to(&self, such: impl Fn(&Spec) -> bool) -> Vec<bool> {
        let point = self.point;
        let mut leads = vec![false; point.nodes.len()];
        let mut of_list: Vec<Option<bool>> = vec![None; point.lists.len()];
        for id in (0..point.nodes.len()).filter(|&id| self.reachable[id]) {
            let beyond = match inside(point, id as u32) {
                To::None => false,
                To::Node(child) => leads[child as usize],
                To::List(l) => *of_list[l as usize]
                    .get_or_insert_with(|| point.lists[l as usize].iter().any(|&t| leads[t as usize])),
            };
            let aside = spare(point, id as u32).is_some_and(|spare| leads[spare as usize]);
            leads[id] = beyond || aside || such(&point.specs[point.nodes[id].spec as usize]);
        }
        leads
    }
}
