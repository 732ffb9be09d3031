//! Stops of a request: before a step whose turn has not come, in line, before another attempt; and the ends of these
//! waits.

use crate::code::order::{Class, Entry, order_key, ranked};
use crate::code::{ColdOp, Op, QueueSite};
use crate::code::{MemberId, SlotId};
use crate::engine::{END_OF_TIME, Engine};
use crate::state::request_state::{BEGINS, CHECK, FAN, LINE, PARKED};
use weir_policy::Kind;

impl Engine<'_> {
    /// A request waits in the line of a queue until a slot is free.
    #[inline(always)]
    pub(crate) fn stand_in_line(
        &mut self,
        site: &QueueSite,
        slot: SlotId,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) {
        if self.core.code.charges {
            self.stops(slot, site.stage, member, now_ns);
        } else {
            let selected = self.core.states.slots[slot.index()].mask();
            let part = &mut self.core.ledger.parts[self.core.code.row(site.part, member)];
            *part = part.wrapping_sub(now_ns & selected);
        }
        self.core.states.slots[slot.index()].stop_at((pc as u32 + 1) | LINE, member, depth);
        if let Some(ns) = site.timeout_ns {
            self.end_wait_after(slot, now_ns, ns);
        }
    }

    /// Schedules a request that has stopped before a step to go on at `time`, in its turn.
    #[inline(always)]
    pub(crate) fn come_back_at(&mut self, slot: SlotId, now_ns: u64, time: u64, drawn: bool) {
        let state = &self.core.states.slots[slot.index()];
        let mut key = crate::engine::step_key(state.ordinal);
        if self.core.code.goes_on {
            key = ranked(order_key(Class::Step, state.ordinal), self.core.scopes.slots[slot.index()].rank);
        }
        let at = time.min(END_OF_TIME);
        let entry = Entry { at, key, who: slot.0, tag: state.tag };
        debug_assert!(at >= now_ns);
        if drawn || now_ns > time {
            self.core.pending.push_often(now_ns, entry);
        } else {
            self.core.pending.push_constant(at - now_ns, entry);
        }
    }

    /// A request waits before its next attempt.
    #[inline(never)]
    pub(crate) fn back_off(
        &mut self,
        slot: SlotId,
        pc: u32,
        member: MemberId,
        depth: usize,
        now_ns: u64,
        ns: u64,
    ) {
        self.core.scopes.stand(slot, now_ns, pc as usize, member, depth);
        self.core.scopes.drew(slot, ns);
        self.leave_at(slot, pc | PARKED, member, depth);
        self.end_wait_after(slot, now_ns, ns);
    }

    /// Schedules the end of a wait after `ns`: a wait in line, or before an attempt.
    #[inline(never)]
    pub(crate) fn end_wait_after(&mut self, slot: SlotId, now_ns: u64, ns: u64) {
        let state = &self.core.states.slots[slot.index()];
        let rank = if self.core.code.cuts { self.core.scopes.slots[slot.index()].rank } else { 0 };
        let key = ranked(order_key(Class::Limit, state.ordinal), rank);
        let at = now_ns.saturating_add(ns).min(END_OF_TIME);
        self.core.pending.push(now_ns, Entry { at, key, who: slot.0, tag: state.tag });
    }

    /// A request begins where it was sent, or leaves its line; returns whether it is gone.
    #[cold]
    pub(crate) fn begin_or_go(&mut self, slot: SlotId, now_ns: u64) -> bool {
        if self.core.states.slots[slot.index()].pc & CHECK != 0 {
            self.check_goes_on(slot, now_ns);
            return true;
        }
        if self.core.states.slots[slot.index()].pc & FAN != 0 {
            self.hedge_is_due(slot, now_ns);
            return true;
        }
        if self.core.states.slots[slot.index()].pc & BEGINS != 0 {
            self.begins(slot, now_ns);
            return false;
        }
        self.wait_no_longer(slot, now_ns)
    }

    /// The longest permitted wait in line has passed: the request returns from the queue, or ends if it went on
    /// unwanted. Returns whether it goes no further now.
    fn wait_no_longer(&mut self, slot: SlotId, now_ns: u64) -> bool {
        let state = &self.core.states.slots[slot.index()];
        let (enter, member, selected) = ((state.pc & !LINE) as usize - 1, state.member, state.mask());
        if let Op::Cold(ColdOp::AskGuard { lb }) = self.core.code.steps[enter].op {
            return self.wait_for_target_no_longer(slot, lb, member, now_ns);
        }
        if let Op::Cold(ColdOp::TakeConnection { at }) = self.core.code.steps[enter].op {
            return !self.connection_is_due(slot, at, member, now_ns);
        }
        let Op::EnterQueue { queue } = self.core.code.steps[enter].op else { return false };
        let site = &self.core.code.queues[queue as usize];
        self.leave_line(slot, queue, member, now_ns);
        self.count_cut(site.stage, member, selected);
        self.refuse(slot, member, site.stage, Kind::Timeout);
        let (skip, depth) = (site.skip, usize::from(self.core.states.slots[slot.index()].depth));
        self.core.states.slots[slot.index()].pc = skip;
        let over = self.is_left_at(slot, skip as usize - 1, depth);
        if over {
            self.vanish_at(slot, site.stage, member, now_ns);
        }
        over
    }
}
