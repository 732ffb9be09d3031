//! Emits code for nodes that try again.

use super::{Compiler, Post};
use crate::code::StageId;
use crate::code::{ColdOp, Op, RetrySite};
use crate::compile::blocks::Draft;
use weir_policy::config::{Exclude, Retry};

impl Compiler<'_> {
    pub(super) fn retry(
        &mut self,
        stage: StageId,
        draft: &Draft,
        position: usize,
        config: &Retry,
    ) -> Option<Post> {
        let (site, _) = draft.chain[position];
        let place = self.layout.point.sites[site as usize].place;
        let retry = self.code.retries.len() as u32;
        self.code.excludes |= config.exclude != Exclude::None;
        if self.code.turns {
            self.op(Op::Cold(ColdOp::CountRetry { retry }), &[]);
        }
        self.op(Op::EnterRetry { retry }, &[]);
        let again = self.code.steps.len() as u32;
        if config.backoff_ns > 0 || config.budget.is_some() {
            self.code.cuts = true;
            self.op(Op::BeginAttempt { retry }, &[]);
        }
        let nodes = (self.code.retry_nodes.len() as u32).wrapping_sub(draft.base);
        let numbered = draft.nodes[position].iter().map(|&n| (place, self.layout.number[n as usize]));
        self.code.retry_nodes.extend(numbered);
        let budget = config.budget.as_ref().map(|budget| {
            let offset = (self.code.budgets.len() as u32).wrapping_sub(draft.base);
            self.code.budgets.extend(draft.nodes[0].iter().map(|_| budget.clone()));
            offset
        });
        let in_turn = self.here || !config.on_status.is_empty();
        self.code.details |= !config.on_status.is_empty();
        let repeats = self.code.repeat_count.wrapping_sub(draft.base);
        self.code.repeat_count += draft.nodes[0].len() as u32;
        self.code.stages[stage.index()].repeats = Some(repeats);
        self.code.retries.push(RetrySite {
            config: config.clone(),
            again,
            repeats,
            stage,
            nodes,
            budget,
            in_turn,
        });
        Some(Post::Op(Op::EndAttempt { retry }))
    }
}
