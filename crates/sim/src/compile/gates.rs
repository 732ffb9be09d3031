//! Emits code for gates: requests are counted, checks are judged.

use crate::code::changes::Birth;
use crate::code::{ColdOp, Op};
use crate::compile::{Compiler, Post};
use weir_policy::gate::GateArgs;

impl Compiler<'_> {
    /// A gate counts what comes in, and judges what comes back from a check.
    pub(crate) fn gate(&mut self, args: &GateArgs, base: u32, nodes: &[u32]) -> Option<Post> {
        let gates = (self.code.gates.of.len() as u32..).map(Birth::Gate);
        self.beginnings.extend(nodes.iter().copied().zip(gates));
        let layout = &self.layout;
        let of = nodes.iter().map(|&node| (node, layout.place(node), layout.number[node as usize]));
        let gate = self.code.gates.add(args, base, of);
        self.code.details = true;
        self.op(Op::Cold(ColdOp::EnterGate { gate }), &[]);
        Some(Post::Op(Op::Cold(ColdOp::LeaveGate { gate })))
    }
}
