//! Counts of targets that all loops of a process change: a cache line each, so that two targets never meet in one.
//!
//! - Cost: an atomic addition for each change, a load for each look; no lock. 64 bytes a target.
//! - More targets get room in a longer list of chunks, which shares the chunks that are there: loops that still have the
//!   shorter list count in the same places.
//! - A loop whose policy keeps all counts by itself follows what the others change ([`super::recent_changes`]).

use super::recent_changes::{Follower, Rings, make_rings};
use crate::TargetId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Targets in a chunk.
const CHUNK: usize = 64;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU32);

type Chunk = [Line; CHUNK];

/// The counts. A copy counts in the same places.
#[derive(Clone, Debug, Default)]
pub struct SharedCounts {
    chunks: Arc<[Arc<Chunk>]>,
    rings: Rings,
}

impl SharedCounts {
    /// Room for these many targets at least; those that have a count keep it.
    #[must_use]
    pub fn with_room(&self, targets: usize) -> SharedCounts {
        if targets <= self.chunks.len() * CHUNK {
            return self.clone();
        }
        let new = || Arc::new(std::array::from_fn(|_| Line::default()));
        let known = self.chunks.iter().cloned();
        let chunks = known.chain(std::iter::repeat_with(new)).take(targets.div_ceil(CHUNK)).collect();
        SharedCounts { chunks, rings: self.rings.clone() }
    }

    #[inline]
    fn line(&self, target: TargetId) -> Option<&AtomicU32> {
        let chunk = self.chunks.get(target.index() / CHUNK)?;
        Some(&chunk[target.index() % CHUNK].0)
    }

    /// The count of a target; 0 without room for it.
    #[inline]
    pub fn get(&self, target: TargetId) -> u32 {
        self.line(target).map_or(0, |line| line.load(Relaxed))
    }

    /// Adds to it, or takes from it.
    #[inline]
    pub fn add(&self, target: TargetId, change: i32) {
        if let Some(line) = self.line(target) {
            line.fetch_add(change as u32, Relaxed);
        }
    }

    /// Lets this number of loops follow what the others change; for policies that keep all counts by themselves. Those that followed
    /// before go on.
    #[must_use]
    pub fn with_followers(self, loops: usize) -> SharedCounts {
        let rings = if loops == self.rings.len() { self.rings } else { make_rings(loops) };
        SharedCounts { rings, ..self }
    }

    /// Follows what the other loops change from now on, or goes on if this loop has followed them before. `None`: no loop of this
    /// number may.
    pub(crate) fn follow(&self, loop_number: u32, before: Option<Follower>) -> Option<Follower> {
        match before.map(|follower| follower.go_on(&self.rings)) {
            Some(Ok(follower)) => return Some(follower),
            Some(Err(follower)) => follower.end(),
            None => {}
        }
        Follower::begin(&self.rings, loop_number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stay_where_more_get_room() {
        let few = SharedCounts::default().with_room(3);
        few.add(TargetId(2), 5);
        let more = few.with_room(200);
        few.add(TargetId(2), -1);
        more.add(TargetId(130), 1);
        assert_eq!((more.get(TargetId(2)), more.get(TargetId(130)), few.get(TargetId(130))), (4, 1, 0));
        few.add(TargetId(130), 1);
        assert_eq!(more.get(TargetId(130)), 1, "without room it is not counted");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what it counts is of several threads")]
    fn threads_count_together() {
        let counts = SharedCounts::default().with_room(2);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let own = counts.clone();
                scope.spawn(move || (0..10_000).for_each(|_| own.add(TargetId(1), 1)));
            }
        });
        assert_eq!((counts.get(TargetId(0)), counts.get(TargetId(1))), (0, 40_000));
    }
}
