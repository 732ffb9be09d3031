//! The retries that enclose branches, and the places that branches have visited on their ways.

use super::{Attempts, Branches};
use crate::code::SlotId;
use weir_model::draws::purpose;
use weir_model::way::further;
use weir_policy::config::Exclude;
use weir_policy::retry::Attempt;
use weir_stats::Key;

impl Branches {
    /// The request and all its attempts: the key of choices.
    pub fn tries(&self, slot: SlotId) -> Key {
        let branch = &self.slots[slot.index()];
        if branch.retries == branch.outer_retries {
            return branch.tries;
        }
        self.attempts[self.innermost(slot)].tries_now
    }

    pub(in crate::reference) fn innermost(&self, slot: SlotId) -> usize {
        let branch = &self.slots[slot.index()];
        slot.index() * self.attempts_each + usize::from(branch.retries - branch.outer_retries) - 1
    }

    /// A branch enters a retry with a rule of exclusion.
    pub fn begin_attempts(&mut self, slot: SlotId, exclude: Exclude, counter: Option<u32>) {
        let came = self.come_again(slot, counter);
        let tries = self.tries(slot);
        let branch = &mut self.slots[slot.index()];
        let (outside, way, turn) = (branch.exclude, branch.way, branch.turn);
        branch.exclude = exclude;
        branch.retries += 1;
        if branch.tries_of == SlotId::NONE {
            branch.tries_of = slot;
            self.tried[slot.index()].clear();
        }
        let row = self.innermost(slot);
        self.attempts[row] =
            Attempts { attempt: Attempt::FIRST, exclude: outside, way, turn, tries, tries_now: tries, came };
        self.visits.save(slot, row);
    }

    /// How often a branch has come to a node before, on this way; counts this visit.
    pub fn come_again(&mut self, slot: SlotId, counter: Option<u32>) -> u32 {
        counter.map_or(0, |counter| self.visits.count(slot, counter))
    }

    /// How often a branch has been at a counted place.
    pub fn been_at(&self, slot: SlotId, counter: u32) -> u32 {
        self.visits.before(slot, counter)
    }

    /// How often it had come to its innermost retry before.
    pub fn came_to_retry(&self, slot: SlotId) -> u32 {
        self.attempts[self.innermost(slot)].came
    }

    /// The current attempt of a branch's innermost retry.
    pub fn attempt(&self, slot: SlotId) -> Attempt {
        self.attempts[self.innermost(slot)].attempt
    }

    /// The innermost retry begins another attempt. The first one is the request itself, on the way on which it came;
    /// each further one is a way of its own, on which no place has been visited yet, or (without `redraw`) the first
    /// one again.
    pub fn try_again(&mut self, slot: SlotId, next: Attempt, redraw: bool) {
        let row = self.innermost(slot);
        if !redraw {
            self.visits.restore(slot, row);
        } else {
            if self.attempts[row].attempt == Attempt::FIRST {
                self.visits.save(slot, row);
            }
            self.visits.clear(slot);
        }
        let attempts = &mut self.attempts[row];
        let branch = &mut self.slots[slot.index()];
        // The key includes the depth of the retry among nested ones: (1, 2) and (2, 1) are different ways.
        let position = u64::from(branch.retries) << 32 | u64::from(next.0);
        branch.turn = attempts.turn;
        attempts.tries_now = further(attempts.tries, purpose::ATTEMPT, position, attempts.turn);
        if redraw {
            branch.way = attempts.way;
            branch.begin_way(purpose::ATTEMPT, position);
        }
        attempts.attempt = next;
        (branch.outcome, branch.status, branch.relayed) = (None, 0, false);
        branch.load = None;
    }

    /// A branch leaves a retry, and the ways of its further attempts.
    pub fn end_attempts(&mut self, slot: SlotId, redraw: bool) {
        let row = self.innermost(slot);
        let Attempts { exclude, way, turn, attempt, .. } = self.attempts[row];
        if redraw && attempt != Attempt::FIRST {
            self.visits.restore(slot, row);
        }
        let branch = &mut self.slots[slot.index()];
        branch.retries -= 1;
        (branch.way, branch.turn) = (way, turn + 1);
        branch.exclude = exclude;
        if branch.retries == 0 {
            branch.tries_of = SlotId::NONE;
        }
    }

    /// Copies the visits of one branch to another on the same way.
    pub fn copy_visits(&mut self, from: SlotId, to: SlotId) {
        self.visits.copy(from, to);
    }

    /// The same for a branch that is cut off: in further attempts with ways of their own, the visits on the way on
    /// which it came are those saved when the outermost of these attempts began.
    pub fn hand_visits(&mut self, from: SlotId, to: SlotId) {
        let branch = &self.slots[from.index()];
        let first = from.index() * self.attempts_each;
        let rows = first..first + usize::from(branch.retries - branch.outer_retries);
        let inside = |row: usize| if row + 1 == rows.end { branch.way } else { self.attempts[row + 1].way };
        match rows.clone().find(|&row| inside(row) != self.attempts[row].way) {
            Some(row) => self.visits.restore(to, row),
            None => self.copy_visits(from, to),
        }
    }

    /// Begins a new way, without any visits.
    pub fn clear_visits(&mut self, slot: SlotId) {
        self.visits.clear(slot);
    }
}
