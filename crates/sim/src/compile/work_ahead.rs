//! Compiles the work that `lb.least_work` uses before it is done.

use crate::code::KnownWork;
use crate::code::StageId;
use crate::code::{ColdOp, NOT, Op};
use crate::compile::{Compiler, Post};
use weir_model::Dist;
use weir_model::draws::of_place as purpose;
use weir_model::sampler::Sampler;

impl Compiler<'_> {
    /// Emits a `delay`, whose work some balancer may use.
    pub(crate) fn delay(&mut self, time: &Dist, place: u32, stage: StageId, nodes: &[u32]) -> Option<Post> {
        if nodes.iter().any(|&n| self.known_work[n as usize]) {
            self.delay_known(time, place, stage);
        } else {
            self.wait(time, purpose::WORK, place, stage, true, None);
        }
        None
    }

    fn delay_known(&mut self, time: &Dist, place: u32, stage: StageId) {
        let work = self.code.known_work.len() as u32;
        self.op(Op::Cold(ColdOp::BeginWork { work }), &[]);
        let draw = self.code.draws.len() as u32;
        self.wait(time, purpose::WORK, place, stage, true, None);
        let drawn = self.code.draws.len() as u32 > draw;
        let ns = Sampler::new(time).constant().filter(|_| !drawn).unwrap_or(0);
        self.code.known_work.push(KnownWork { ns, draw: if drawn { draw } else { NOT } });
        self.op(Op::Cold(ColdOp::EndWork), &[]);
    }
}
