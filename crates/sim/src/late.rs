//! Requests that are on their way back to a balancer and cannot be held up any more: known before their time, needed only
//! when the balancer picks again.
//!
//! A request that has left the last queue crosses cables of constant length; the one thing that its return changes is a
//! count that nobody but this balancer's next pick can see. So instead of an event it leaves a note, and a pick first takes
//! in all notes whose time and order come before its own: the same counts, in the same order, a quarter fewer events.

use std::collections::VecDeque;

/// Notes of one balancer, in the total order of events.
#[derive(Debug)]
pub(crate) struct Late {
    notes: VecDeque<(u64, u64, u32)>,
    /// Time of the first note; the end of time if there is none.
    first: u64,
}

impl Default for Late {
    fn default() -> Late {
        Late { notes: VecDeque::new(), first: u64::MAX }
    }
}

impl Late {
    /// Notes that a request comes back from `target` at that time and order. False if an earlier note comes later than
    /// that (returns of different length): then it needs an event.
    #[inline]
    pub fn note(&mut self, at: u64, key: u64, target: u32) -> bool {
        let in_order = self.notes.back().is_none_or(|&(a, k, _)| (a, k) <= (at, key));
        if in_order {
            self.notes.push_back((at, key, target));
            self.first = self.first.min(at);
        }
        in_order
    }

    /// Takes the next note that does not come after `turn`, the greatest time and order that has run.
    #[inline]
    pub fn before(&mut self, turn: (u64, u64)) -> Option<u32> {
        if self.first > turn.0 {
            return None;
        }
        let &(at, key, target) = self.notes.front()?;
        if (at, key) > turn {
            return None;
        }
        self.notes.pop_front();
        self.first = self.notes.front().map_or(u64::MAX, |note| note.0);
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_taken_in_order_and_in_time() {
        let mut late = Late::default();
        assert!(late.note(5, 1, 10) && late.note(5, 2, 11) && late.note(9, 0, 12));
        assert!(!late.note(8, 0, 13), "out of order");
        assert_eq!(late.before((5, 0)), None);
        assert_eq!(late.before((5, 1)), Some(10));
        assert_eq!(late.before((5, 9)), Some(11));
        assert_eq!(late.before((8, 9)), None);
        assert_eq!(late.before((u64::MAX, 0)), Some(12));
    }
}
