//! Compiles hedges: further attempts while the first is open.

use crate::code::HedgeSite;
use crate::code::StageId;
use crate::code::{ColdOp, NOT, Op};
use crate::compile::blocks::Draft;
use crate::compile::{Compiler, Post};
use weir_plan::HedgeSpec;

impl Compiler<'_> {
    pub(crate) fn hedge(&mut self, stage: StageId, hedged: &HedgeSpec, draft: &Draft) -> Option<Post> {
        let code = &mut self.code;
        let budget = hedged.budget.as_ref().map(|budget| {
            let offset = (code.budgets.len() as u32).wrapping_sub(draft.base);
            code.budgets.extend(draft.nodes[0].iter().map(|_| budget.clone()));
            offset
        });
        let repeats = code.repeat_count.wrapping_sub(draft.base);
        code.repeat_count += draft.nodes[0].len() as u32;
        code.stages[stage.index()].repeats = Some(repeats);
        code.stages[stage.index()].parallel = true;
        code.hedges.push(HedgeSite { config: hedged.hedge.clone(), budget, stage, repeats, end: NOT });
        let hedge = code.hedges.len() as u32 - 1;
        self.op(Op::Cold(ColdOp::EnterHedge { hedge }), &[]);
        Some(Post::Op(Op::Cold(ColdOp::LeaveHedge { hedge })))
    }
}
