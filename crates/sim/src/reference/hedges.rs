//! Hedging: further attempts of a request while the first is still open.

use super::branch::Phase;
use super::recorder::stay_of;
use super::run::{Flow, Reference, what};
use crate::code::SlotId;
use crate::code::bounds::Cut;
use crate::code::order::{Class, Entry, later_attempt, order_key, ranked};
use weir_model::draws::purpose;
use weir_model::way::further;
use weir_policy::hedge::{Hedging, Step};
use weir_policy::history::StageKind;

impl Reference<'_> {
    /// A branch enters a `hedge`: its first attempt begins.
    pub(super) fn start_hedge(&mut self, slot: SlotId, hedge: u32) -> Flow {
        let site = &self.tables.hedges[hedge as usize];
        let member = self.branches.slots[slot.index()].member;
        if let Some(budget) = site.budget
            && self.is_first_attempt(slot)
        {
            self.budgets[member.index_from(budget)].earn(self.now_ns);
        }
        let idempotent = self.is_idempotent(slot);
        let hedging = Hedging::new(&site.config, self.now_ns, idempotent);
        let group = &mut self.branches.groups[slot.index()];
        group.branches.clear();
        group.picks.clear();
        group.hedging = Some(hedging);
        self.branches.slots[slot.index()].since = self.now_ns;
        let child = self.hedge_child(slot);
        self.watch_hedge(slot);
        Flow::Begin(child)
    }

    /// Creates the branch of another attempt.
    fn hedge_child(&mut self, slot: SlotId) -> SlotId {
        let child = self.send_child(slot);
        self.branches.child[slot.index()] = SlotId::NONE;
        let group = &mut self.branches.groups[slot.index()];
        let index = group.branches.len() as u32;
        group.branches.push(child);
        let depth = u64::from(self.branches.slots[slot.index()].depth);
        let (attempts, turn) = (self.attempts_of_hedge(slot), self.turn_of_ranks(slot));
        let branch = &mut self.branches.slots[child.index()];
        (branch.index, branch.hedge_of) = (index, slot);
        if !branch.take_ranks(index, attempts, turn) {
            self.cut = Some(Cut::TooManyBranches);
        }
        if let (1.., Some(recorder)) = (index, &mut self.branches.recorder) {
            recorder.attempt(child);
            recorder.branch(child);
        }
        if index > 0 {
            let position = depth << 32 | u64::from(index);
            branch.tries = further(branch.tries, purpose::HEDGE, position, branch.turn);
            branch.begin_way(purpose::HEDGE, position);
            (0..index).for_each(|_| branch.rank = later_attempt(branch.rank));
            self.branches.clear_visits(child);
        }
        child
    }

    /// The most attempts of a hedge.
    fn attempts_of_hedge(&self, slot: SlotId) -> u32 {
        let stage = self.branches.slots[slot.index()].stage;
        match self.tables.nodes[stage as usize].act {
            super::build::Act::Hedge { hedge } => self.tables.hedges[hedge as usize].config.attempts,
            _ => 1,
        }
    }

    /// Schedules the instant at which the next attempt may begin.
    fn watch_hedge(&mut self, slot: SlotId) {
        let Some(at) = self.branches.groups[slot.index()].hedging.and_then(|h| h.next_deadline()) else {
            return;
        };
        let branch = &self.branches.slots[slot.index()];
        let key = ranked(order_key(Class::Limit, branch.order), branch.rank);
        let entry = Entry { at: at.min(u64::MAX - 1), key, who: what::HEDGE | slot.0, tag: branch.epoch };
        self.schedule(entry, true);
    }

    /// The delay before a further attempt has passed.
    pub(super) fn hedge_is_due(&mut self, slot: SlotId) {
        let Some(hedging) = self.branches.groups[slot.index()].hedging else { return };
        if hedging.due(self.now_ns) == Step::Start {
            self.hedge_again(slot);
        }
    }

    /// Begins a further attempt, if the budget permits, and runs what follows from it at once.
    fn hedge_again(&mut self, slot: SlotId) -> Step {
        let stage = self.branches.slots[slot.index()].stage;
        let super::build::Act::Hedge { hedge } = self.tables.nodes[stage as usize].act else {
            return Step::Wait;
        };
        let site = &self.tables.hedges[hedge as usize];
        let member = self.branches.slots[slot.index()].member;
        let may = site.budget.is_none_or(|b| self.budgets[member.index_from(b)].take(self.now_ns));
        let group = &mut self.branches.groups[slot.index()];
        let Some(hedging) = &mut group.hedging else { return Step::Wait };
        if !may {
            return hedging.refused();
        }
        hedging.started(self.now_ns);
        self.ledger.extra_attempts += u64::from(self.branches.slots[slot.index()].selected);
        let child = self.hedge_child(slot);
        self.watch_hedge(slot);
        // Woken rather than run: the caller has not finished.
        self.wake(child, Phase::Begin);
        Step::Wait
    }

    /// An attempt has returned.
    pub(super) fn hedge_ends(&mut self, slot: SlotId, parent: SlotId) -> Flow {
        let branch = &self.branches.slots[slot.index()];
        let (outcome, status) = (branch.outcome, branch.status);
        let (index, begun) = (branch.index, branch.begun);
        let (relayed, load) = (branch.relayed, branch.load);
        if index == 0 {
            // The first attempt is on the way of the request itself.
            self.branches.copy_visits(slot, parent);
        }
        let group = &mut self.branches.groups[parent.index()];
        group.branches[index as usize] = SlotId::NONE;
        group.picks.retain(|p| p.2 != index);
        let Some(hedging) = &mut group.hedging else { return Flow::Stop };
        let mut step = hedging.came_back(outcome);
        if step == Step::Start {
            step = self.hedge_again(parent);
        }
        self.leave_cell(slot);
        let Step::Answer(outcome) = step else {
            self.spend_notes(slot);
            self.stops(slot);
            self.branches.remove(slot);
            return Flow::Stop;
        };
        self.note_start(parent, begun);
        self.move_notes(slot, parent);
        self.stops(slot);
        self.branches.remove(slot);
        let open = std::mem::take(&mut self.branches.groups[parent.index()].branches);
        if let Some(&first) = open.first().filter(|b| b.is_some()) {
            self.settle_visits(first, parent);
        }
        open.iter().filter(|b| b.is_some()).for_each(|b| self.cancel(*b, false));
        let group = &mut self.branches.groups[parent.index()];
        group.branches = open;
        group.branches.clear();
        group.hedging = None;
        self.branches.slots[parent.index()].turn += 1;
        self.resume_parent(parent, outcome, status);
        let branch = &mut self.branches.slots[parent.index()];
        (branch.relayed, branch.load) = (relayed, load);
        Flow::Switch(parent)
    }

    /// Books the time before the attempt that counts began at the node itself.
    pub(super) fn note_start(&mut self, parent: SlotId, begun: u64) {
        let branch = &self.branches.slots[parent.index()];
        // If it was left behind since, its time up to then is booked.
        let ns = begun.saturating_sub(branch.since);
        if ns > 0 && branch.selected {
            let part = self.code.row(self.tables.nodes[branch.stage as usize].part, branch.member) as u32;
            self.branches.notes[parent.index()].push((part, ns));
        }
        if let (1.., Some(recorder)) = (ns, &mut self.branches.recorder) {
            recorder.stay(parent, stay_of(branch, StageKind::Wait, branch.since, begun), None);
        }
    }
}
