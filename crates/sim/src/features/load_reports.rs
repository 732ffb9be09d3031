//! Loads that servers report in their answers, for `lb.zuul`: the share of slots or cores that are busy.
//!
//! - In virtual time: none. The load is read in the turn in which the request has left, its place given away already, and
//!   travels with the answer.
//! - Given back when cut off: nothing.
//! - Draws: none.

use crate::code::{ColdOp, MemberId, SlotId};
use crate::engine::Engine;
use weir_model::busy::{share, share_of_slots};

impl Engine<'_> {
    /// A request has left what reports its load in this step.
    pub(crate) fn report_load(&mut self, slot: SlotId, op: ColdOp, member: MemberId) {
        match op {
            ColdOp::ReportSlots { queue } => self.report_slots(slot, queue, member),
            ColdOp::ReportCores { share } => self.report_cores(slot, share, member),
            _ => {}
        }
    }

    /// A request has left a queue.
    fn report_slots(&mut self, slot: SlotId, queue: u32, member: MemberId) {
        let site = &self.core.code().queues[queue as usize];
        let inside = self.core.queue(member.index_from(site.offset)).inside();
        self.report(slot, share_of_slots(inside, site.limits.concurrency));
    }

    /// A request has left a server that shares its cores.
    fn report_cores(&mut self, slot: SlotId, server: u32, member: MemberId) {
        let law = &self.core.code().shares[server as usize].law;
        let at = member.index_from(self.core.code().shares[server as usize].offset);
        let inside = self.features.shares.servers[at].state.inside();
        self.report(slot, share(law.busy_cores(inside), law.cores()));
    }

    /// A failed request reports nothing.
    fn report(&mut self, slot: SlotId, load: f32) {
        let has_failed = self.core.state(slot).has_failed();
        self.features.details.slots[slot.index()].load = (!has_failed).then_some(load);
    }
}
