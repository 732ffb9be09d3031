//! Requests on their way back to a balancer that nothing can hold up any more: their returns are known ahead of time,
//! and needed only when the balancer picks again.
//!
//! A request that has left the last queue crosses cables of constant length; its return changes only a count, which
//! only this balancer's next pick can see. So instead of scheduling an event it leaves a note, and a pick first
//! processes all notes whose time and order come before its own: the same counts, in the same order, with a quarter
//! fewer events.

use weir_policy::TargetId;

/// The return of a request from a target.
#[derive(Clone, Copy, Debug)]
struct Note {
    at: u64,
    key: u64,
    target: TargetId,
}

const NOTHING: Note = Note { at: u64::MAX, key: 0, target: TargetId(0) };

/// Notes of one balancer, in the total order of events.
#[derive(Debug)]
pub(crate) struct Deferred {
    /// Time of the first note; the end of time if there is none.
    first: u64,
    /// Time and order of the last note; the beginning of time if there is none.
    last: (u64, u64),
    /// A ring; its length is a power of two, or 0 before the first note.
    ring: Vec<Note>,
    head: usize,
    tail: usize,
}

impl Default for Deferred {
    fn default() -> Deferred {
        Deferred { first: u64::MAX, last: (0, 0), ring: Vec::new(), head: 0, tail: 0 }
    }
}

impl Deferred {
    /// Notes that a request returns from `target` at that time and order. False if an earlier note comes later than
    /// that (returns of different length): then an event is needed.
    #[inline(always)]
    pub fn note(&mut self, at: u64, key: u64, target: TargetId) -> bool {
        if at < self.last.0 || at == self.last.0 && key < self.last.1 {
            return false;
        }
        if self.tail - self.head == self.ring.len() {
            self.grow();
        }
        let mask = self.ring.len().wrapping_sub(1);
        if let Some(note) = self.ring.get_mut(self.tail & mask) {
            *note = Note { at, key, target };
        }
        self.tail += 1;
        self.last = (at, key);
        self.first = self.first.min(at);
        true
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let mask = self.ring.len().wrapping_sub(1);
        let mut ring: Vec<Note> = (self.head..self.tail).map(|i| self.ring[i & mask]).collect();
        (self.head, self.tail) = (0, ring.len());
        ring.resize((2 * ring.len()).max(16), NOTHING);
        self.ring = ring;
    }

    /// Takes the next note that does not come after `turn`, the greatest time and order that has been processed.
    #[inline(always)]
    pub fn before(&mut self, turn: (u64, u64)) -> Option<TargetId> {
        if self.first > turn.0 {
            return None;
        }
        let mask = self.ring.len().wrapping_sub(1);
        let &Note { at, key, target } = self.ring.get(self.head & mask)?;
        if self.head == self.tail || at == turn.0 && key > turn.1 {
            return None;
        }
        self.head += 1;
        if self.head == self.tail {
            (self.first, self.last) = (u64::MAX, (0, 0));
        } else {
            self.first = self.ring[self.head & mask].at;
        }
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_taken_in_order_and_in_time() {
        let mut late = Deferred::default();
        assert!(
            late.note(5, 1, TargetId(10)) && late.note(5, 2, TargetId(11)) && late.note(9, 0, TargetId(12))
        );
        assert!(!late.note(8, 0, TargetId(13)), "out of order");
        assert_eq!(late.before((5, 0)), None);
        assert_eq!(late.before((5, 1)), Some(TargetId(10)));
        assert_eq!(late.before((5, 9)), Some(TargetId(11)));
        assert_eq!(late.before((8, 9)), None);
        assert_eq!(late.before((u64::MAX, 0)), Some(TargetId(12)));
        assert!(late.note(8, 0, TargetId(13)), "nobody is on the way any more");
        assert_eq!(late.before((u64::MAX, u64::MAX)), Some(TargetId(13)));
        assert_eq!(late.before((u64::MAX, u64::MAX)), None);
    }

    #[test]
    fn the_ring_grows_and_goes_round() {
        let mut late = Deferred::default();
        let (mut noted, mut taken) = (0u32, 0u32);
        for step in 0..1000 {
            for _ in 0..step % 7 {
                assert!(late.note(u64::from(noted), 3, TargetId(noted)));
                noted += 1;
            }
            while taken + step / 10 < noted {
                assert_eq!(late.before((u64::from(taken), 3)), Some(TargetId(taken)));
                taken += 1;
            }
        }
        assert_eq!(late.before((u64::MAX, 0)), Some(TargetId(taken)));
    }
}
