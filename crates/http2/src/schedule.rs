//! Which stream sends DATA next (RFC 9218 §10).
//!
//! The most urgent first. Among streams of one urgency the incremental ones send in turn, and, as one member of that
//! round, the others, one after another in the order of their numbers; so no stream waits for ever for one of its own
//! urgency. An incremental stream that has sent nothing yet comes before the round: it may be short. A turn is a frame,
//! 16 KiB at most.

use crate::priority::Priority;
use crate::stream::Slot;

/// The place of one stream, the least of which comes first: its urgency, whether it has sent, its turn, its number. One
/// number, since all that wait are looked at for each turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u64);

/// Bits of a turn, and of a stream's number.
const TURN: u32 = 29;
const STREAM: u32 = 31;

impl Place {
    fn new(urgency: u8, has_sent: bool, stream: u32) -> Place {
        Place(u64::from(urgency & 7) << 61 | u64::from(has_sent) << 60 | u64::from(stream))
    }

    fn urgency(self) -> u64 {
        self.0 >> 61
    }

    fn turn(self) -> u32 {
        (self.0 >> STREAM) as u32 & ((1 << TURN) - 1)
    }

    /// The place of one that has sent, with this turn.
    fn set_turn(self, turn: u32) -> Place {
        let others = !(((1 << TURN) - 1) << STREAM);
        Place(self.0 & others | u64::from(turn) << STREAM)
    }

    fn mark_sent(self) -> Place {
        Place(self.0 | 1 << 60)
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: Place,
    slot: Slot,
    is_incremental: bool,
    /// Nothing waits but END_STREAM, which needs no window.
    is_empty: bool,
}

/// The streams that can send DATA.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    ready: Vec<Entry>,
    /// The turn of the round that a stream takes which comes new, or has just had one.
    turn: u32,
}

impl Schedule {
    pub(crate) fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Adds a stream that can send.
    pub(crate) fn insert(
        &mut self,
        slot: Slot,
        stream: u32,
        priority: Priority,
        has_sent: bool,
        is_empty: bool,
    ) {
        let place = Place::new(priority.urgency, has_sent || !priority.is_incremental, stream);
        let turn = if priority.is_incremental { self.next_turn() } else { self.group(place) };
        let place = place.set_turn(turn);
        self.ready.push(Entry { place, slot, is_incremental: priority.is_incremental, is_empty });
    }

    /// A stream keeps its place, and has now something else to send.
    pub(crate) fn update(&mut self, slot: Slot, is_empty: bool) {
        if let Some(at) = self.position(slot) {
            self.ready[at].is_empty = is_empty;
        }
    }

    /// The stream whose turn it is. `has_window`: whether the connection has any.
    pub(crate) fn first(&self, has_window: bool) -> Option<Slot> {
        if has_window {
            return self.ready.iter().min_by_key(|entry| entry.place).map(|entry| entry.slot);
        }
        let able = self.ready.iter().filter(|entry| entry.is_empty);
        able.min_by_key(|entry| entry.place).map(|entry| entry.slot)
    }

    /// A stream has had its turn, and has more to send.
    pub(crate) fn rotate(&mut self, slot: Slot) {
        let turn = self.next_turn();
        let Some(at) = self.position(slot) else { return };
        let Entry { place, is_incremental, .. } = self.ready[at];
        self.ready[at].place = place.mark_sent().set_turn(turn);
        if !is_incremental {
            // The others wait for their round with it.
            let is_other = |e: &&mut Entry| !e.is_incremental && e.place.urgency() == place.urgency();
            self.ready.iter_mut().filter(is_other).for_each(|e| e.place = e.place.set_turn(turn));
        }
    }

    /// Removes a stream that has nothing to send, or no window.
    pub(crate) fn remove(&mut self, slot: Slot) {
        if let Some(at) = self.position(slot) {
            self.ready.swap_remove(at);
        }
        if self.ready.is_empty() {
            self.turn = 0;
        }
    }

