//! Compiles fan-outs: all nodes of a list at once.

use crate::code::Op;
use crate::compile::blocks::Draft;
use crate::compile::{Compiler, Post};

impl Compiler<'_> {
    pub(crate) fn fanout(&mut self, stage: u32, draft: &Draft, position: usize, need: u32) -> Option<Post> {
        let group = self.code.groups.add(&self.layout, stage, draft, (position, need));
        self.op(Op::BeginBranches { group }, &[]);
        Some(Post::Parts { group })
    }
}
