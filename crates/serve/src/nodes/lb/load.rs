//! The answer of a target of `lb.prequal` to a probe: how many requests weir has in flight there, over all loops, and
//! how long its answers take. weir sees all of a target's requests, so it need not ask the target, and the answer is
//! there at once: the simulator's rule, [`Busy`].
//!
//! A lock for each probed target, held for less than a microsecond; other targets have none and cost nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_plan::{Edge, Node, Point, Spec};
use weir_policy::Outcome;
use weir_policy::prequal::{Busy, Reading};

/// The load of one target.
#[derive(Default)]
pub(crate) struct Load(Mutex<Busy>);

impl Load {
    fn busy(&self) -> MutexGuard<'_, Busy> {
        // Each change is whole before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that is sent there; returns how many it meets.
    pub fn entered(&self) -> u16 {
        self.busy().entered()
    }

    /// Counts the end of a request that had met that many and took this time.
    pub fn left(&self, met: u16, took_ns: u64, outcome: Outcome) {
        self.busy().left(met, took_ns, outcome);
    }

    /// Removes this number of requests, which are no longer reported.
    pub fn forget(&self, requests: u32) {
        self.busy().forget(requests);
    }

    /// The answer to a probe.
    pub fn reading(&self) -> Reading {
        self.busy().reading()
    }
}

/// The loads of all nodes that are targets of an `lb.prequal`, by identity.
#[derive(Default)]
pub(crate) struct Loads(BTreeMap<u32, Arc<Load>>);

impl Loads {
    /// Adds those of a plan, whose nodes have these identities; a new load begins empty.
    pub fn add(&mut self, point: &Point, keys: &[u32]) {
        let probed = |node: &Node| match (&point.specs[node.spec as usize], node.to) {
            (Spec::Lb(lb), Edge::List(list)) if lb.balance.traits().probes => {
                Some(&point.lists[list as usize])
            }
            _ => None,
        };
        for target in point.nodes.iter().filter_map(probed).flatten() {
            self.0.entry(keys[*target as usize]).or_default();
        }
    }

    /// Drops all others.
    pub fn keep(&mut self, is_left: impl Fn(u32) -> bool) {
        self.0.retain(|key, _| is_left(*key));
    }

    /// The loads of a balancer's targets; empty if none is probed.
    pub fn among(&self, targets: impl Iterator<Item = Option<u32>>) -> Box<[Option<Arc<Load>>]> {
        let loads: Box<[_]> = targets.map(|target| self.0.get(&target?).cloned()).collect();
        if loads.iter().any(Option::is_some) { loads } else { Box::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_as_the_simulator_has_it() {
        let (load, mut busy) = (Load::default(), Busy::default());
        (0..4).for_each(|met| assert_eq!((load.entered(), busy.entered()), (met, met)));
        for (met, took_ns) in [(2, 700), (0, 100_000), (1, 3)] {
            assert_eq!(load.reading(), busy.reading());
            load.left(met, took_ns, None);
            busy.left(met, took_ns, None);
        }
        assert_eq!(load.reading(), busy.reading());
        load.forget(1);
        assert_eq!(load.reading(), Reading { in_flight: 0, latency_ns: 700 });
    }
}
