//! Compiles servers that warm up.

use crate::code::WarmupSite;
use crate::code::changes::Birth;
use crate::code::{ColdOp, Op};
use crate::compile::{Compiler, Post};
use weir_model::warmup;

impl Compiler<'_> {
    pub(crate) fn warmup(&mut self, law: warmup::Law, base: u32, nodes: &[u32]) -> Option<Post> {
        let offset = self.code.warmup_count.wrapping_sub(base);
        for &node in nodes {
            self.beginnings.insert(node, Birth::Warmup(self.code.warmup_count));
            self.code.warmup_count += 1;
        }
        self.code.details = true;
        self.code.warmups.push(WarmupSite { law, offset });
        self.op(Op::Cold(ColdOp::EnterWarmup { warmup: self.code.warmups.len() as u32 - 1 }), &[]);
        Some(Post::Op(Op::Cold(ColdOp::LeaveScaled { slow: false })))
    }
}
