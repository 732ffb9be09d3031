//! Counts of a pool's connections on one thread that go on when targets leave: a counter of a pool never decreases, though
//! what it adds up is counted by target.

use super::counts::Value;
use super::{ConnectionCounts, OriginHandshake, PoolCounts};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

/// The targets that scrapes have met, by their identities.
#[derive(Default)]
pub(crate) struct ConnectedTargets(RefCell<BTreeMap<u32, ConnectedTarget>>);

struct ConnectedTarget {
    pool: Rc<PoolCounts>,
    counts: Rc<ConnectionCounts>,
    /// The last scrape that has met it.
    round: u64,
}

/// Totals of the targets of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolTotals {
    /// Connections of HTTP/1.1 that are open, and of HTTP/2.
    pub open: [u64; 2],
    pub streams: u64,
    /// In the order of [`OriginHandshake::ALL`].
    pub handshakes: [u64; OriginHandshake::COUNT],
    /// Whether any target is reached by TLS.
    pub has_tls: bool,
    pub resent: u64,
}

impl PoolTotals {
    /// Adds a target.
    pub fn add(&mut self, counts: &ConnectionCounts) {
        let h2 = counts.h2_open.get();
        self.open[0] += counts.open().saturating_sub(h2);
        self.open[1] += h2;
        self.streams += counts.streams.get();
        self.add_ended(counts);
    }

    fn add_ended(&mut self, counts: &ConnectionCounts) {
        for (sum, result) in self.handshakes.iter_mut().zip(OriginHandshake::ALL) {
            *sum += counts.handshakes.get(*result);
        }
        self.resent += counts.resent.get();
    }
}

impl ConnectedTargets {
    /// A scrape meets a target of this pool.
    pub fn meet(&self, key: u32, pool: &Rc<PoolCounts>, counts: &Rc<ConnectionCounts>, round: u64) {
        let new = || ConnectedTarget { pool: pool.clone(), counts: counts.clone(), round };
        let mut all = self.0.borrow_mut();
        let target = all.entry(key).or_insert_with(new);
        // It was gone meanwhile and counts anew.
        if !Rc::ptr_eq(&target.counts, counts) {
            std::mem::replace(target, new()).leaves();
        }
        target.round = round;
    }

    /// Looks at the next target behind this one: a pool keeps what a target has counted that the scrape has not met.
    /// Returns the one that it has looked at.
    pub fn look(&self, after: Option<u32>, round: u64) -> Option<u32> {
        let mut all = self.0.borrow_mut();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (&key, target) = all.range((from, Bound::Unbounded)).next()?;
        if target.round != round
            && let Some(target) = all.remove(&key)
        {
            target.leaves();
        }
        Some(key)
    }
}

impl ConnectedTarget {
    /// Its pool keeps what it has counted.
    fn leaves(self) {
        let mut left = self.pool.left.get();
        left.add_ended(&self.counts);
        self.pool.left.set(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(targets: &ConnectedTargets, round: u64) {
        let mut after = None;
        while let Some(key) = targets.look(after, round) {
            after = Some(key);
        }
    }

    #[test]
    fn what_a_target_has_counted_outlasts_it() {
        let (targets, pool) = (ConnectedTargets::default(), Rc::new(PoolCounts::new("pool".into())));
        let counts = [(); 3].map(|()| Rc::<ConnectionCounts>::default());
        for (key, counts) in (0..).zip(&counts) {
            counts.handshakes.one(OriginHandshake::Full);
            targets.meet(key, &pool, counts, 1);
        }
        rounds(&targets, 1);
        assert_eq!(pool.left.get(), PoolTotals::default());
        // One leaves, and has met something since.
        counts[1].handshakes.one(OriginHandshake::Resumed);
        for (key, counts) in [(0, &counts[0]), (2, &counts[2])] {
            targets.meet(key, &pool, counts, 2);
        }
        rounds(&targets, 2);
        assert_eq!(pool.left.get().handshakes, [1, 1, 0]);
        rounds(&targets, 2);
        assert_eq!(pool.left.get().handshakes, [1, 1, 0], "once");
    }
}
