//! Nodes with several nodes behind them: one after another, or all at once.

use super::branch::{Frame, Phase};
use super::build::Act;
use super::run::{Flow, Reference};
use crate::code::bounds::Cut;
use crate::code::{MemberId, SlotId};
use weir_model::draws::purpose;
use weir_model::way::further;
use weir_policy::Kind;

impl Reference<'_> {
    /// Sends a branch to the node with that index of a `sequence`, or back when it has visited all of them.
    pub(super) fn step_into(&mut self, slot: SlotId, group: u32, index: u32) -> Flow {
        let branch = &self.branches.slots[slot.index()];
        let (stage, member) = (branch.stage, branch.member);
        let (list, len) = self.group_list(group, member);
        if index == len {
            return Flow::Out;
        }
        let target = self.code.lists[list].get(self.code, index);
        self.branches.push_frame(slot, Frame { stage, member, index, ..Frame::default() });
        let branch = &mut self.branches.slots[slot.index()];
        (branch.stage, branch.member) = (target.pc, target.member);
        // The answer of the previous node is not the answer of this one.
        (branch.status, branch.load) = (0, None);
        Flow::In
    }

    pub(super) fn group_list(&self, group: u32, member: MemberId) -> (usize, u32) {
        let site = &self.tables.groups[group as usize];
        let list = self.tables.group_lists[member.index_from(site.offset)] as usize;
        (list, self.code.weights[list].len() as u32)
    }

    /// Sends a child into each node of a `fanout`.
    pub(super) fn fan_out(&mut self, slot: SlotId, group: u32) -> Flow {
        let branch = &mut self.branches.slots[slot.index()];
        branch.phase = Phase::Children;
        branch.since = self.now_ns;
        let (member, depth) = (branch.member, u64::from(branch.depth));
        let (list, len) = self.group_list(group, member);
        let turn = self.turn_of_ranks(slot);
        self.branches.child[slot.index()] = SlotId::NONE;
        let state = &mut self.branches.groups[slot.index()];
        state.hedging = None;
        state.branches.clear();
        (state.open, state.ok) = (len, 0);
        for index in 0..len {
            let target = self.code.lists[list].get(self.code, index);
            let child = self.branches.send_in(slot, target.pc, target.member, self.now_ns);
            self.branches.clear_visits(child);
            self.cells.enter(self.branches.slots[child.index()].cell);
            let branch = &mut self.branches.slots[child.index()];
            let position = depth << 32 | u64::from(index);
            branch.tries = further(branch.tries, purpose::BRANCH, position, branch.turn);
            branch.begin_way(purpose::BRANCH, position);
            branch.index = index;
            if !branch.take_ranks(index, len, turn) {
                self.cut = Some(Cut::TooManyBranches);
            }
            self.branches.groups[slot.index()].branches.push(child);
            if let Some(recorder) = &mut self.branches.recorder {
                recorder.branch(child);
            }
        }
        for index in 0..len as usize {
            let child = self.branches.groups[slot.index()].branches[index];
            // Woken rather than run: the first may decide before the last has begun.
            self.wake(child, Phase::Begin);
        }
        Flow::Stop
    }

    /// See [`crate::code::order::share_of_ranks`].
    pub(super) fn turn_of_ranks(&self, slot: SlotId) -> Option<u32> {
        self.code.leaves_branches.then_some(self.branches.slots[slot.index()].turn)
    }

    /// A child of `parent` has returned.
    pub(super) fn child_ends(&mut self, slot: SlotId, parent: SlotId) -> Flow {
        let branch = &self.branches.slots[slot.index()];
        let (outcome, status, turn) = (branch.outcome, branch.status, branch.turn);
        let (relayed, load) = (branch.relayed, branch.load);
        let stage = self.branches.slots[parent.index()].stage;
        if let Act::Fanout { group } = self.tables.nodes[stage as usize].act {
            return self.part_ends(slot, parent, group);
        }
        if let Act::Hedge { .. } = self.tables.nodes[stage as usize].act {
            return self.hedge_ends(slot, parent);
        }
        if self.tables.notes {
            self.move_notes(slot, parent);
        }
        self.branches.copy_visits(slot, parent);
        self.branches.slots[parent.index()].turn = turn;
        self.work_ends(slot);
        self.leave_cell(slot);
        self.stops(slot);
        self.branches.remove(slot);
        self.resume_parent(parent, outcome, status);
        let branch = &mut self.branches.slots[parent.index()];
        (branch.relayed, branch.load) = (relayed, load);
        Flow::Switch(parent)
    }

    /// A branch of a `fanout` has returned.
    fn part_ends(&mut self, slot: SlotId, parent: SlotId, group: u32) -> Flow {
        let need = self.tables.groups[group as usize].need;
        let branch = &self.branches.slots[slot.index()];
        let (outcome, status, index) = (branch.outcome, branch.status, branch.index);
        let (relayed, load) = (branch.relayed, branch.load);
        let state = &mut self.branches.groups[parent.index()];
        state.branches[index as usize] = SlotId::NONE;
        state.open -= 1;
        state.ok += u32::from(outcome.is_none());
        let decided = if outcome.is_none() { state.ok == need } else { state.ok + state.open < need };
        self.leave_cell(slot);
        if !decided {
            self.spend_notes(slot);
            self.stops(slot);
            self.branches.remove(slot);
            return Flow::Stop;
        }
        self.move_notes(slot, parent);
        self.stops(slot);
        self.branches.remove(slot);
        let open = std::mem::take(&mut self.branches.groups[parent.index()].branches);
        open.iter().filter(|b| b.is_some()).for_each(|b| self.cancel(*b, false));
        self.branches.groups[parent.index()].branches = open;
        self.branches.groups[parent.index()].branches.clear();
        self.branches.slots[parent.index()].turn += 1;
        self.resume_parent(parent, outcome, status);
        let branch = &mut self.branches.slots[parent.index()];
        (branch.relayed, branch.load) = (relayed, load);
        Flow::Switch(parent)
    }

    /// Ends a request that will never be answered.
    pub(super) fn lose_request(&mut self, slot: SlotId) {
        let branch = &self.branches.slots[slot.index()];
        if let Some(recorder) = &mut self.branches.recorder {
            recorder.end(slot, None, branch.outcome);
            recorder.count_end(None, branch.outcome, false);
        }
        #[cfg(test)]
        self.seen.answers.push((branch.order, branch.arrived, None, branch.outcome));
        let ledger = &mut self.ledger;
        ledger.ended += 1;
        ledger.latency_sum = ledger.latency_sum.wrapping_add(self.now_ns - branch.arrived);
        ledger.step(self.now_ns, false);
        if branch.selected {
            ledger.errors[Kind::Lost as usize] += 1;
        }
        ledger.aside.iter_mut().for_each(|aside| aside.lose(branch.arrived));
    }
}
