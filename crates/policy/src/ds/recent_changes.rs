//! Which counts the loops of a process have changed lately: each loop writes a ring of its own, and reads those of the others
//! from where it was.
//!
//! - Cost: two stores for each change, a load for each entry that is read and one more for each other loop; no lock. 2 KiB for each
//!   loop of a balancer.
//! - A reader that is further behind than a ring holds, or that would read more entries than there are counts, looks at all counts
//!   instead. A count is changed before its entry is written, so that nothing is missed, and an entry that is read twice does no
//!   harm. Numbers of entries are cut to 32 bits: of a loop that did not read while exactly a multiple of 2³² were written, or up to
//!   256 less, some would be missed until their targets change again.
//! - Only loops that follow write. A loop that begins or ends, since a reload has changed its policy, lets all others look at all
//!   counts; what it changes meanwhile they see then.

use crate::TargetId;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Entries that a ring holds.
const ROOM: u64 = 256;

/// In place of a target: any count may have changed.
const ALL: TargetId = TargetId(u32::MAX);

/// The rings of a process's loops, by their numbers.
pub(crate) type Rings = Arc<[Ring]>;

/// What one loop has changed: it alone writes here.
#[derive(Debug)]
pub(crate) struct Ring {
    /// By the number of a change, from 0 on: the number and one in the upper half, the target in the lower.
    entries: Entries,
    /// The number of changes.
    written: Line,
}

/// On cache lines of their own: others read them.
#[derive(Debug)]
#[repr(align(64))]
struct Entries([AtomicU64; ROOM as usize]);

/// On a cache line of its own, which others rarely read.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

impl Ring {
    fn new() -> Ring {
        Ring { entries: Entries([const { AtomicU64::new(0) }; ROOM as usize]), written: Line::default() }
    }

    fn entry(&self, number: u64) -> &AtomicU64 {
        &self.entries.0[(number % ROOM) as usize]
    }

    /// By the loop whose ring this is.
    fn write(&self, target: TargetId) {
        let number = self.written.0.load(Relaxed);
        self.entry(number).store(u64::from(mark(number)) << 32 | u64::from(target.0), Release);
        self.written.0.store(number + 1, Release);
    }

    /// The target of a change; `None`: it was not made yet. `Err`: it was overwritten.
    fn read(&self, number: u64) -> Result<Option<TargetId>, ()> {
        let found = self.entry(number).load(Acquire);
        let before = if number < ROOM { 0 } else { mark(number - ROOM) };
        match (found >> 32) as u32 {
            of if of == mark(number) => Ok(Some(TargetId(found as u32))),
            of if of == before => Ok(None),
            _ => Err(()),
        }
    }
}

/// Distinguishes an entry from the former one in its place and from an empty place.
fn mark(number: u64) -> u32 {
    (number + 1) as u32
}

/// Rings for this number of loops.
pub(crate) fn make_rings(loops: usize) -> Rings {
    (0..loops).map(|_| Ring::new()).collect()
}

/// A loop that follows what the others change. At most one has a number.
#[derive(Debug)]
pub(crate) struct Follower {
    rings: Rings,
    own: usize,
    /// How many entries of each ring were read.
    read: Vec<u64>,
    /// Whether all counts are to be looked at.
    is_new: bool,
}

impl Follower {
    /// The loop of this number begins: the others look at all counts once. `None`: it has no ring.
    pub fn begin(rings: &Rings, loop_number: u32) -> Option<Follower> {
        let own = loop_number as usize;
        rings.get(own)?.write(ALL);
        Some(Follower { rings: rings.clone(), own, read: vec![0; rings.len()], is_new: true })
    }

    /// Goes on with these rings, and looks at all counts once. `Err`: they are not those that it has followed.
    pub fn go_on(mut self, rings: &Rings) -> Result<Follower, Follower> {
        if !Arc::ptr_eq(&self.rings, rings) {
            return Err(self);
        }
        self.is_new = true;
        Ok(self)
    }

    /// The loop ends: what it changes from now on is not written.
    pub fn end(self) {
        self.rings[self.own].write(ALL);
    }

    /// Writes that this loop has changed a target's count.
    #[inline]
    pub fn write(&mut self, target: TargetId) {
        self.rings[self.own].write(target);
    }

