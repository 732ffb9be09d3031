//! Listeners behind other listeners: each begins a hop of its own.

use super::run::{Flow, Reference};
use crate::code::SlotId;
use crate::code::order::BRANCH_BITS;
use weir_model::loops::met;
use weir_policy::config::Exclude;
use weir_policy::outcome::answered;

/// The state of a request outside a hop.
#[derive(Clone, Copy, Debug)]
pub(super) struct OuterHop {
    serial: u32,
    attempts_before: u32,
    meets: u32,
    exclude: Exclude,
    instance: u32,
}

impl Reference<'_> {
    /// A branch enters a listener: behind it, it is a new request.
    pub(super) fn enter_hop(&mut self, slot: SlotId, hop: u32) -> Flow {
        let site = &self.tables.hops[hop as usize];
        let meets = if site.loops == 1 { 0 } else { met(site.loops, self.draw(slot, site.key)) };
        self.hopped = self.hopped.wrapping_add(1).max(1);
        let branch = &mut self.branches.slots[slot.index()];
        self.branches.hops[slot.index()].push(OuterHop {
            serial: branch.serial,
            attempts_before: branch.attempts_before,
            meets: branch.meets,
            exclude: branch.exclude,
            instance: branch.instance,
        });
        branch.instance = branch.member.number_from(site.offset);
        (branch.serial, branch.meets, branch.exclude) = (self.hopped, meets, Exclude::None);
        branch.attempts_before = branch.rank >> BRANCH_BITS;
        Flow::On
    }

    /// A branch leaves the hop: the side before the listener is answered.
    pub(super) fn leave_hop(&mut self, slot: SlotId) {
        let Some(outside) = self.branches.hops[slot.index()].pop() else { return };
        let branch = &mut self.branches.slots[slot.index()];
        (branch.serial, branch.attempts_before) = (outside.serial, outside.attempts_before);
        (branch.meets, branch.exclude) = (outside.meets, outside.exclude);
        branch.instance = outside.instance;
        (branch.outcome, branch.status) = answered(branch.outcome, branch.status);
        branch.relayed = false;
    }
}
