//! Nodes that a request visits several times on one way, which takes a `sequence`: each visit makes a choice, or
//! begins a way, of its own. Most topologies have no such node, and then nothing is kept.

use crate::code::{MemberId, SlotId};
use crate::engine::Engine;

/// Marks in [`crate::state::request_details::Detail::came`] that a request asks its balancer again.
const RETAKES: u32 = 1 << 31;

impl Engine<'_> {
    fn come_again(&mut self, slot: SlotId, counter: Option<u32>) -> u32 {
        counter.map_or(0, |counter| self.core.states_mut().visit(slot, counter))
    }

    /// A request arrives at a balancer: counts the visit, for the pick.
    pub(crate) fn comes_to_balancer(&mut self, slot: SlotId, lb: u32, member: MemberId) {
        let code = self.core.code();
        if code.again.lbs.is_empty() {
            return;
        }
        let came = self.features.details.slots[slot.index()].came;
        let balancer = member.number_from(code.lbs[lb as usize].offset);
        let came = match came & RETAKES {
            0 => self.come_again(slot, code.again.lbs.get(&balancer).copied()),
            _ => came & !RETAKES,
        };
        self.features.details.slots[slot.index()].came = came;
    }

    /// A request will ask its balancer again.
    pub(crate) fn will_retake(&mut self, slot: SlotId) {
        if !self.core.code().again.lbs.is_empty() {
            self.features.details.slots[slot.index()].came |= RETAKES;
        }
    }

    /// How often a request that arrives at a choice has been there.
    pub(crate) fn comes_to_choice(&mut self, slot: SlotId, node: u32) -> u32 {
        self.come_again(slot, self.core.code().again.choices.get(&node).copied())
    }

    /// A request enters a retry that may not be the first on its way.
    pub(crate) fn comes_to_retry(&mut self, slot: SlotId, retry: u32, member: MemberId) {
        let code = self.core.code();
        let node = member.number_from(code.retries[retry as usize].nodes);
        let came = self.come_again(slot, code.again.retries.get(&node).copied());
        self.core.states_mut().note_turn(slot, came);
    }
}
