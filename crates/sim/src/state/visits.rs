//! Counts how often each request has been at the places that it can pass more than once on one way, and saves what to
//! restore after an attempt on a way of its own. Most topologies have no such place, and then nothing is kept.

use crate::code::SlotId;

/// Counters of all slots: `each` for a slot, and a copy of them for each row (a retry that encloses a slot).
#[derive(Debug)]
pub(crate) struct Visits {
    each: usize,
    now: Vec<u32>,
    saved: Vec<u32>,
}

impl Visits {
    /// Creates counters, `each` for every slot.
    pub fn new(each: usize) -> Visits {
        Visits { each, now: Vec::new(), saved: Vec::new() }
    }

    /// Grows to `slots` and `rows`.
    pub fn grow(&mut self, slots: usize, rows: usize) {
        self.now.resize(slots * self.each, 0);
        self.saved.resize(rows * self.each, 0);
    }

    /// How often a slot has been at a counted place before; counts this visit.
    #[inline]
    pub fn count(&mut self, slot: SlotId, counter: u32) -> u32 {
        let visits = &mut self.now[slot.index() * self.each + counter as usize];
        *visits += 1;
        *visits - 1
    }

    /// How often a slot has been at a counted place.
    pub fn before(&self, slot: SlotId, counter: u32) -> u32 {
        self.now[slot.index() * self.each + counter as usize]
    }

    /// Takes back a visit that did not take place after all.
    pub fn take_back(&mut self, slot: SlotId, counter: u32) {
        self.now[slot.index() * self.each + counter as usize] -= 1;
    }

    /// Begins a new way, without any visits.
    #[inline]
    pub fn clear(&mut self, slot: SlotId) {
        if self.each > 0 {
            self.now[slot.index() * self.each..][..self.each].fill(0);
        }
    }

    /// Saves the visits of a slot in a row.
    #[inline]
    pub fn save(&mut self, slot: SlotId, row: usize) {
        if self.each > 0 {
            self.saved[row * self.each..][..self.each]
                .copy_from_slice(&self.now[slot.index() * self.each..][..self.each]);
        }
    }

    /// Restores the visits of a slot from a row.
    #[inline]
    pub fn restore(&mut self, slot: SlotId, row: usize) {
        if self.each > 0 {
            self.now[slot.index() * self.each..][..self.each]
                .copy_from_slice(&self.saved[row * self.each..][..self.each]);
        }
    }

    /// Copies the visits of one row to another.
    pub fn copy_row(&mut self, from: usize, to: usize) {
        if self.each > 0 {
            let (from, to) = (from * self.each, to * self.each);
            self.saved.copy_within(from..from + self.each, to);
        }
    }

    /// Copies the visits of one slot to another, on the same way.
    pub fn copy(&mut self, from: SlotId, to: SlotId) {
        if self.each > 0 {
            let (from, to) = (from.index() * self.each, to.index() * self.each);
            self.now.copy_within(from..from + self.each, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_counted_kept_and_brought_back() {
        let mut visits = Visits::new(2);
        visits.grow(2, 3);
        assert_eq!(
            (visits.count(SlotId(1), 0), visits.count(SlotId(1), 0), visits.count(SlotId(1), 1)),
            (0, 1, 0)
        );
        visits.save(SlotId(1), 2);
        visits.clear(SlotId(1));
        assert_eq!(visits.count(SlotId(1), 0), 0);
        visits.restore(SlotId(1), 2);
        visits.copy(SlotId(1), SlotId(0));
        assert_eq!((visits.count(SlotId(0), 0), visits.count(SlotId(1), 1)), (2, 1));
        let mut none = Visits::new(0);
        none.grow(5, 5);
        none.clear(SlotId(4));
        none.save(SlotId(4), 4);
        none.restore(SlotId(4), 4);
        none.copy(SlotId(4), SlotId(0));
    }
}
