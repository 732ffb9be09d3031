//! Emits code for processes that pause, and finds which of them stops what.

use super::Compiler;
use crate::code::{DrawSite, NOT, Op, StageId};
use crate::compile::blocks::Draft;
use weir_model::draws::of_place as purpose;
use weir_model::sampler::Sampler;
use weir_plan::{NodeId, Spec};

impl Compiler<'_> {
    /// The pauses that stop a stage, where any does.
    pub(super) fn pauses_of(&mut self, draft: &Draft, position: usize) -> Option<u32> {
        let process = |this: &Self, node: NodeId| this.process_of[node as usize];
        if draft.nodes[position].iter().all(|&node| process(self, node).is_none()) {
            return None;
        }
        // Requests carry what lengthens their work.
        self.code.details = true;
        let offset = (self.code.lines.pauses.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let line = process(self, node).map_or(NOT, |process| self.pause_line(process));
            self.code.lines.pauses.push(line);
        }
        Some(offset)
    }

    /// The pauses of a stage of nodes that pause.
    pub(super) fn own_pauses(&mut self, draft: &Draft, position: usize) -> u32 {
        let offset = (self.code.lines.pauses.len() as u32).wrapping_sub(draft.base);
        for &node in &draft.nodes[position] {
            let line = self.pause_line(node);
            self.code.lines.pauses.push(line);
        }
        offset
    }

    /// The timeline of a node that pauses.
    pub(super) fn pause_line(&mut self, node: NodeId) -> u32 {
        if let Some(&known) = self.pause_lines.get(&node) {
            return known;
        }
        let point = self.layout.point;
        let Spec::Faulty(fault) = &point.specs[point.nodes[node as usize].spec as usize] else { return NOT };
        let line = self.line(fault, node);
        self.pause_lines.insert(node, line);
        line
    }

    /// A request that enters or leaves a process waits until it goes on.
    pub(super) fn wait_for_process(&mut self, pause: u32, stage: StageId, site: u32, inwards: bool) {
        let place = self.layout.point.sites[site as usize].place;
        let key = self.layout.draw_key(&mut self.code, purpose::WORK, place);
        self.code.draws.push(DrawSite {
            sampler: Sampler::Fixed(0),
            part: self.code.stages[stage.index()].part,
            key,
            visits: None,
            stage,
            inwards,
            scaled: true,
            loss: None,
            crosses: true,
            pause: Some(pause),
        });
        self.op(Op::WaitDrawn { draw: self.code.draws.len() as u32 - 1 }, &[]);
    }
}
