//! Compiles nodes that lead to several, one after another.

use crate::code::GroupSite;
use crate::code::Groups;
use crate::code::StageId;
use crate::code::{ColdOp, Op};
use crate::compile::blocks::{Draft, Layout};
use crate::compile::{Compiler, Post};
use weir_plan::Edge;

impl Groups {
    /// Adds a site; returns its number.
    pub fn add(&mut self, layout: &Layout, stage: StageId, draft: &Draft, position: usize, need: u32) -> u32 {
        let offset = (self.lists.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let Edge::List(list) = layout.point.nodes[node as usize].to else { continue };
            self.lists.push(list);
        }
        self.sites.push(GroupSite { need, offset, stage });
        self.sites.len() as u32 - 1
    }
}

impl Compiler<'_> {
    pub(crate) fn sequence(&mut self, stage: StageId, draft: &Draft, position: usize) -> Option<Post> {
        self.code.details = true;
        let group = self.code.groups.add(&self.layout, stage, draft, position, 0);
        self.op(Op::Cold(ColdOp::EnterSequence { group }), &[]);
        Some(Post::Op(Op::Cold(ColdOp::NextInSequence { group })))
    }
}
