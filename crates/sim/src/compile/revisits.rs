//! Finds the nodes that a request can pass several times on one way, and gives them counters.

use crate::code::Code;
use crate::code::StageId;
use crate::code::revisits::VisitCounters;
use crate::compile::blocks::Layout;
use weir_model::OnCancel;
use weir_plan::{NodeId, Spec};

/// The choosing nodes that one way from the root can pass more than once.
pub(crate) fn passed_again(layout: &Layout) -> Vec<bool> {
    let mut again = vec![false; layout.point.nodes.len()];
    if !layout.has_sequences() {
        return again;
    }
    for (id, spec) in layout.reached() {
        if let Spec::Lb(_) | Spec::Route { .. } | Spec::Split { .. } | Spec::Retry(_) = spec {
            again[id as usize] = layout.most_visits_of(|node| node == id) > 1;
        }
    }
    again
}

impl Layout<'_> {
    /// Whether a request can visit one node after another.
    pub fn has_sequences(&self) -> bool {
        self.reached().any(|(_, spec)| matches!(spec, Spec::Sequence))
    }

    /// Whether a branch that a fan-out has left behind may still be on its way when its parent sends in others.
    pub fn leaves_branches(&self) -> bool {
        let goes_on = |spec: &Spec| match spec {
            Spec::Queue { on_cancel, .. } | Spec::Concurrent { on_cancel, .. } => {
                *on_cancel != OnCancel::Stop
            }
            _ => false,
        };
        self.has_branches() && self.has_sequences() && self.reached().any(|(_, spec)| goes_on(spec))
    }
}

impl VisitCounters {
    /// Gives a counter to each such node. `again` is [`passed_again`].
    pub fn find(layout: &Layout, code: &mut Code, again: &[bool]) {
        let mut found = VisitCounters::default();
        let places = |stage: StageId, offset: u32| (stage, offset);
        let lbs: Vec<_> = code.lbs.iter().map(|lb| places(lb.stage, lb.offset)).collect();
        let choices: Vec<_> = code.kinds.choices.iter().map(|c| places(c.stage, c.offset)).collect();
        let retries: Vec<_> = code.retries.iter().map(|r| places(r.stage, r.nodes)).collect();
        if !again.iter().any(|again| *again) {
            return;
        }
        for (places, counters) in
            [(lbs, &mut found.lbs), (choices, &mut found.choices), (retries, &mut found.retries)]
        {
            for (stage, offset) in places {
                let stage = &code.stages[stage.index()];
                let nodes: &[NodeId] = &stage.nodes;
                for (&node, member) in nodes.iter().zip(code.blocks[stage.block as usize].base..) {
                    if again[node as usize] {
                        counters.insert(member.wrapping_add(offset), code.visits as u32);
                        code.visits += 1;
                    }
                }
            }
        }
        debug_assert!(layout.has_sequences());
        code.again = found;
    }
}
