//! The users of a closed loop: each thinks, sends a request, waits for its answer, and thinks again.
//!
//! - In virtual time: the end of a user's thought is an event of class Arrival, in the order of users. The instants
//!   of the window are found during the run, since arrivals are not known beforehand.
//! - Given back when cut off: nothing; a user whose request is cut off thinks again.
//! - Draws: thoughts, by user and number of the request; the request by the same.

use crate::code::SlotId;
use crate::code::bounds::AT_ONE_INSTANT;
use crate::code::order::{Class, Entry, order_key};
use crate::engine::{END_OF_TIME, Engine, Event};
use weir_workload::Window;

impl Engine<'_> {
    /// Schedules the first arrivals.
    pub(crate) fn schedule_first_arrivals(&mut self) {
        if !self.features.clients.are_users() {
            return self.schedule_arrival();
        }
        // Ends are counted in the first half until it is known where they belong.
        self.core.count_halves_later();
        (0..self.features.clients.sent.len() as u32).for_each(|user| self.think(user, 0));
        self.look_for_thinkers();
    }

    /// No more requests arrive while no user thinks before one.
    fn look_for_thinkers(&mut self) {
        let over = self.features.clients.over || self.features.clients.thinkers == 0;
        self.core.set_over(over);
    }

    /// A user thinks before the next request.
    fn think(&mut self, user: u32, now_ns: u64) {
        let clients = &mut self.features.clients;
        let Some(thinking) = clients.thinking.as_ref().filter(|_| !clients.over) else { return };
        let k = clients.sent[user as usize];
        let at = now_ns.saturating_add(thinking.think_ns(user, k)).min(END_OF_TIME);
        if at > self.core.source().load.until_ns {
            return;
        }
        clients.thinkers += 1;
        clients.in_window += u64::from(self.core.source().load.selects(at, 0).0);
        let key = order_key(Class::Arrival, clients.order(user, k));
        let now_ns = self.core.turn().0;
        self.core.schedule(now_ns, Entry { at, key, who: Event::Think.who(user), tag: 0 });
    }

    /// A user has finished thinking.
    pub(crate) fn user_sends(&mut self, user: u32, now_ns: u64) {
        let clients = &mut self.features.clients;
        clients.thinkers -= 1;
        clients.in_window -= u64::from(self.core.source().load.selects(now_ns, 0).0);
        if clients.over {
            return self.look_for_thinkers();
        }
        let k = clients.sent[user as usize];
        clients.sent[user as usize] += 1;
        let ordinal = self.core.issued();
        let (selected, second_half) = self.core.source().load.selects(now_ns, ordinal);
        clients.over |= ordinal + 1 == self.core.source().load.requests;
        self.count_at_arrival(now_ns);
        let clients = &mut self.features.clients;
        let order = clients.order(user, k);
        let way = self.core.request_key().with(u64::from(user)).with(k);
        let slot = self.core.states_mut().add(order, now_ns, way, selected);
        self.features.clients.of_slot.resize(self.core.states().slots.len(), (0, false));
        self.features.clients.of_slot[slot.index()] = (user, second_half);
        self.look_for_thinkers();
        if selected {
            self.mark_arrival(ordinal, now_ns);
        }
        self.begin_request(slot, ordinal, u64::from(user), now_ns);
        self.go_on(slot, now_ns, now_ns, true);
    }

    /// A selected request arrives: it may be the first or the last of the window. The last one of a window of times
    /// is known once no user thinks before another within it: until then it is the latest.
    fn mark_arrival(&mut self, ordinal: u64, now_ns: u64) {
        let window = &mut self.core.source_mut().window;
        *window = [window[0].min(now_ns), now_ns];
        let (first, last) = match self.core.source().load.window {
            Window::Requests(from, to) => (ordinal == from, ordinal + 1 == to),
            Window::Times(..) => (
                self.core.marks_passed() == 0,
                self.features.clients.over || self.features.clients.in_window == 0,
            ),
        };
        (0..u32::from(first) + u32::from(last)).for_each(|_| self.keep_mark(now_ns));
    }

    fn keep_mark(&mut self, now_ns: u64) {
        // The longest line is counted from the first instant on.
        let most: Vec<u32> = self.core.ledger().gauges.iter().map(|g| g.most).collect();
        let which = self.core.marks_passed().min(1);
        self.keep_integrals(which, now_ns);
        if which == 1 {
            self.core.ledger_mut().gauges.iter_mut().zip(most).for_each(|(gauge, most)| gauge.most = most);
        }
        self.core.pass_mark();
    }

    /// Ends the rest of the window with the run; `loses`: with the last step of requests that are lost.
    pub(crate) fn finish_marks(&mut self, now_ns: u64, loses: bool) {
        if !self.features.clients.are_users() {
            self.pass_marks(u64::MAX);
            // Of a window in which nothing arrived no instant is known.
            while self.core.marks_passed() < 2 {
                self.keep_integrals(self.core.marks_passed(), now_ns);
                self.core.pass_mark();
            }
            return;
        }
        let has_checks = self.core.code().guards.sites.iter().any(|site| site.check_timeout_ns > 0);
        while self.core.marks_passed() < 2 {
            self.core.ledger_mut().is_marked_late |= loses && has_checks;
            self.keep_mark(now_ns);
        }
    }

    /// The request of a user ended, at `time`.
    #[cold]
    pub(crate) fn user_is_answered(&mut self, slot: SlotId, now_ns: u64, time: u64) {
        let (user, second_half) = self.features.clients.of_slot[slot.index()];
        let state = self.core.state(slot);
        let latency = time - state.arrived;
        if second_half && state.selected() {
            let [first, second] = &mut self.core.ledger_mut().halves;
            let ns = u128::from(latency);
            *first = (first.0 - ns, first.1 - 1);
            *second = (second.0 + ns, second.1 + 1);
        }
        let at_once = &mut self.features.clients.at_once;
        *at_once = if at_once.0 == now_ns { *at_once } else { (now_ns, 0) };
        at_once.1 += u64::from(latency == 0);
        if at_once.1 > AT_ONE_INSTANT.saturating_mul(self.features.clients.sent.len() as u64) {
            self.core.cut_off(crate::code::bounds::Cut::StandsStill);
        }
        self.think(user, time);
        self.look_for_thinkers();
    }
}
