//! Arrivals of requests, and the instants of the window that the clock passes.

use super::{CARRIED, END_OF_TIME, Engine, step_key};
use crate::code::SlotId;
use crate::code::bounds::HORIZON_NS;
use crate::code::order::{Class, Entry, order_key};
use crate::compile::loops;
#[cfg(test)]
use crate::engine::Sabotage;
use crate::state::boundaries::last_instant;

impl Engine<'_> {
    /// Counts at the instants of the window and at the ends of parts that the clock has passed, in their order: idle
    /// connections end as they are counted.
    #[cold]
    pub(crate) fn pass_marks(&mut self, now_ns: u64) {
        loop {
            // In a closed loop the instants of the window are found as they come.
            let is_marked = self.core.passed < 2 && !self.features.clients.are_users();
            let mark = if is_marked { self.core.source.window[self.core.passed] } else { u64::MAX };
            let last = last_instant(&self.core.source, self.core.boundary);
            if now_ns <= mark.min(last) {
                break;
            }
            if mark <= last {
                self.keep_integrals(self.core.passed, mark);
                self.core.passed += 1;
            } else {
                self.pass_boundary();
            }
        }
        self.core.mark = match self.features.clients.are_users() {
            true => HORIZON_NS.min(last_instant(&self.core.source, self.core.boundary)),
            false => self.next_mark(),
        };
    }

    /// Stores the integrals at one of the window's two instants.
    pub(crate) fn keep_integrals(&mut self, which: usize, at: u64) {
        let mut snapshot = self.core.ledger.snapshot(self.core.code, &self.core.members, at);
        self.features.shares.add_to(&mut snapshot, &mut self.core.ledger.gauges, self.core.code, at);
        self.core.ledger.marks[which] = snapshot;
        if let Some(of) = self.features.connections.as_deref_mut() {
            of.mark(which, at);
        }
        self.core.ledger.marked_ns[which] = at;
        self.core.ledger.ends.mark(which, at);
    }

    /// The next instant that the clock must stop at: one of the window, the end of a part of the run, or the end of the time
    /// that is counted.
    #[inline(always)]
    pub(super) fn next_mark(&self) -> u64 {
        let window =
            self.core.source.window.get(self.core.passed).map_or(HORIZON_NS, |at| HORIZON_NS.min(*at));
        window.min(last_instant(&self.core.source, self.core.boundary))
    }

    /// Schedules the next arrival: where the path to the first step in turn is constant, for when the request gets
    /// there.
    #[inline(always)]
    pub(crate) fn schedule_arrival(&mut self) {
        let prefix_ns = self.core.code.prefix_ns;
        let Some(arrived) = self.core.source.take(prefix_ns) else {
            self.core.over = true;
            return self.core.pending.set_source(None);
        };
        if self.core.boundary < u64::MAX && self.core.source.over_ns < u64::MAX {
            self.end_last_part();
        }
        self.core.mark = self.next_mark();
        let early = prefix_ns > 0;
        let key =
            if early { step_key(self.core.issued) } else { order_key(Class::Arrival, self.core.issued) };
        let at = arrived.saturating_add(prefix_ns).min(END_OF_TIME);
        self.core.pending.set_source(Some(Entry { at, key, who: 0, tag: 0 }));
    }

    pub(super) fn arrive(&mut self, event: Entry) {
        let ordinal = self.core.issued;
        self.core.issued += 1;
        if ordinal.is_multiple_of(CARRIED) {
            self.carry_entries();
        }
        self.schedule_arrival();
        let arrived = event.at - self.core.code.prefix_ns;
        let way = self.core.request_key.with(ordinal);
        let selected = (self.core.source.from..self.core.source.to).contains(&ordinal);
        let slot = self.core.states.add(ordinal, arrived, way, selected);
        let start = self.core.code.start;
        let state = &mut self.core.states.slots[slot.index()];
        state.pc = start.pc;
        state.member = start.member;
        self.core.ledger.arrived += 1;
        self.core.members[start.member.index()].entries += i32::from(selected);
        self.core.ledger.step(event.at, true);
        self.core.ledger.ahead = self.core.ledger.ahead.wrapping_add(self.core.code.prefix_ns);
        #[cfg(test)]
        if self.breaks(Sabotage::LoseRequest) {
            return;
        }
        if self.core.code.cuts {
            self.begin_beside(slot, ordinal, (1 << 63) + ordinal, arrived);
        }
        self.go_on(slot, event.at, arrived, event.after_faults());
    }

    /// Starts a request of the user `client`.
    pub(crate) fn begin_request(&mut self, slot: SlotId, ordinal: u64, client: u64, now_ns: u64) {
        self.core.issued += 1;
        if ordinal.is_multiple_of(CARRIED) {
            self.carry_entries();
        }
        let start = self.core.code.start;
        let state = &mut self.core.states.slots[slot.index()];
        (state.pc, state.member) = (start.pc, start.member);
        self.core.members[start.member.index()].entries += i32::from(state.selected());
        self.core.ledger.arrived += 1;
        self.core.ledger.step(now_ns, true);
        self.begin_beside(slot, ordinal, client, now_ns);
    }

    /// Begins what a request has beside its state.
    fn begin_beside(&mut self, slot: SlotId, ordinal: u64, client: u64, arrived: u64) {
        let way = self.core.states.slots[slot.index()].way;
        self.core.scopes.begin(slot);
        self.features.hops.begin(slot);
        self.core.scopes.slots[slot.index()].meets = loops::meets(self.core.code.first_loops, way) as u16;
        if self.core.code.details {
            self.draw_kind(slot, ordinal, client, way);
        }
        if let Some(ns) = self.core.code.patience_ns {
            self.be_patient(slot, arrived, ns);
        }
    }
}
