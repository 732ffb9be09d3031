//! Listeners behind others: each is a hop of its own, as if another process stood there.
//!
//! Behind one a request is a new one: it has tried no target and opened none, each first attempt there is a first, and it meets
//! one of that listener's loops. Whoever stands before one is answered as a client of weir is.
//!
//! - In virtual time: none.
//! - Given back when cut off: what held outside.
//! - Draws: which of several loops a request meets, by the request, its way and its place.

use crate::code::order::BRANCH_BITS;
use crate::engine::Engine;
use crate::state::hops::Inside;
use crate::state::hops::Row;
use crate::state::scopes::Limit;
use weir_model::loops::met;
use weir_policy::config::Exclude;
use weir_policy::outcome::answered;

impl Engine<'_> {
    /// A request comes to a listener behind another.
    pub(crate) fn enter_hop(&mut self, slot: u32, hop: u32, depth: usize) {
        let site = self.code.hops[hop as usize];
        let met =
            if site.loops == 1 { 0 } else { met(site.loops, self.draw_key(slot, site.key, site.visits)) };
        let state = &mut self.states.slots[slot as usize];
        let scope = &mut self.scopes.slots[slot as usize];
        let hops = &mut self.hops;
        hops.entered = hops.entered.wrapping_add(1).max(1);
        let now = &mut hops.now[slot as usize];
        let row = Row {
            inside: *now,
            meets: scope.meets,
            exclude: state.exclude(),
            depth: depth as u16,
            end: site.end,
            retries: state.retries,
        };
        hops.rows[slot as usize].push(row);
        *now = Inside { serial: hops.entered, attempts: scope.rank >> BRANCH_BITS };
        scope.meets = met as u16;
        state.set_exclude(Exclude::None);
    }

    /// A request comes back from one.
    pub(crate) fn leave_hop(&mut self, slot: u32) {
        if let Some(row) = self.hops.rows[slot as usize].pop() {
            self.is_outside(slot, row);
        }
        let state = &mut self.states.slots[slot as usize];
        let detail = &mut self.details.slots[slot as usize];
        let (outcome, status) = answered(state.outcome(), detail.status);
        state.set_outcome(outcome);
        (detail.status, detail.relayed) = (status, false);
    }

    fn is_outside(&mut self, slot: u32, row: Row) {
        self.hops.now[slot as usize] = row.inside;
        self.scopes.slots[slot as usize].meets = row.meets;
        self.states.slots[slot as usize].set_exclude(row.exclude);
    }

    /// A request is outside of a limit again, and of the listeners behind that.
    pub(crate) fn cut_hops(&mut self, slot: u32, limit: &Limit) {
        if !self.hops.kept {
            return;
        }
        let behind = |row: &Row| row.depth > limit.depth || row.depth == limit.depth && row.end < limit.end;
        while let Some(row) = self.hops.rows[slot as usize].pop_if(|row| behind(row)) {
            self.states.drop_attempts(slot, row.retries);
            self.is_outside(slot, row);
        }
    }
}
