//! How a branch moves: into stages, past them, and out of them again.

#[cfg(test)]
use super::Sabotage;
use super::{Flow, Reference};
use crate::code::SlotId;
use crate::reference::branch::{Branch, Frame};
use crate::reference::build::NONE;
use crate::reference::build::{Act, Next};

impl Reference<'_> {
    /// Runs a branch, and those that it sends in or that waited for it, until all must wait.
    pub(in crate::reference) fn run_branch(&mut self, slot: SlotId, flow: Flow) {
        let (mut slot, mut flow) = (slot, flow);
        loop {
            flow = match flow {
                Flow::In => self.enter(slot),
                Flow::On => self.inwards(slot),
                Flow::Back => self.back(slot),
                Flow::Out => self.outwards(slot),
                Flow::Switch(other) => {
                    slot = other;
                    Flow::Out
                }
                Flow::Begin(other) => {
                    slot = other;
                    Flow::In
                }
                Flow::Stop => return,
            }
        }
    }

    /// From a stage to what is behind it.
    pub(in crate::reference) fn inwards(&mut self, slot: SlotId) -> Flow {
        let branch = &mut self.branches.slots[slot.index()];
        match self.tables.nodes[branch.stage as usize].next {
            Next::Stage => branch.stage += 1,
            Next::Leaf => {
                let outcome = branch.outcome;
                self.note_answer(slot, outcome);
                return Flow::Back;
            }
            Next::Call(call) => {
                let (stage, member) = (branch.stage, branch.member);
                self.branches.push_frame(slot, Frame { stage, member, ..Frame::default() });
                let target = self.call_target(call, member);
                let branch = &mut self.branches.slots[slot.index()];
                (branch.stage, branch.member) = (target.pc, target.member);
            }
        }
        Flow::In
    }

    /// From a stage to the one around it.
    pub(in crate::reference) fn outwards(&mut self, slot: SlotId) -> Flow {
        let branch = &mut self.branches.slots[slot.index()];
        let node = &self.tables.nodes[branch.stage as usize];
        if let Some(kind) = branch.outcome
            && branch.selected
        {
            let part = self.code.row(node.part, branch.member) as u32;
            self.ledger.error_at(part as usize, kind);
        }
        if let (Act::Hop { .. }, NONE) = (node.act, branch.check) {
            // It knows by itself what went wrong; the side before it is answered.
            self.leave_hop(slot);
        }
        let branch = &mut self.branches.slots[slot.index()];
        if branch.stage == branch.floor_stage && branch.depth == branch.floor_depth {
            return self.branch_ends(slot);
        }
        if branch.stage == node.first {
            branch.depth -= 1;
            let depth = branch.depth;
            let Frame { stage, member, .. } = self.branches.frame(slot, depth);
            let branch = &mut self.branches.slots[slot.index()];
            (branch.stage, branch.member) = (stage, member);
        } else {
            branch.stage -= 1;
        }
        Flow::Back
    }

    pub(in crate::reference) fn branch_ends(&mut self, slot: SlotId) -> Flow {
        let branch = &self.branches.slots[slot.index()];
        let (parent, wanted) = (branch.parent, branch.wanted);
        #[cfg(test)]
        if self.sabotage == Some(Sabotage::LoseBranch) && self.clients.issued >= 100 {
            return Flow::Stop;
        }
        if parent.is_some() {
            return self.child_ends(slot, parent);
        }
        if branch.check != NONE {
            self.leave_cell(slot);
            let check = self.branches.slots[slot.index()];
            self.stops(slot);
            self.branches.remove(slot);
            self.check_ends(&check);
            return Flow::Stop;
        }
        self.leave_cell(slot);
        self.work_ends(slot);
        if wanted {
            self.end_request(slot);
        } else {
            let Branch { stage, member, .. } = self.branches.slots[slot.index()];
            self.leaves_node(stage, member);
            self.spend_notes(slot);
        }
        self.stops(slot);
        self.branches.remove(slot);
        Flow::Stop
    }
}
