//! Further attempts of a request while the first is still open.
//!
//! - In virtual time: the first attempt begins at once; the instant at which another may begin is an event of the
//!   waiting request. The first good answer, or the last error, decides.
//! - Given back when cut off: what the attempts hold that are still open.
//! - Draws: the first attempt is on the way of the request itself, each further one on a way of its own.

use crate::code::order::{Class, Entry, later_attempt, order_key, ranked};
use crate::code::{ColdOp, Op};
use crate::code::{MemberId, SlotId};
use crate::engine::{END_OF_TIME, Engine};
use crate::state::request_state::{BEGINS, FAN};
use weir_model::draws::purpose;
use weir_model::way::further;
use weir_policy::hedge::{Hedging, Step};

impl Engine<'_> {
    /// A request enters a hedge: its first attempt begins at once.
    pub(crate) fn start_hedge(
        &mut self,
        slot: SlotId,
        hedge: u32,
        pc: usize,
        member: MemberId,
        depth: usize,
        now_ns: u64,
    ) {
        let site = &self.core.code().hedges[hedge as usize];
        if let Some(budget) = site.budget {
            self.earn(slot, member.number_from(budget), now_ns);
        }
        let hedging = Hedging::new(&site.config, now_ns, self.said(slot).1);
        let frames = self.frames_within(slot, depth);
        self.leave_at(slot, (pc as u32 + 1) | FAN, member, depth);
        let group = self.features.branches.open_group(slot);
        (group.site, group.pc, group.len) = (hedge, pc as u32 + 1, site.config.attempts);
        (group.since, group.depth, group.hedging) = (now_ns, frames, Some(hedging));
        let child = self.send_attempt(slot, now_ns);
        self.watch_hedge(slot, now_ns);
        self.features.branches.then = child;
    }

    /// Sends in another attempt.
    fn send_attempt(&mut self, parent: SlotId, now_ns: u64) -> SlotId {
        let Some(group) = self.features.branches.group(parent) else { return SlotId::NONE };
        let (pc, len, depth, index) = (group.pc, group.len, group.depth, group.branches.len() as u32);
        let hedge = group.site;
        let child = self.send_in(parent, index, len, now_ns);
        self.mark_attempt(child, parent, hedge);
        let member = self.core.state(parent).member;
        self.leave_at(child, pc, member, 0);
        self.core.scope_mut(child).base_depth = 0;
        let turn = self.core.states_mut().rows.turns.count(parent);
        if index == 0 {
            self.core.states_mut().rows.visits.copy(parent, child);
            self.core.states_mut().rows.turns.set(child, turn);
        } else {
            let position = depth << 32 | u64::from(index);
            self.core.states_mut().begin_way(child, |key| further(key, purpose::HEDGE, position, turn));
            let rank = &mut self.core.scope_mut(child).rank;
            (0..index).for_each(|_| *rank = later_attempt(*rank));
        }
        child
    }

    /// Schedules the instant at which the next attempt may begin. Events of hedges that are over can be dropped.
    fn watch_hedge(&mut self, slot: SlotId, now_ns: u64) {
        let deadline = self.features.branches.group(slot).and_then(|group| group.hedging?.next_deadline());
        let Some(at) = deadline else { return };
        let at = at.min(END_OF_TIME);
        let state = self.core.state(slot);
        let rank = self.core.scope(slot).rank;
        let key = ranked(order_key(Class::Limit, state.ordinal), rank);
        let entry = Entry { at, key, who: slot.0, tag: state.tag };
        self.core.schedule_limit(at - now_ns, entry);
    }

    /// The delay before a further attempt has passed.
    pub(crate) fn hedge_is_due(&mut self, slot: SlotId, now_ns: u64) {
        let hedging = self.features.branches.group(slot).and_then(|group| group.hedging);
        if hedging.is_some_and(|hedging| hedging.due(now_ns) == Step::Start) {
            self.hedge_again(slot, now_ns);
        }
    }

    /// Begins a further attempt in its turn, if the budget permits.
    fn hedge_again(&mut self, slot: SlotId, now_ns: u64) -> Step {
        let (member, selected) = (self.core.state(slot).member, self.core.state(slot).selected());
        let Some(group) = self.features.branches.group(slot) else { return Step::Wait };
        let budget = self.core.code().hedges[group.site as usize].budget;
        let may = budget.is_none_or(|b| self.core.budget_mut(member.number_from(b)).take(now_ns));
        let Some(hedging) = &mut group.hedging else { return Step::Wait };
        if !may {
            return hedging.refused();
        }
        hedging.started(now_ns);
        self.core.ledger_mut().extra_attempts += u64::from(selected);
        let child = self.send_attempt(slot, now_ns);
        self.watch_hedge(slot, now_ns);
        self.core.state_mut(child).pc |= BEGINS;
        self.wake(child, now_ns);
        Step::Wait
    }

    /// Begins a further attempt at its hedge; false: the slot is not at a hedge.
    pub(crate) fn attempt_begins(&mut self, slot: SlotId) -> bool {
        let state = self.core.state(slot);
        let before = (state.pc as usize).checked_sub(1).map(|pc| self.core.code().steps[pc].op);
        let Some(Op::Cold(ColdOp::EnterHedge { hedge })) = before else { return false };
        let at = state.member.number_from(self.core.code().hedges[hedge as usize].repeats);
        self.core.ledger_mut().repeats[at as usize] += u64::from(state.selected());
        true
    }

    /// An attempt has returned.
    pub(crate) fn hedge_ends(&mut self, slot: SlotId, hedge: u32, now_ns: u64) {
        let outcome = self.core.state(slot).outcome();
        let detail = self.features.details.slots[slot.index()];
        let (parent, begun) = (self.features.branches.parent(slot), self.features.branches.begun(slot));
        if self.features.branches.index(slot) == 0 {
            // It is on the way of the request itself.
            self.core.states_mut().rows.visits.copy(slot, parent);
        }
        self.features.branches.strike(slot);
        let hedging = self.features.branches.group(parent).and_then(|group| group.hedging.as_mut());
        let Some(hedging) = hedging else { return };
        let mut step = hedging.came_back(outcome);
        if step == Step::Start {
            step = self.hedge_again(parent, now_ns);
        }
        let Step::Answer(outcome) = step else {
            self.spend_notes(slot);
            return self.remove_branch(slot, now_ns);
        };
        self.book_start(parent, parent, begun);
        self.move_notes(slot, parent);
        self.remove_branch(slot, now_ns);
        self.cut_branches(parent, false, false, now_ns);
        let end = self.core.code().hedges[hedge as usize].end;
        self.resume(parent, end, outcome, detail.answer());
    }
}
