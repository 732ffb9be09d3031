//! Ringsteady: targets and clients on one ring at bit-reversed numbers; a client takes the next targets clockwise.
//!
//! - Idea: consistent hashing spreads points unevenly, since they are random. Points of the binary van der Corput
//!   sequence (0, 1/2, 1/4, 3/4, 1/8, ...) are spread as evenly as can be for every number of them, and one more moves
//!   none.
//! - Signal: the targets alone. State: a number per target, the ring.
//! - Cost of a change: O(n) per target, and O(size) per loop.
//! - Formula: target k at the bit-reversal of its sequence number, client c at that of c; the subset is the `size` targets
//!   from the first at or after the client. Targets that come at once are numbered in the order of their names, each by
//!   the lowest number that is free, so that numbers stay dense.
//! - Pathologies: neighbours share most of their subsets; leavers leave gaps until newcomers take their numbers;
//!   instances agree on numbers only if they have seen the same changes, and need consecutive numbers of their own.
//! - Source: Ward, Wankadia, Guliani, "Reinventing Backend Subsetting at Google" (ACM Queue 20(5), 2022).
//! - In the language: `subset.ringsteady(size, instance=0, instances=1)`.

use super::population::Population;
use super::{InstanceArgs, SubsetPolicy, renew};
use crate::TargetId;
use std::collections::BTreeSet;
use std::sync::Arc;
use weir_stats::Key;

/// A target at its place on the ring.
type Point = (u64, TargetId);

/// The subsets of one balancer.
#[derive(Clone, Debug)]
pub(super) struct Ringsteady {
    args: InstanceArgs,
    /// By target; of targets that do not exist it means nothing.
    numbers: Vec<u64>,
    /// The numbers of targets that have left, below the next that was never used.
    free: BTreeSet<u64>,
    next: u64,
    /// In order.
    ring: Vec<Point>,
    lists: Vec<Arc<[TargetId]>>,
}

impl Ringsteady {
    pub fn new(args: InstanceArgs, loops: u32) -> Ringsteady {
        Ringsteady {
            args,
            numbers: Vec::new(),
            free: BTreeSet::new(),
            next: 0,
            ring: Vec::new(),
            lists: vec![Arc::default(); loops as usize],
        }
    }

    fn take_number(&mut self) -> u64 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

impl SubsetPolicy for Ringsteady {
    fn leave(&mut self, _all: &Population, leavers: &[TargetId], _draw: Key) {
        for target in leavers {
            let number = self.numbers[target.index()];
            self.free.insert(number);
            if let Ok(at) = self.ring.binary_search(&(number.reverse_bits(), *target)) {
                self.ring.remove(at);
            }
        }
    }

    fn join(&mut self, all: &Population, newcomers: &[TargetId], _draw: Key) {
        let mut sorted = newcomers.to_vec();
        all.sort_by_name(&mut sorted);
        for target in sorted {
            let number = self.take_number();
            if target.index() >= self.numbers.len() {
                self.numbers.resize(target.index() + 1, 0);
            }
            self.numbers[target.index()] = number;
            self.ring.push((number.reverse_bits(), target));
        }
        self.ring.sort_unstable();
    }

    fn settle(&mut self, _all: &Population) -> u64 {
        let (loops, n) = (self.lists.len() as u32, self.ring.len());
        let size = (self.args.size.max(1) as usize).min(n);
        for (on, list) in (0..).zip(&mut self.lists) {
            let client = self.args.client(loops, on).reverse_bits();
            let first = self.ring.partition_point(|point| point.0 < client);
            let clockwise = self.ring.iter().cycle().skip(first).take(size);
            renew(list, clockwise.map(|point| point.1).collect());
        }
        0
    }

    fn lists(&self) -> Vec<Arc<[TargetId]>> {
        self.lists.clone()
    }
}