    /// Frees the memory of a connection whose last stream has ended.
    pub(crate) fn rest(&mut self) {
        if self.ready.is_empty() {
            *self = Schedule::default();
        }
    }

    fn position(&self, slot: Slot) -> Option<usize> {
        self.ready.iter().position(|entry| entry.slot == slot)
    }

    fn next_turn(&mut self) -> u32 {
        if (self.turn + 1) >> TURN > 0 {
            // The round begins anew; the order of one round is lost, once in 2^29 frames.
            self.ready.iter_mut().for_each(|entry| entry.place = entry.place.set_turn(0));
            self.turn = 0;
        }
        self.turn += 1;
        self.turn
    }

    /// The turn of the streams that are sent one after another.
    fn group(&mut self, place: Place) -> u32 {
        let is_member = |e: &&Entry| !e.is_incremental && e.place.urgency() == place.urgency();
        match self.ready.iter().find(is_member) {
            Some(member) => member.place.turn(),
            None => self.next_turn(),
        }
    }

    /// Bytes on the heap.
    pub(crate) fn footprint(&self) -> usize {
        self.ready.capacity() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Priority = Priority { urgency: 5, is_incremental: false };
    const ROUND: Priority = Priority { urgency: 3, is_incremental: true };
    const QUEUE: Priority = Priority { urgency: 3, is_incremental: false };

    /// The order of streams that each have this many frames to send.
    fn order(streams: &[(u32, Priority, u32)]) -> Vec<u32> {
        let mut schedule = Schedule::default();
        let mut left: Vec<u32> = streams.iter().map(|s| s.2).collect();
        for (i, (stream, priority, _)) in streams.iter().enumerate() {
            schedule.insert(i as Slot, *stream, *priority, false, false);
        }
        let mut order = Vec::new();
        while let Some(slot) = schedule.first(true) {
            order.push(streams[slot as usize].0);
            left[slot as usize] -= 1;
            match left[slot as usize] {
                0 => schedule.remove(slot),
                _ => schedule.rotate(slot),
            }
        }
        order
    }

    #[test]
    fn urgent_before_others() {
        assert_eq!(order(&[(1, SLOW, 2), (3, ROUND, 2), (5, SLOW, 1)]), [3, 3, 1, 1, 5]);
    }

    #[test]
    fn incremental_ones_take_turns() {
        assert_eq!(order(&[(1, ROUND, 3), (3, ROUND, 2), (5, ROUND, 1)]), [1, 3, 5, 1, 3, 1]);
    }

    #[test]
    fn others_come_one_after_another() {
        assert_eq!(order(&[(3, QUEUE, 2), (1, QUEUE, 3)]), [1, 1, 1, 3, 3]);
    }

    #[test]
    fn both_ways_share() {
        let order = order(&[(1, QUEUE, 3), (3, QUEUE, 3), (5, ROUND, 4)]);
        assert_eq!(order, [5, 1, 5, 1, 5, 1, 3, 5, 3, 3]);
    }

    #[test]
    fn the_round_begins_anew_after_many_turns() {
        let mut schedule = Schedule { turn: (1 << TURN) - 3, ..Schedule::default() };
        (0..3).for_each(|slot| schedule.insert(slot, 2 * slot + 1, ROUND, true, false));
        let mut order = Vec::new();
        for _ in 0..9 {
            let slot = schedule.first(true).expect("ready");
            order.push(slot);
            schedule.rotate(slot);
        }
        order.sort_unstable();
        assert_eq!(order, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn an_end_needs_no_window() {
        let mut schedule = Schedule::default();
        schedule.insert(0, 1, QUEUE, false, false);
        schedule.insert(1, 3, QUEUE, false, true);
        assert_eq!((schedule.first(true), schedule.first(false)), (Some(0), Some(1)));
        schedule.remove(1);
        assert_eq!(schedule.first(false), None);
        schedule.remove(0);
        assert!(schedule.footprint() > 0);
        schedule.rest();
        assert_eq!(schedule.footprint(), 0);
    }
}
