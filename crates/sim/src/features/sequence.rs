//! `sequence`: requests visit one node after another.
//!
//! - In virtual time: none of its own. The next node is visited in its turn, once the one before has succeeded; a
//!   frame holds the index.
//! - Given back when cut off: nothing.
//! - Draws: none; visits of one way are distinguished by [`crate::features::revisits`].

use crate::code::{MemberId, SlotId};
use crate::engine::Engine;

impl Engine<'_> {
    /// The list of a node with several behind it, and its length.
    pub(crate) fn group_list(&self, group: u32, member: MemberId) -> (usize, u32) {
        let site = &self.core.code().groups.sites[group as usize];
        let list = self.core.code().groups.lists[member.index_from(site.offset)] as usize;
        (list, self.core.code().weights[list].len() as u32)
    }

    /// Sends a request to the node with that index of a sequence, to return to the step `back`; or past that, when it
    /// has visited all of them.
    pub(crate) fn go_to_next(&mut self, slot: SlotId, group: u32, back: usize, index: u32) {
        let state = self.core.state(slot);
        let (member, depth, selected) = (state.member, usize::from(state.depth), state.selected());
        let (list, len) = self.group_list(group, member);
        if index == len {
            return self.leave_at(slot, back as u32 + 1, member, depth);
        }
        let target = self.core.code().lists[list].get(self.core.code(), index);
        self.core.states_mut().set_frame(slot, depth, [back as u32, member.0, index]);
        self.leave_at(slot, target.pc, target.member, depth + 1);
        self.core.count_entries(target.member, i32::from(selected));
        // The answer of the previous node is not the answer of this one.
        let detail = &mut self.features.details.slots[slot.index()];
        (detail.status, detail.load) = (0, None);
    }

    /// A request has returned from one of the nodes.
    pub(crate) fn go_on_in_sequence(&mut self, slot: SlotId, group: u32, pc: usize) {
        let state = self.core.state_mut(slot);
        state.depth -= 1;
        let (member, depth) = (state.member, usize::from(state.depth));
        if state.has_failed() {
            return self.count_errors(slot, member, pc);
        }
        let [_, _, index] = self.core.states().frame(slot, depth);
        self.go_to_next(slot, group, pc, index + 1);
    }
}
