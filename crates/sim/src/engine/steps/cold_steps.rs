//! Steps that are not on the path of every request: in a function of their own, so that the hot one stays small.

use crate::code::order::{Class, order_key, ranked};
use crate::code::{MemberId, SlotId};
use crate::engine::Engine;
use crate::state::request_state::LINE;
use weir_model::draws::purpose;
use weir_policy::Kind;
use weir_policy::outcome::TOO_MANY;
use weir_stats::Key;

impl Engine<'_> {
    /// Enters a server that shares its cores; the request stops there.
    #[inline(never)]
    pub(super) fn come_to_share(
        &mut self,
        slot: SlotId,
        share: u32,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) {
        let selected = self.core.states.slots[slot.index()].mask();
        let waits = self.enter_share(slot, share, member, selected, now_ns);
        self.charge(slot, self.core.code.shares[share as usize].stage, member, now_ns.wrapping_neg());
        self.leave_at(slot, (pc as u32 + 1) | if waits { LINE } else { 0 }, member, depth);
    }

    /// Leaves a server that shares its cores; false: an unwanted request ends here.
    #[inline(never)]
    pub(super) fn go_from_share(
        &mut self,
        slot: SlotId,
        share: u32,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) -> bool {
        let state = &self.core.states.slots[slot.index()];
        let (selected, failed) = (state.mask(), state.has_failed());
        self.leave_share(slot, share, member, selected, now_ns);
        self.charge(slot, self.core.code.shares[share as usize].stage, member, now_ns);
        if failed {
            self.count_errors(slot, member, pc);
        }
        if self.is_left_at(slot, pc, depth) {
            self.vanish_at(slot, self.core.code.shares[share as usize].stage, member, now_ns);
            return false;
        }
        true
    }

    /// Takes a token; without one the request is refused, and goes on at the returned step.
    #[inline(never)]
    pub(super) fn take_token(
        &mut self,
        slot: SlotId,
        rate: u32,
        member: MemberId,
        now_ns: u64,
    ) -> Option<usize> {
        let site = self.core.code.rate_sites[rate as usize];
        let key = site.key.and_then(|key| self.key(slot, key));
        if self.core.rates[member.index_from(site.offset)].take(now_ns, key).is_ok() {
            return None;
        }
        self.count_refusal(slot, member, site.stage);
        self.refuse(slot, member, site.stage, Kind::Overloaded);
        if self.core.code.details {
            self.features.details.slots[slot.index()].status = TOO_MANY;
        }
        Some(site.skip as usize)
    }

    /// The answer comes back through a node that may fail it.
    #[inline(never)]
    pub(super) fn pass_flaky(&mut self, slot: SlotId, flaky: u32, pc: usize, member: MemberId) {
        if self.core.states.slots[slot.index()].has_failed() {
            self.count_errors(slot, member, pc);
        } else {
            self.fails(slot, flaky);
        }
    }

    /// The request stops here until it is called again.
    #[inline]
    pub(crate) fn leave_at(&mut self, slot: SlotId, pc: u32, member: MemberId, depth: usize) {
        self.core.states.slots[slot.index()].stop_at(pc, member, depth);
    }

    /// The order of a request's steps; by rank where several branches of one request can be in flight.
    #[inline]
    pub(crate) fn step_key(&self, slot: SlotId) -> u64 {
        let ordinal = self.core.states.slots[slot.index()].ordinal;
        if self.core.code.goes_on {
            return ranked(order_key(Class::Step, ordinal), self.core.scopes.slots[slot.index()].rank);
        }
        crate::engine::step_key(ordinal)
    }
}

/// The key of a request's draw at a place where it has been `before` times.
#[cold]
#[inline(never)]
pub(crate) fn on_visit(key: Key, before: u32) -> Key {
    if before == 0 { key } else { key.with(purpose::VISIT).with(u64::from(before)) }
}
