//! Arrivals of requests, and the instants of the window that the clock passes.

#[cfg(test)]
use super::Sabotage;
use super::{CARRIED, END_OF_TIME, Engine, step_key};
use crate::code::bounds::HORIZON_NS;
use crate::code::order::{Class, Entry, order_key};
use crate::compile::loops;

impl Engine<'_> {
    #[cold]
    pub(crate) fn pass_marks(&mut self, now_ns: u64) {
        while self.passed < 2 && now_ns > self.source.window[self.passed] {
            let at = self.source.window[self.passed];
            self.keep_integrals(self.passed, at);
            self.passed += 1;
        }
        self.mark = self.next_mark();
    }

    /// Stores the integrals at one of the window's two instants.
    pub(crate) fn keep_integrals(&mut self, which: usize, at: u64) {
        let mut snapshot = self.ledger.snapshot(self.code, &self.members, at);
        self.shares.add_to(&mut snapshot, &mut self.ledger.gauges, self.code, at);
        self.ledger.marks[which] = snapshot;
        self.ledger.marked_ns[which] = at;
    }

    /// The next instant that the clock must stop at: one of the window, or the end of the time that is counted.
    #[inline(always)]
    pub(super) fn next_mark(&self) -> u64 {
        self.source.window.get(self.passed).map_or(HORIZON_NS, |at| HORIZON_NS.min(*at))
    }

    /// Schedules the next arrival: where the path to the first step in turn is constant, for when the request gets
    /// there.
    #[inline(always)]
    pub(crate) fn schedule_arrival(&mut self) {
        let prefix_ns = self.code.prefix_ns;
        let Some(arrived) = self.source.take(prefix_ns) else {
            self.over = true;
            return self.pending.set_source(None);
        };
        self.mark = self.next_mark();
        let early = prefix_ns > 0;
        let key = if early { step_key(self.issued) } else { order_key(Class::Arrival, self.issued) };
        let at = arrived.saturating_add(prefix_ns).min(END_OF_TIME);
        self.pending.set_source(Some(Entry { at, key, who: 0, tag: 0 }));
    }

    pub(super) fn arrive(&mut self, event: Entry) {
        let ordinal = self.issued;
        self.issued += 1;
        if ordinal.is_multiple_of(CARRIED) {
            self.carry_entries();
        }
        self.schedule_arrival();
        let arrived = event.at - self.code.prefix_ns;
        let way = self.request_key.with(ordinal);
        let selected = (self.source.from..self.source.to).contains(&ordinal);
        let slot = self.states.add(ordinal, arrived, way, selected);
        let start = self.code.start;
        let state = &mut self.states.slots[slot as usize];
        state.pc = start.pc;
        state.member = start.member;
        self.ledger.arrived += 1;
        self.members[start.member as usize].entries += i32::from(selected);
        self.ledger.step(event.at, true);
        self.ledger.ahead = self.ledger.ahead.wrapping_add(self.code.prefix_ns);
        #[cfg(test)]
        if self.breaks(Sabotage::LoseRequest) {
            return;
        }
        if self.code.cuts {
            self.begin_beside(slot, ordinal, (1 << 63) + ordinal, arrived);
        }
        self.go_on(slot, event.at, arrived, event.after_faults());
    }

    /// Starts a request of the user `client`.
    pub(crate) fn begin_request(&mut self, slot: u32, ordinal: u64, client: u64, now_ns: u64) {
        self.issued += 1;
        if ordinal.is_multiple_of(CARRIED) {
            self.carry_entries();
        }
        let start = self.code.start;
        let state = &mut self.states.slots[slot as usize];
        (state.pc, state.member) = (start.pc, start.member);
        self.members[start.member as usize].entries += i32::from(state.selected());
        self.ledger.arrived += 1;
        self.ledger.step(now_ns, true);
        self.begin_beside(slot, ordinal, client, now_ns);
    }

    /// Begins what a request has beside its state.
    fn begin_beside(&mut self, slot: u32, ordinal: u64, client: u64, arrived: u64) {
        let way = self.states.slots[slot as usize].way;
        self.scopes.begin(slot);
        self.hops.begin(slot);
        self.scopes.slots[slot as usize].meets = loops::meets(self.code.first_loops, way) as u16;
        if self.code.details {
            self.draw_kind(slot, ordinal, client, way);
        }
        if let Some(ns) = self.code.patience_ns {
            self.be_patient(slot, arrived, ns);
        }
    }
}