    /// Calls `note` with the targets whose counts others have changed since the last call. False: all counts are to be looked
    /// at, since this is the first call, more than `most` were changed, or not all of them are known.
    #[must_use]
    pub fn read(&mut self, most: u32, note: impl FnMut(TargetId)) -> bool {
        let are_known = !std::mem::take(&mut self.is_new) && self.read_others(most, note).is_ok();
        if !are_known {
            let positions = self.rings.iter().zip(&mut self.read);
            positions.for_each(|(ring, read)| *read = ring.written.0.load(Acquire));
        }
        are_known
    }

    fn read_others(&mut self, most: u32, mut note: impl FnMut(TargetId)) -> Result<(), ()> {
        let mut left = most;
        for (number, (ring, read)) in self.rings.iter().zip(&mut self.read).enumerate() {
            while number != self.own
                && let Some(target) = ring.read(*read)?
            {
                if target == ALL {
                    return Err(());
                }
                left = left.checked_sub(1).ok_or(())?;
                *read += 1;
                note(target);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(of: &mut Follower) -> Option<Vec<u32>> {
        let mut found = Vec::new();
        of.read(u32::MAX, |target| found.push(target.0)).then_some(found)
    }

    fn followers<const N: usize>() -> [Follower; N] {
        let rings = make_rings(N);
        std::array::from_fn(|number| Follower::begin(&rings, number as u32).expect("a ring"))
    }

    #[test]
    fn a_loop_reads_what_others_have_changed_since() {
        let [mut one, mut other, mut third] = followers();
        assert_eq!(read(&mut one), None, "the first look is at all");
        other.write(TargetId(7));
        other.write(TargetId(0));
        one.write(TargetId(3));
        third.write(TargetId(1));
        assert_eq!(read(&mut one), Some(vec![7, 0, 1]), "not of its own");
        assert_eq!(read(&mut one), Some(vec![]));
        other.end();
        assert_eq!((read(&mut one), read(&mut one)), (None, Some(vec![])), "one loop less");
        let other = Follower::begin(&one.rings, 1).expect("a ring");
        assert_eq!((read(&mut one), read(&mut one)), (None, Some(vec![])), "one loop more");
        let rings = one.rings.clone();
        let mut other = other.go_on(&rings).expect("the same rings");
        assert_eq!((read(&mut one), read(&mut other)), (Some(vec![]), None), "it alone looks at all");
        assert!(other.go_on(&make_rings(3)).is_err(), "others");
        let mut other = Follower::begin(&rings, 1).expect("a ring");
        assert_eq!(read(&mut one), None);
        other.write(TargetId(4));
        assert_eq!(read(&mut one), Some(vec![4]));
        assert!(Follower::begin(&one.rings, 3).is_none(), "no ring");
    }

    #[test]
    fn a_loop_alone_reads_nothing() {
        let [mut one] = followers();
        one.write(TargetId(3));
        assert_eq!((read(&mut one), read(&mut one)), (None, Some(vec![])));
    }

    #[test]
    fn a_loop_that_is_far_behind_looks_at_all() {
        let [mut one, mut other] = followers();
        read(&mut one);
        for more in [0, 1, ROOM - 1, 3 * ROOM] {
            (0..ROOM).for_each(|i| other.write(TargetId(i as u32)));
            assert_eq!(read(&mut one), Some((0..ROOM as u32).collect()), "as many as a ring holds");
            (0..=ROOM + more).for_each(|_| other.write(TargetId(0)));
            assert_eq!((read(&mut one), read(&mut one)), (None, Some(vec![])));
        }
        other.write(TargetId(1));
        other.write(TargetId(2));
        assert!(!one.read(1, |_| {}), "all are fewer than the entries");
        assert_eq!(read(&mut one), Some(vec![]));
    }

    /// Numbers are cut to 32 bits.
    #[test]
    fn numbers_go_round() {
        let (ring, first) = (Ring::new(), u64::from(u32::MAX) - ROOM);
        ring.written.0.store(first, Relaxed);
        for number in first..first + 3 * ROOM {
            ring.write(TargetId(number as u32));
            assert_eq!(ring.read(number), Ok(Some(TargetId(number as u32))), "{number}");
            if number >= first + ROOM {
                assert_eq!(ring.read(number - ROOM), Err(()), "{number}: overwritten");
                assert_eq!(ring.read(number + 1), Ok(None), "{number}: not written yet");
            }
        }
    }
}
