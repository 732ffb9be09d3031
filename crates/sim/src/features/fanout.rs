//! `fanout`: requests go to all nodes at once, until enough answers are ok.
//!
//! - In virtual time: each branch begins at that instant in its turn, the next one once the one before has begun. The
//!   parent goes on when one has decided.
//! - Given back when cut off: what the branches hold that are still open.
//! - Draws: each branch draws by itself, as it is on a way of its own.

use crate::code::{MemberId, SlotId};
use crate::engine::Engine;
use crate::state::request_state::{BEGINS, FAN};
use weir_model::draws::purpose;
use weir_model::way::further;

impl Engine<'_> {
    /// A request goes to all nodes of a list.
    pub(crate) fn fan_out(
        &mut self,
        slot: SlotId,
        fan: u32,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) {
        let (_, len) = self.group_list(fan, member);
        let frames = self.frames_within(slot, depth);
        self.leave_at(slot, (pc as u32 + 1) | FAN, member, depth);
        let group = self.features.branches.open_group(slot);
        (group.site, group.pc, group.len, group.open) = (fan, pc as u32 + 1, len, len);
        (group.since, group.depth) = (now_ns, frames);
        if len > 0 {
            self.send_part(slot, 0, now_ns);
        }
    }

    /// Sends in the branch with that index: woken rather than run, since one may decide before the last has begun.
    pub(crate) fn send_part(&mut self, parent: SlotId, index: u32, now_ns: u64) {
        let Some(group) = self.features.branches.group(parent) else { return };
        let (fan, back, len, depth) = (group.site, group.pc, group.len, group.depth);
        let child = self.send_in(parent, index, len, now_ns);
        let member = self.core.state(parent).member;
        let turn = self.core.states_mut().rows.turns.count(parent);
        self.core
            .states_mut()
            .begin_way(child, |key| further(key, purpose::BRANCH, depth << 32 | u64::from(index), turn));
        let (list, _) = self.group_list(fan, member);
        let target = self.core.code().lists[list].get(self.core.code(), index);
        self.core.states_mut().set_frame(child, 0, [back, member.0, index]);
        self.leave_at(child, target.pc | BEGINS, target.member, 1);
        self.core.scope_mut(child).base_depth = 1;
        self.wake(child, now_ns);
    }

    /// A branch has returned.
    pub(crate) fn part_ends(&mut self, slot: SlotId, now_ns: u64) {
        let outcome = self.core.state(slot).outcome();
        let detail = self.features.details.slots[slot.index()];
        let parent = self.features.branches.parent(slot);
        self.features.branches.strike(slot);
        let Some(group) = self.features.branches.group(parent) else { return };
        let need = self.core.code().groups.sites[group.site as usize].need;
        group.open -= 1;
        group.ok += u32::from(outcome.is_none());
        let pc = group.pc;
        let decided = if outcome.is_none() { group.ok == need } else { group.ok + group.open < need };
        if !decided {
            self.spend_notes(slot);
            return self.remove_branch(slot, now_ns);
        }
        self.move_notes(slot, parent);
        self.remove_branch(slot, now_ns);
        self.cut_branches(parent, false, false, now_ns);
        self.resume(parent, pc + 1, outcome, detail.answer());
    }
}
