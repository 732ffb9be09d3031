//! Request states of branches: what a branch inherits from its request, and what it gives back.

use super::{RequestState, RequestStates};
use crate::code::SlotId;
use weir_stats::Key;

impl RequestStates {
    /// Creates a branch of a request; the caller sets where it goes.
    pub fn branch(&mut self, from: SlotId) -> SlotId {
        let RequestState { ordinal, arrived, way, retries, .. } = self.slots[from.index()];
        let tries = self.tries(from);
        let (exclude, selected, unwanted) = {
            let state = &self.slots[from.index()];
            (state.exclude(), state.selected(), state.is_unwanted())
        };
        let to = self.add(ordinal, arrived, way, selected);
        let state = &mut self.slots[to.index()];
        state.retries = retries;
        state.set_exclude(exclude);
        if unwanted {
            state.set_unwanted();
        }
        if retries > 0 {
            let row = self.innermost(to);
            self.rows.attempts[row].tries_now = tries;
        }
        to
    }

    /// Sends a branch on on a way of its own.
    pub fn begin_way(&mut self, slot: SlotId, further: impl Fn(Key) -> Key) {
        let state = &mut self.slots[slot.index()];
        state.way = further(state.way);
        if state.retries > 0 {
            let row = self.innermost(slot);
            let tries = &mut self.rows.attempts[row].tries_now;
            *tries = further(*tries);
        }
    }

    /// Copies the list of targets that one request has tried to another.
    pub fn inherit_tried(&mut self, from: SlotId, to: SlotId) {
        if self.excludes {
            self.tried[to.index()] = self.tried[from.index()].clone();
        }
    }

    /// Copies the visits of a request, on the way on which it was inside of `outer` retries, to another. Returns
    /// whether it is on a way of its own by now: then the visits are those saved when it left the other way.
    pub fn hand_visits(&mut self, from: SlotId, outer: u8, to: SlotId) -> bool {
        let state = &self.slots[from.index()];
        let first = from.index() * self.rows.attempts_each;
        let rows = first + usize::from(outer)..first + usize::from(state.retries);
        let attempts = &self.rows.attempts;
        let inside = |row: usize| if row + 1 == rows.end { state.way } else { attempts[row + 1].way };
        match rows.clone().find(|&row| inside(row) != attempts[row].way) {
            Some(row) => self.rows.visits.restore(to, row),
            None => {
                self.rows.visits.copy(from, to);
                return false;
            }
        }
        true
    }
}
