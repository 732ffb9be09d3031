//! Compiles listeners behind others.

use crate::code::HopSite;
use crate::code::{ColdOp, NOT, Op};
use crate::compile::blocks::Draft;
use crate::compile::{Compiler, Post};
use weir_model::draws::of_place as purpose;

impl Compiler<'_> {
    /// Emits a listener behind another.
    pub(crate) fn hop(&mut self, loops: u32, place: u32, draft: &Draft, position: usize) -> Option<Post> {
        let key = self.layout.draw_key(&mut self.code, purpose::HOP, place);
        self.code.details = true;
        let offset = self.connections.add_instances(&draft.nodes[position], loops, draft.base);
        self.code.hops.push(HopSite { loops, key, visits: None, end: NOT, offset });
        let hop = self.code.hops.len() as u32 - 1;
        self.op(Op::Cold(ColdOp::EnterListener { hop }), &[]);
        Some(Post::Op(Op::Cold(ColdOp::LeaveListener { hop })))
    }
}
