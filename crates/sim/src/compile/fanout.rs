//! Compiles fan-outs: all nodes of a list at once.

use crate::code::StageId;
use crate::code::{ColdOp, Op};
use crate::compile::blocks::Draft;
use crate::compile::{Compiler, Post};

impl Compiler<'_> {
    pub(crate) fn fanout(
        &mut self,
        stage: StageId,
        draft: &Draft,
        position: usize,
        need: u32,
    ) -> Option<Post> {
        let group = self.code.groups.add(&self.layout, stage, draft, position, need);
        self.op(Op::Cold(ColdOp::BeginBranches { group }), &[]);
        Some(Post::Parts { group })
    }
}
