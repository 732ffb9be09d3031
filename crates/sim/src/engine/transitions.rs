//! The actions of steps: draws, targets, slots, attempts, errors, and the end of a request.

use crate::code::bounds::HORIZON_NS;
use crate::code::order::{BRANCH_BITS, Class, Entry, later_attempt, order_key, ranked};
use crate::code::{MemberId, SlotId, StageId};
#[cfg(test)]
use crate::engine::Sabotage;
use crate::engine::{END_OF_TIME, Engine, Event, PATIENCE};
use crate::state::request_state::LINE;
use std::sync::atomic::Ordering;
use weir_model::draws::purpose;
use weir_model::flaky;
use weir_policy::config::{Exclude, Work};
use weir_policy::{Kind, Release, TargetId};
use weir_stats::Key;

/// The status of an answer that a `flaky` node turned into a `status_5xx`.
const FLAKY_STATUS: u16 = 500;

impl Engine<'_> {
    /// The key of a request's draw at a place on this visit.
    #[inline(always)]
    pub(crate) fn draw_key(&mut self, slot: SlotId, key: u32, visits: Option<u32>) -> Key {
        let key = self.core.draw_keys[key as usize].with(self.core.states.slots[slot.index()].way.bits());
        let Some(counter) = visits else { return key };
        match self.core.states.visit(slot, counter) {
            0 => key,
            again => key.with(purpose::VISIT).with(u64::from(again)),
        }
    }

    /// What a request draws at a place, ns.
    #[inline(never)]
    pub(crate) fn drawn(&mut self, slot: SlotId, draw: u32) -> u64 {
        let site = &self.core.code.draws[draw as usize];
        let ns = site.sampler.draw(self.draw_key(slot, site.key, site.visits));
        if site.scaled || site.loss.is_some() { self.longer(slot, draw, ns) } else { ns }
    }

    /// Whether an answer fails at random on its way back.
    pub(crate) fn fails(&mut self, slot: SlotId, flaky: u32) {
        let site = self.core.code.flaky[flaky as usize];
        if flaky::fails(site.p, self.draw_key(slot, site.key, site.visits)) {
            self.core.states.slots[slot.index()].set_outcome(Some(site.kind));
            if self.core.code.details {
                let detail = &mut self.features.details.slots[slot.index()];
                (detail.status, detail.relayed) = (FLAKY_STATUS, false);
            }
        }
    }

    /// The balancer that a request uses at a place, on its loop.
    #[inline]
    pub(crate) fn instance(&self, slot: SlotId, site: &crate::code::LbSite, member: MemberId) -> u32 {
        self.on_loop(site, member, self.core.scopes.slots[slot.index()].meets)
    }

    /// The balancer at a place on a loop.
    #[inline]
    pub(crate) fn on_loop(&self, site: &crate::code::LbSite, member: MemberId, meets: u16) -> u32 {
        let first = member.number_from(site.offset);
        if site.shared { first } else { first + u32::from(meets) * self.core.code.instances.len() as u32 }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn done(&mut self, slot: SlotId, instance: u32, target: TargetId, now_ns: u64) {
        let state = &self.core.states.slots[slot.index()];
        let (outcome, ordinal) = (state.outcome(), state.ordinal);
        self.came_back(slot, instance, target);
        if let Release::After(hold) = self.core.balancers[instance as usize].balancer.done(target, outcome) {
            self.hold(instance, target, now_ns, hold, ordinal);
        }
    }

    /// The targets that a retry excludes next may depend on how the request returned.
    #[inline(never)]
    pub(crate) fn came_back(&mut self, slot: SlotId, instance: u32, target: TargetId) {
        let state = &self.core.states.slots[slot.index()];
        let (outcome, exclude) = (state.outcome(), state.exclude());
        if exclude != Exclude::None {
            let own = self.features.hops.tag(slot, instance);
            self.core.states.tried[slot.index()].came_back(exclude, own, target, outcome);
        }
    }

    /// Notes that a request will return at `time`, which nothing can prevent any more. Only the balancer's own picks
    /// depend on it, so they look it up; no event is needed. False if an event is needed all the same.
    #[inline(always)]
    pub(crate) fn done_late(&mut self, slot: SlotId, instance: u32, target: TargetId, time: u64) -> bool {
        #[cfg(test)]
        if self.breaks(Sabotage::ForgetReturn) {
            return true;
        }
        let key = self.step_key(slot);
        self.core.balancers[instance as usize].deferred.note(time, key, target)
    }

    #[cold]
    pub(crate) fn hold(&mut self, instance: u32, target: TargetId, now_ns: u64, hold: u64, ordinal: u64) {
        let index = self.core.spare_holds.pop().unwrap_or(self.core.holds.len() as u32);
        if index as usize == self.core.holds.len() {
            self.core.holds.push((0, TargetId(0)));
        }
        self.core.holds[index as usize] = (instance, target);
        let key = order_key(Class::Hold, ordinal);
        let at = now_ns.saturating_add(hold).min(END_OF_TIME);
        self.core.pending.push_constant(at - now_ns, Entry { at, key, who: Event::Hold.who(index), tag: 0 });
    }

    pub(crate) fn end_hold(&mut self, index: u32, now_ns: u64) {
        let (instance, target) = self.core.holds[index as usize];
        self.core.spare_holds.push(index);
        if self.features.guards.release(instance, target, now_ns) {
            self.admit(instance, now_ns);
        } else {
            self.core.balancers[instance as usize].balancer.release(target);
        }
    }

    /// The same for a request that is cut off; separate, so that the other is inlined where it is used.
    #[cold]
    pub(crate) fn give_back_slot(&mut self, queue: u32, member: MemberId, selected: u64, now_ns: u64) {
        self.leave(queue, member, selected, now_ns);
    }

    /// Gives a slot back; the request that has waited longest takes it.
    #[inline(always)]
    pub(crate) fn leave(&mut self, queue: u32, member: MemberId, selected: u64, now_ns: u64) {
        let site = &self.core.code.queues[queue as usize];
        let gauge = &mut self.core.ledger.gauges[self.core.code.row(site.gauge, member)];
        gauge.busy = gauge.busy.wrapping_add(now_ns);
        gauge.served = gauge.served.wrapping_add(now_ns & selected);
        #[cfg(test)]
        if self.core.sabotage == Some(Sabotage::LeakSlot) && self.core.issued >= 100 {
            return;
        }
        if let Some(next) =
            self.core.members[member.index_from(site.offset)].queue.leave(&mut self.core.links)
        {
            let next = SlotId(next);
            let woken = &mut self.core.states.slots[next.index()];
            woken.pc &= !LINE;
            // The event that would have ended its wait is stale.
            woken.tag = woken.tag.wrapping_add(u32::from(site.timeout_ns.is_some()));
            gauge.started += woken.mask() & 1;
            gauge.waiting = gauge.waiting.wrapping_add(now_ns);
            gauge.busy = gauge.busy.wrapping_sub(now_ns);
            gauge.served = gauge.served.wrapping_sub(now_ns & woken.mask());
            let mask = woken.mask();
            if self.core.code.charges {
                self.charge(next, site.stage, member, now_ns);
            } else {
                let part = &mut self.core.ledger.parts[self.core.code.row(site.part, member)];
                *part = part.wrapping_add(now_ns & mask);
            }
            self.wake(next, now_ns);
        }
    }

    /// The delay before another attempt, if there is one; otherwise the retry is left.
    #[inline(never)]
    pub(crate) fn next_attempt(
        &mut self,
        slot: SlotId,
        member: MemberId,
        retry: u32,
        now_ns: u64,
    ) -> Option<u64> {
        let site = &self.core.code.retries[retry as usize];
        let redraw = site.config.work == Work::Redraw;
        let outcome = self.core.states.slots[slot.index()].outcome();
        let attempt = self.core.states.attempt(slot);
        let (status, idempotent) = if self.core.code.details { self.said(slot) } else { (None, true) };
        let mut next = site.config.next(attempt, outcome, status, idempotent);
        if let (Some(_), Some(budget)) = (next, site.budget)
            && !self.core.budgets[member.index_from(budget)].take(now_ns)
        {
            next = None;
        }
        // No event separates attempts of one instant, and there may be millions: once stopped, no more are made.
        self.core.attempts += u64::from(next.is_some());
        if next.is_some() && self.core.attempts & PATIENCE == 0 {
            self.core.stopped |= self.core.stop.load(Ordering::Relaxed);
            self.carry_entries();
        }
        let Some(next) = next.filter(|_| !self.core.stopped) else {
            self.core.states.end_attempts(slot, redraw);
            return None;
        };
        if self.core.code.takes_as_get && site.config.next(attempt, outcome, status, false).is_none() {
            self.core.ledger.as_get += u64::from(self.core.states.slots[slot.index()].selected());
        }
        self.core.states.try_again(slot, next, redraw, purpose::ATTEMPT);
        let selected = self.core.states.slots[slot.index()].selected();
        self.core.ledger.extra_attempts += u64::from(selected);
        self.core.ledger.repeats[member.index_from(site.repeats)] += u64::from(selected);
        if self.core.code.cuts {
            let rank = &mut self.core.scopes.slots[slot.index()].rank;
            *rank = later_attempt(*rank);
            if self.core.code.details {
                self.features.details.try_again(slot);
            }
        }
        if site.config.backoff_ns == 0 {
            return Some(0);
        }
        let own = self.core.backoffs[member.index_from(site.nodes)];
        let ns =
            site.config.backoff_ns(next, self.choice_key(slot, own, self.core.states.came_to_retry(slot)));
        self.charge(slot, site.stage, member, ns);
        Some(ns)
    }

    /// A request goes on at this instant, in its turn.
    #[inline]
    pub(crate) fn wake(&mut self, slot: SlotId, now_ns: u64) {
        let rank = if self.core.code.cuts { self.core.scopes.slots[slot.index()].rank } else { 1 };
        let state = &self.core.states.slots[slot.index()];
        let key = ranked(self.core.class_key | order_key(Class::Step, state.ordinal), rank);
        self.core.pending.wake(Entry { at: now_ns, key, who: slot.0, tag: state.tag });
    }

    /// Books time of a request to a stage; a wrapped negative time is taken back.
    #[inline(never)]
    pub(crate) fn charge(&mut self, slot: SlotId, stage: StageId, member: MemberId, ns: u64) {
        let state = &self.core.states.slots[slot.index()];
        if state.is_unwanted() {
            return self.spend(slot, stage, member, ns);
        }
        let part = self.core.code.row(self.core.code.stages[stage.index()].part, member);
        if self.core.code.notes {
            // Checks and requests outside of the window count nowhere.
            if state.selected() {
                self.core.scopes.notes[slot.index()].push((part as u32, ns));
            }
            return;
        }
        let sum = &mut self.core.ledger.parts[part];
        *sum = sum.wrapping_add(ns & state.mask());
    }

    /// Earns the budget of a first attempt, for further ones.
    #[inline(never)]
    pub(crate) fn earn(&mut self, slot: SlotId, budget: u32, now_ns: u64) {
        let before = self.features.hops.attempts_before(slot);
        if !self.core.code.cuts || self.core.scopes.slots[slot.index()].rank >> BRANCH_BITS == before {
            self.core.budgets[budget as usize].earn(now_ns);
        }
    }

    /// A stage refuses a request, which returns from there.
    #[cold]
    pub(crate) fn refuse(&mut self, slot: SlotId, member: MemberId, stage: StageId, kind: Kind) {
        let state = &mut self.core.states.slots[slot.index()];
        state.set_outcome(Some(kind));
        if state.selected() {
            let part = self.core.code.row(self.core.code.stages[stage.index()].part, member);
            self.core.ledger.error_at(part, kind);
        }
        if self.core.code.details {
            self.features.details.slots[slot.index()].status = 0;
        }
    }

    #[cold]
    pub(crate) fn count_refusal(&mut self, slot: SlotId, member: MemberId, stage: StageId) {
        if let Some(offset) = self.core.code.stages[stage.index()].refusals {
            let selected = self.core.states.slots[slot.index()].selected();
            self.core.ledger.refusals[member.index_from(offset)] += u64::from(selected);
        }
    }

    /// An error passes the stages that end at this step.
    #[cold]
    pub(crate) fn count_errors(&mut self, slot: SlotId, member: MemberId, pc: usize) {
        let state = &self.core.states.slots[slot.index()];
        let Some(kind) = state.outcome().filter(|_| state.selected()) else { return };
        let (from, to) = self.core.code.covers[pc];
        for &stage in &self.core.code.cover_list[from as usize..to as usize] {
            let part = self.core.code.row(self.core.code.stages[stage.index()].part, member);
            self.core.ledger.error_at(part, kind);
        }
    }

    /// Ends a request whose client has gone.
    #[cold]
    pub(crate) fn end_early(&mut self, slot: SlotId, now_ns: u64) {
        self.end(slot, now_ns, now_ns);
    }

    #[inline(always)]
    pub(crate) fn end(&mut self, slot: SlotId, now_ns: u64, time: u64) {
        let state = &self.core.states.slots[slot.index()];
        let latency = time - state.arrived;
        self.core.beyond_horizon |= time > HORIZON_NS;
        #[cfg(test)]
        let latency = latency
            + u64::from(self.core.sabotage == Some(Sabotage::StretchLatency) && self.core.issued >= 100);
        let ledger = &mut self.core.ledger;
        ledger.ended += 1;
        ledger.latency_sum = ledger.latency_sum.wrapping_add(latency);
        ledger.step(now_ns, false);
        ledger.ahead = ledger.ahead.wrapping_add(time - now_ns);
        #[cfg(test)]
        if self.core.sabotage == Some(Sabotage::SkipRecord) && self.core.issued >= 100 {
            return;
        }
        let is_good = state.outcome().is_none() && latency <= self.core.source.load.deadline_ns;
        ledger.ends.add(time, is_good, now_ns);
        if state.selected() {
            let second_half = state.ordinal >= self.core.half;
            ledger.record(latency, state.outcome(), time, second_half);
        }
        if let Some(aside) = &mut ledger.aside {
            aside.end(state.ordinal, state.selected(), state.arrived, latency, state.outcome());
        }
        if self.core.code.cuts {
            if self.features.clients.are_users() {
                self.user_is_answered(slot, now_ns, time);
            }
            self.core.scopes.end(slot);
            self.features.lines.request_ends(time);
            if self.core.code.notes {
                self.core.ledger.last_stop = self.core.ledger.last_stop.max(time);
                self.count_notes(slot);
            }
        }
        self.core.states.remove(slot);
    }
}
