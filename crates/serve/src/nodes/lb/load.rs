//! The answer of a target of `lb.prequal` to a probe: how many requests weir has in flight there, over all loops, and
//! how long its answers take. weir sees all of a target's requests, so it need not ask the target, and the answer is
//! there at once: the simulator's rule, [`Busy`].
//!
//! Atomics, one pair per probed target; other targets have none and cost nothing. Another loop may come between the
//! two of a pair: an answer is then off by a request, as any probe's is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use weir_plan::{Edge, Node, Point, Spec};
use weir_policy::prequal::Busy;

/// The load of one target.
#[derive(Default)]
pub(crate) struct Load {
    in_flight: AtomicU32,
    alone_ns: AtomicU64,
}

impl Load {
    /// Counts a request that is sent there.
    pub fn entered(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    /// Counts the end of a request that took this time.
    pub fn left(&self, took_ns: u64) {
        let in_flight = self.in_flight.fetch_sub(1, Relaxed);
        let seen = |alone_ns| {
            let mut busy = Busy { in_flight, alone_ns };
            busy.left(took_ns);
            Some(busy.alone_ns)
        };
        // The closure always returns a value.
        let _ = self.alone_ns.fetch_update(Relaxed, Relaxed, seen);
    }

    /// Removes this number of requests, which are no longer reported.
    pub fn forget(&self, requests: u32) {
        self.in_flight.fetch_sub(requests, Relaxed);
    }

    /// The answer to a probe.
    pub fn busy(&self) -> Busy {
        Busy { in_flight: self.in_flight.load(Relaxed), alone_ns: self.alone_ns.load(Relaxed) }
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
        (0..3).for_each(|_| load.entered());
        (0..3).for_each(|_| busy.entered());
        for took_ns in [700, 100_000, 3] {
            assert_eq!(load.busy(), busy);
            load.left(took_ns);
            busy.left(took_ns);
        }
        assert_eq!(load.busy(), busy);
        assert_eq!(busy.in_flight, 0);
    }
}
