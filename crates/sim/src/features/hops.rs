//! Listeners behind other listeners: each begins a hop of its own, as if it were another process.
//!
//! Behind one a request is a new one: it has tried no target and opened none, each first attempt there is a first,
//! and it uses one of that listener's loops. The side before it gets the answer that a client of weir gets.
//!
//! - In virtual time: none.
//! - Given back when cut off: the state outside is restored.
//! - Draws: the loop of a request among several, by request, way and place.

use crate::code::order::BRANCH_BITS;
use crate::code::{MemberId, SlotId};
use crate::engine::Engine;
use crate::state::hops::Hop;
use crate::state::hops::Row;
use crate::state::scopes::Limit;
use weir_model::loops::met;
use weir_policy::config::Exclude;
use weir_policy::outcome::answered;

impl Engine<'_> {
    /// A request enters a listener behind another.
    pub(crate) fn enter_hop(&mut self, slot: SlotId, hop: u32, member: MemberId, depth: usize) {
        let site = self.core.code().hops[hop as usize];
        let met =
            if site.loops == 1 { 0 } else { met(site.loops, self.draw_key(slot, site.key, site.visits)) };
        let (state, scope) = self.core.state_and_scope_mut(slot);
        let hops = &mut self.features.hops;
        hops.entered = hops.entered.wrapping_add(1).max(1);
        let now = &mut hops.now[slot.index()];
        let row = Row {
            inside: *now,
            meets: scope.meets,
            exclude: state.exclude(),
            depth: depth as u16,
            end: site.end,
            retries: state.retries,
        };
        hops.rows[slot.index()].push(row);
        let instance = member.number_from(site.offset);
        *now = Hop { serial: hops.entered, attempts: scope.rank >> BRANCH_BITS, instance };
        scope.meets = met as u16;
        state.set_exclude(Exclude::None);
    }

    /// A request returns from one.
    pub(crate) fn leave_hop(&mut self, slot: SlotId) {
        if let Some(row) = self.features.hops.rows[slot.index()].pop() {
            self.leave_to(slot, row);
        }
        let state = self.core.state_mut(slot);
        let detail = &mut self.features.details.slots[slot.index()];
        let (outcome, status) = answered(state.outcome(), detail.status);
        state.set_outcome(outcome);
        (detail.status, detail.relayed) = (status, false);
    }

    fn leave_to(&mut self, slot: SlotId, row: Row) {
        self.features.hops.now[slot.index()] = row.inside;
        self.core.scope_mut(slot).meets = row.meets;
        self.core.state_mut(slot).set_exclude(row.exclude);
    }

    /// Restores the hop that was current at a limit, after the request was cut off.
    pub(crate) fn cut_hops(&mut self, slot: SlotId, limit: &Limit) {
        if !self.features.hops.kept {
            return;
        }
        let behind = |row: &Row| row.depth > limit.depth || row.depth == limit.depth && row.end < limit.end;
        while let Some(row) = self.features.hops.rows[slot.index()].pop_if(|row| behind(row)) {
            self.core.states_mut().drop_attempts(slot, row.retries);
            self.leave_to(slot, row);
        }
    }
}
