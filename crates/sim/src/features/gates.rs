//! Gates: requests are counted, and checks that come back are judged.

use crate::code::{MemberId, SlotId};
use crate::engine::Engine;
use crate::state::gates::find_others;
use crate::state::probes::NONE;
use crate::state::request_details::Detail;

impl Engine<'_> {
    /// A request passes.
    pub(crate) fn enter_gate(&mut self, gate: u32, member: MemberId) {
        let site = &self.core.code().gates.sites[gate as usize];
        self.features.gates[member.index_from(site.offset)].enter();
    }

    /// A check comes in, which may begin the clock.
    pub(crate) fn check_enters_gate(&mut self, slot: SlotId, gate: u32, member: MemberId, now_ns: u64) {
        if self.asks_gates(slot) {
            let site = &self.core.code().gates.sites[gate as usize];
            self.features.gates[member.index_from(site.offset)].asked(now_ns);
        }
    }

    /// A check comes back, and is answered by the gate if the node behind is well.
    pub(crate) fn check_leaves_gate(&mut self, slot: SlotId, gate: u32, member: MemberId, now_ns: u64) {
        if !self.asks_gates(slot) {
            return;
        }
        let code = self.core.code();
        let index = member.number_from(code.gates.sites[gate as usize].offset);
        let Detail { check: (balancer, _), .. } = self.features.details.slots[slot.index()];
        let Some(guard) = self.features.guards.get(balancer) else { return };
        let source = code.guards.sites[guard.site as usize].check_source;
        let asker = code.gates.asker(index, source, guard.picks);
        let is_well = self.core.state(slot).outcome().is_none();
        let lines = code.lines.lines.iter().zip(&self.features.lines.state);
        let lines = lines.map(|(site, state)| (&site.anew[..], state.looks_up(&site.law, now_ns)));
        let changes = code.changes.as_deref().map(|tables| (tables, &self.features.changes));
        let others = find_others(&code.gates, &self.features.gates, index, now_ns, lines, changes);
        let answer = self.features.gates[index as usize].answer(now_ns, asker, is_well, &others);
        if is_well && !answer.is_healthy() {
            self.features.details.slots[slot.index()].status = 503;
        }
    }

    /// Whether it is a check by HTTP: a connection passes, and so does a probe.
    fn asks_gates(&mut self, slot: SlotId) -> bool {
        self.features.details.slots[slot.index()].probe == NONE && !self.connects_only(slot)
    }
}
