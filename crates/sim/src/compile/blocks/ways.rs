//! Properties of the paths behind a node: their depth, how often one passes a node, and the order of sites.

use super::{Layout, Nested, inside, spare};
use crate::code::Code;
use crate::code::StageId;
use weir_plan::{Edge, Mode, NodeId, Spec};

impl Layout<'_> {
    /// How often one way from the root can pass a site.
    pub fn most_visits(&self, place: u32) -> u32 {
        self.most_visits_of(|id| self.place(id) == place)
    }

    /// How often one way from the root can pass nodes with the property `such`.
    pub fn most_visits_of(&self, such: impl Fn(NodeId) -> bool) -> u32 {
        let mut behind = vec![0u32; self.point.nodes.len()];
        let mut of_list: Vec<Option<u32>> = vec![None; self.point.lists.len()];
        let mut most = 0;
        for id in 0..self.point.nodes.len() {
            if !self.reachable[id] {
                continue;
            }
            let beyond = match inside(self.point, id as u32) {
                Edge::None => 0,
                Edge::Node(child) => behind[child as usize],
                Edge::List(l) if self.is_sequence(id as u32) => self.point.lists[l as usize]
                    .iter()
                    .fold(0u32, |sum, &t| sum.saturating_add(behind[t as usize])),
                Edge::List(l) => *of_list[l as usize].get_or_insert_with(|| {
                    self.point.lists[l as usize].iter().map(|&t| behind[t as usize]).max().unwrap_or(0)
                }),
            };
            let beyond = spare(self.point, id as u32).map_or(beyond, |s| beyond.max(behind[s as usize]));
            behind[id] = beyond.saturating_add(u32::from(such(id as u32)));
            most = most.max(behind[id]);
        }
        most
    }

    pub(super) fn is_sequence(&self, id: NodeId) -> bool {
        matches!(self.point.specs[self.point.nodes[id as usize].spec as usize], Spec::Sequence)
    }

    /// The deepest nesting that a request from `root` passes.
    pub(super) fn depth(
        &self,
        root: NodeId,
        of: Nested,
        guarded: impl Fn(usize) -> bool,
    ) -> Result<usize, String> {
        let frames = of == Nested::Frames;
        let mut behind = vec![0u32; self.point.nodes.len()];
        let mut of_list: Vec<Option<u32>> = vec![None; self.point.lists.len()];
        for id in 0..=root as usize {
            if !self.reachable[id] {
                continue;
            }
            let counted = match &self.point.specs[self.point.nodes[id].spec as usize] {
                Spec::Retry(_) => of == Nested::Retries,
                Spec::Timeout { time_ns: Some(_) } => of == Nested::Limits,
                Spec::Faulty(fault) => of == Nested::Limits && fault.mode == Mode::Crash,
                Spec::Connection(_) => frames,
                _ => false,
            };
            behind[id] = u32::from(counted)
                + match inside(self.point, id as u32) {
                    Edge::None => 0,
                    Edge::Node(child) => {
                        behind[child as usize] + u32::from(self.head[child as usize] && frames)
                    }
                    Edge::List(l) => {
                        let most = of_list[l as usize].get_or_insert_with(|| {
                            self.point.lists[l as usize]
                                .iter()
                                .map(|&t| behind[t as usize])
                                .max()
                                .unwrap_or(0)
                        });
                        *most + u32::from(frames) + u32::from(frames && guarded(id))
                    }
                };
            if let Some(spare) = spare(self.point, id as u32) {
                behind[id] = behind[id].max(behind[spare as usize] + 2 * u32::from(frames));
            }
        }
        let depth = behind[root as usize] as usize;
        let (most, what) = match of {
            Nested::Frames => (10_000, "balancers and shared nodes"),
            Nested::Retries => (200, "retries"),
            Nested::Limits => (10_000, "limits"),
        };
        if depth > most {
            return Err(format!(
                "a request would pass {depth} {what} one inside another; {most} is the limit"
            ));
        }
        Ok(depth)
    }

    /// All stages, outside in, blocks in the order in which the first members lead to them.
    pub(super) fn order(&self, code: &Code, root_block: usize) -> Vec<StageId> {
        let mut order = Vec::new();
        let mut seen = vec![false; self.drafts.len()];
        let mut stack = vec![root_block];
        while let Some(block) = stack.pop() {
            if std::mem::replace(&mut seen[block], true) {
                continue;
            }
            order.extend(code.blocks[block].stages.clone().map(StageId));
            let mut next = Vec::new();
            for &node in self.drafts[block].nodes.last().into_iter().flatten() {
                if let Some(spare) = spare(self.point, node) {
                    next.push(self.block_of[spare as usize].0 as usize);
                }
                match inside(self.point, node) {
                    Edge::Node(child) => next.push(self.block_of[child as usize].0 as usize),
                    Edge::List(l) => {
                        let list = &self.point.lists[l as usize];
                        next.extend(list.iter().map(|&t| self.block_of[t as usize].0 as usize));
                    }
                    Edge::None => {}
                }
                next.retain(|b| *b != usize::MAX && !seen[*b]);
                next.dedup();
                if next.len() > 4 * self.drafts.len() {
                    next.sort_unstable();
                    next.dedup();
                }
            }
            next.reverse();
            stack.extend(next);
        }
        order
    }
}
