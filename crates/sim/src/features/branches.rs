//! Branches of one request: each that a `fanout` or a `hedge` sends in is a state in a slot of its own, with a row
//! beside it. Meanwhile its parent waits without an event. Nothing is kept where no such node exists.
//!
//! A branch that is cut off gives back what it holds ([`Engine::cancel`]); one that is in a queue or server whose
//! requests go on is left behind there, without a parent. The time of a branch is noted with it, and counts if that
//! branch decided, or if its answer was the one waited for when all were cut off.

use crate::code::SlotId;
use crate::code::bounds::Cut;
use crate::code::order::{RANKS, share_of_ranks};
use crate::code::{ColdOp, NOT, Op};
use crate::engine::Engine;
use crate::state::branches::ALONE;
use crate::state::branches::Row;
use crate::state::holds::Hold;
use crate::state::request_details::Answer;
use crate::state::request_state::IDLE;
use crate::state::scopes::{Limit, Remnant, WHOLE};
use weir_policy::Outcome;

impl Engine<'_> {
    /// Runs the request that was to go on at once, and then its parents.
    #[cold]
    #[inline(never)]
    pub(crate) fn go_on_then(&mut self, now_ns: u64, after_faults: bool) {
        // Branches of branches may be far too many, which was noticed at the first.
        while self.features.branches.then.is_some() && self.core.cut().is_none() {
            let slot = std::mem::replace(&mut self.features.branches.then, SlotId::NONE);
            self.go_on(slot, now_ns, now_ns, after_faults);
        }
    }

    /// Creates a branch of a waiting request; the caller sets where it goes.
    pub(crate) fn send_in(&mut self, parent: SlotId, index: u32, len: u32, now_ns: u64) -> SlotId {
        let child = self.core.states_mut().branch(parent);
        self.core.scopes_mut().begin(child);
        let from = *self.core.scope(parent);
        let (first, each) = share_of_ranks(from.ranks(), len, self.turn_of_ranks(parent));
        if each == 0 {
            self.core.cut_off(Cut::TooManyBranches);
        }
        let scope = self.core.scope_mut(child);
        scope.rank = from.rank + first + index * each;
        scope.ranks_end = (scope.rank & RANKS) + each;
        (scope.meets, scope.floor) = (from.meets, NOT);
        self.features.details.branch(parent, child);
        self.features.hops.branch(parent, child);
        let retries = self.core.state(parent).retries;
        let tries_of = if retries > 0 { self.features.branches.tried_of(parent) } else { SlotId::NONE };
        let hedge_of = self.features.branches.row(parent).hedge_of;
        *self.features.branches.row_mut(child) =
            Row { parent, index, hedge: NOT, hedge_of, tries_of, begun: now_ns, group: NOT };
        if let Some(group) = self.features.branches.group(parent) {
            group.branches.push(child);
        }
        child
    }

    /// See [`share_of_ranks`].
    fn turn_of_ranks(&mut self, parent: SlotId) -> Option<u32> {
        self.core.code().leaves_branches.then(|| self.core.states_mut().rows.turns.count(parent))
    }

    /// Marks a branch as an attempt of the hedge where `parent` waits.
    pub(crate) fn mark_attempt(&mut self, child: SlotId, parent: SlotId, hedge: u32) {
        let row = self.features.branches.row_mut(child);
        (row.hedge_of, row.hedge) = (parent, hedge);
    }

    /// How many frames a request has within the part that can be cut off by itself.
    pub(crate) fn frames_within(&self, slot: SlotId, depth: usize) -> u64 {
        let floor = self.core.scopes().depth_of_innermost(slot);
        let (mut at, mut frames) = (depth, 0);
        while at > floor {
            let [back, _, _] = self.core.states().frame(slot, at - 1);
            let pc = (back & !IDLE) as usize;
            at -= 1;
            match (self.core.code().steps[pc].op, self.core.code().steps[pc - 1].op) {
                // It has two frames.
                (Op::Cold(ColdOp::TellGuard { .. }), _) => at -= 1,
                (Op::CallReturn, Op::Call { call }) if self.core.code().calls[call as usize].sends_in => {
                    frames -= 1
                }
                // The frame of a connection is none of the topology's.
                (_, Op::Cold(ColdOp::TakeConnection { .. })) => frames -= 1,
                _ => {}
            }
            frames += 1;
        }
        frames as u64
    }

    /// Removes a branch for which nothing waits any more.
    pub(crate) fn remove_branch(&mut self, slot: SlotId, now_ns: u64) {
        self.core.ledger_mut().last_stop = self.core.ledger().last_stop.max(now_ns);
        self.core.scopes_mut().end(slot);
        self.features.branches.clear(slot);
        self.core.states_mut().remove(slot);
    }

    /// Moves the notes of one branch to another.
    pub(crate) fn move_notes(&mut self, from: SlotId, to: SlotId) {
        let mut notes = std::mem::take(&mut self.core.scopes_mut().notes[from.index()]);
        self.core.scopes_mut().notes[to.index()].append(&mut notes);
        self.core.scopes_mut().notes[from.index()] = notes;
    }

    /// Resumes a parent at a step with the answer of a branch that has ended.
    pub(crate) fn resume(&mut self, slot: SlotId, pc: u32, outcome: Outcome, answer: Answer) {
        let turn = self.core.states_mut().rows.turns.count(slot);
        self.core.states_mut().rows.turns.set(slot, turn + 1);
        let detail = &mut self.features.details.slots[slot.index()];
        (detail.status, detail.relayed, detail.load) = (answer.status, answer.relayed, answer.load);
        let state = self.core.state_mut(slot);
        state.set_outcome(outcome);
        state.tag = state.tag.wrapping_add(1);
        state.pc = pc;
        self.features.branches.then = slot;
    }

    /// Ends the wait for branches: those still open are cut off. With `force`, no request behind goes on. If it
    /// `counts`, the time of the one whose answer was waited for is its parent's.
    pub(crate) fn cut_branches(&mut self, slot: SlotId, force: bool, counts: bool, now_ns: u64) {
        if self.features.branches.row(slot).group == NOT {
            return;
        }
        self.hand_visits_of_first(slot, slot, now_ns);
        if counts {
            self.book_until_begun(slot, slot);
        }
        let mut heir = counts.then_some(slot);
        let (group, open) = self.features.branches.close_group(slot);
        for &branch in open.iter().filter(|b| b.is_some()) {
            self.cancel(branch, force, heir.take(), now_ns);
        }
        self.features.branches.spare_group(group, open);
    }

    /// Books the time before the attempt that counts began at the hedge itself.
    fn book_until_begun(&mut self, slot: SlotId, heir: SlotId) {
        let Some(group) = self.features.branches.group(slot) else { return };
        if let (Some(first), Some(_)) = (group.first_open(), group.hedging) {
            let begun = self.features.branches.begun(first);
            self.book_start(slot, heir, begun);
        }
    }

    /// The same for an attempt that began at `begun`.
    pub(crate) fn book_start(&mut self, slot: SlotId, heir: SlotId, begun: u64) {
        let member = self.core.state(slot).member;
        let Some(group) = self.features.branches.group(slot) else { return };
        // If it was left behind since, its time up to then is booked.
        let (site, ns) = (group.site, begun.saturating_sub(group.since));
        if ns > 0 {
            self.charge(heir, self.core.code().hedges[site as usize].stage, member, ns);
        }
    }

    /// Cuts a branch off; its time up to now counts for `heir`, if there is one.
    pub(crate) fn cancel(&mut self, slot: SlotId, force: bool, heir: Option<SlotId>, now_ns: u64) {
        let whole = self.whole(slot);
        let holds = self.holds_of(slot, &whole);
        let floor = if force { None } else { holds.iter().rposition(|hold| self.goes_on(hold)) };
        if let Some(floor) = floor {
            return self.leave_behind(slot, &holds, floor, heir, now_ns);
        }
        let selected = self.core.state(slot).mask();
        if self.features.work_left.is_kept() {
            self.features.work_left.drop(slot);
        }
        self.take_back(slot, None, now_ns);
        self.cut_branches(slot, force, heir.is_some(), now_ns);
        holds.iter().for_each(|hold| self.give_back(slot, hold, selected, now_ns));
        self.settle_notes(slot, heir);
        self.remove_branch(slot, now_ns);
    }

    fn settle_notes(&mut self, slot: SlotId, heir: Option<SlotId>) {
        match heir {
            Some(heir) => self.move_notes(slot, heir),
            None => self.spend_notes(slot),
        }
    }

    /// The whole branch, as a limit around it would be.
    fn whole(&self, slot: SlotId) -> Limit {
        match self.features.branches.row(slot).hedge {
            NOT => Limit { end: WHOLE, depth: 1, ..Limit::default() },
            hedge => Limit { end: self.core.code().hedges[hedge as usize].end, ..Limit::default() },
        }
    }

    /// Leaves a branch behind in a place whose requests go on.
    fn leave_behind(
        &mut self,
        slot: SlotId,
        holds: &[Hold],
        floor: usize,
        heir: Option<SlotId>,
        now_ns: u64,
    ) {
        let selected = self.core.state(slot).mask();
        holds[floor + 1..].iter().for_each(|hold| self.give_back(slot, hold, selected, now_ns));
        let lines = self.lines_around(slot);
        self.core.scopes_mut().leave_behind(slot, &holds[floor], &lines);
        self.loses_its_own(slot);
        self.turn_away(slot, heir, Some(&holds[floor]), now_ns);
    }

    /// A request went on in another slot and left this one behind: the branch is in that slot from now on.
    pub(crate) fn part_from(&mut self, slot: SlotId, request: SlotId, now_ns: u64) {
        if !self.core.code().branches {
            return;
        }
        let row = self.features.branches.row(slot);
        *self.features.branches.row_mut(request) = Row { group: NOT, ..row };
        if let Some(group) = self.features.branches.group(row.parent) {
            group.branches[row.index as usize] = request;
        }
        let lines = self.lines_around(slot);
        self.core.scopes_mut().haunt(slot, &lines);
        self.hand_visits_of_first(slot, request, now_ns);
        self.loses_its_own(slot);
        self.turn_away_behind(slot, Some(request), now_ns);
    }

    /// Nothing waits for a branch left behind any more. It and its children keep the list of targets that the request
    /// has tried.
    fn loses_its_own(&mut self, top: SlotId) {
        let Row { tries_of, hedge_of, group, .. } = self.features.branches.row(top);
        if tries_of.is_some() {
            self.core.states_mut().inherit_tried(tries_of, top);
        }
        *self.features.branches.row_mut(top) = Row { group, ..ALONE };
        let mut stack = self.open_of(top);
        while let Some(slot) = stack.pop() {
            let row = self.features.branches.row_mut(slot);
            if row.hedge_of == hedge_of {
                row.hedge_of = SlotId::NONE;
            }
            if tries_of.is_some() && row.tries_of == tries_of {
                row.tries_of = top;
            }
            stack.extend(self.open_of(slot));
        }
    }

    fn open_of(&mut self, slot: SlotId) -> Vec<SlotId> {
        let group = self.features.branches.group(slot);
        group.map_or_else(Vec::new, |group| group.branches.iter().copied().filter(|b| b.is_some()).collect())
    }

    /// From now on the time of a branch counts for no latency.
    fn turn_away(&mut self, slot: SlotId, heir: Option<SlotId>, floor: Option<&Hold>, now_ns: u64) {
        let mut beyond = Vec::new();
        self.take_back(
            slot,
            Some(Remnant { request: SlotId::NONE, beyond: &mut beyond, stands: None }),
            now_ns,
        );
        for &(stage, member, ns) in &beyond {
            self.charge(slot, stage, member, ns.wrapping_neg());
        }
        self.turn_away_behind(slot, heir, now_ns);
        self.settle_notes(slot, heir);
        let scope = self.core.scope_mut(slot);
        scope.floor = floor.map_or(NOT, |floor| floor.pc);
        scope.floor_depth = floor.map_or(0, |floor| floor.depth as u16);
        self.core.state_mut(slot).set_unwanted();
        for (stage, member, ns) in beyond {
            self.charge(slot, stage, member, ns);
        }
    }

    /// The same for all branches that one waits for.
    fn turn_away_behind(&mut self, slot: SlotId, heir: Option<SlotId>, now_ns: u64) {
        if let Some(heir) = heir {
            self.book_until_begun(slot, heir);
        }
        if let Some(group) = self.features.branches.group(slot) {
            group.since = now_ns;
        }
        let mut heir = heir;
        for branch in self.open_of(slot) {
            self.turn_away(branch, heir.take(), None, now_ns);
        }
    }

    /// The timelines of crashable processes around the parents of a branch.
    fn lines_around(&self, slot: SlotId) -> Vec<u32> {
        let (mut lines, mut at) = (Vec::new(), self.features.branches.parent(slot));
        while at != SlotId::NONE {
            self.core.scopes().lines_of(at, &mut lines);
            at = self.features.branches.parent(at);
        }
        lines
    }

    /// The first attempt of a hedge is on the way of the request itself: copies its visits up to now.
    fn hand_visits_of_first(&mut self, slot: SlotId, to: SlotId, now_ns: u64) {
        if self.core.code().visits == 0 {
            return;
        }
        let first = self.features.branches.group(slot).filter(|group| group.hedging.is_some());
        let first = first.and_then(|group| group.branches.first().copied()).filter(|b| b.is_some());
        let Some(first) = first else { return };
        self.hand_visits_of_first(first, first, now_ns);
        let outer = self.core.state(slot).retries;
        if !self.core.states_mut().hand_visits(first, outer, to) {
            // Visits of waits that have not begun are to be forgotten.
            let mut beyond = Vec::new();
            self.take_back(first, Some(Remnant { request: to, beyond: &mut beyond, stands: None }), now_ns);
        }
    }

    /// Whether some parent waits for branches of which another may begin.
    pub(crate) fn will_send_in(&mut self, slot: SlotId) -> bool {
        let group = self.features.branches.group(slot);
        group.and_then(|group| group.hedging).is_some_and(|hedging| hedging.next_deadline().is_some())
    }

    /// A branch begins where it was sent, in its turn: then the next of its fan-out may.
    pub(crate) fn branch_begins(&mut self, slot: SlotId, now_ns: u64) {
        let Row { parent, index, .. } = self.features.branches.row(slot);
        let Some(group) = self.features.branches.group(parent) else { return };
        let last = group.branches.len() as u32 == index + 1;
        if group.hedging.is_none() && last && index + 1 < group.len {
            self.send_part(parent, index + 1, now_ns);
        }
    }
}
