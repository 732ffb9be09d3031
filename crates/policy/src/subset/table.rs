//! The subsets of a balancer at one moment: made once, shared by the loops of a process.
//!
//! Cost: a copy is a pointer; the lists of subsets that a change has left alone are shared with the table before, so
//! that a loop sees at once that its own is the same.

use crate::TargetId;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The subsets of all loops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SubsetTable(Arc<Lists>);

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Lists {
    loops: u32,
    /// Each target is in one subset, and after its own a loop uses the next one, and round; otherwise all other targets.
    goes_round: bool,
    /// The members of each subset, by index.
    subsets: Vec<Arc<[TargetId]>>,
}

/// How many subsets there are, and how many targets the smallest and the largest have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubsetSizes {
    /// Subsets.
    pub count: u32,
    /// Targets of the smallest.
    pub least: u32,
    /// Targets of the largest.
    pub most: u32,
}

impl SubsetTable {
    pub(super) fn new(loops: u32, goes_round: bool, subsets: Vec<Arc<[TargetId]>>) -> SubsetTable {
        SubsetTable(Arc::new(Lists { loops, goes_round, subsets }))
    }

    /// Whether the other is a copy of this table: they are one in memory.
    pub fn is_copy_of(&self, other: &SubsetTable) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The loops that it is for.
    pub fn loops(&self) -> u32 {
        self.0.loops
    }

    /// The number of subsets.
    pub fn count(&self) -> u32 {
        self.0.subsets.len() as u32
    }

    /// Whether each target is in one subset (`subset.loops`); otherwise each loop has a subset of its own.
    pub fn goes_round(&self) -> bool {
        self.0.goes_round
    }

    /// The number of a loop's subset: consecutive loops share one.
    pub fn number_on(&self, on: u32) -> u32 {
        let loops = u64::from(self.0.loops.max(1));
        (u64::from(on) % loops * u64::from(self.count()) / loops) as u32
    }

    /// The members of a subset, by index.
    pub fn members(&self, number: u32) -> &[TargetId] {
        self.0.subsets.get(number as usize).map_or(&[], |members| members)
    }

    /// The subset of a target where each is in one; `None` where it is in none or may be in several
    /// ([`SubsetTable::has`]).
    pub fn number_of(&self, target: TargetId) -> Option<u32> {
        let mut numbers = (0..self.count()).filter(|_| self.0.goes_round);
        numbers.find(|&number| self.members(number).binary_search(&target).is_ok())
    }

    /// Whether a target is in the subset of a loop.
    pub fn has(&self, on: u32, target: TargetId) -> bool {
        self.members(self.number_on(on)).binary_search(&target).is_ok()
    }

    /// The number of subsets and their sizes.
    pub fn sizes(&self) -> SubsetSizes {
        let sizes = || self.0.subsets.iter().map(|members| members.len() as u32);
        SubsetSizes {
            count: self.count(),
            least: sizes().min().unwrap_or_default(),
            most: sizes().max().unwrap_or_default(),
        }
    }

    /// The list of a subset, to be kept.
    pub(crate) fn list(&self, number: u32) -> Arc<[TargetId]> {
        self.0.subsets.get(number as usize).cloned().unwrap_or_default()
    }

    /// Whether these are its lists, in memory.
    pub(super) fn has_lists(&self, lists: &[Arc<[TargetId]>]) -> bool {
        let own = &self.0.subsets;
        own.len() == lists.len() && own.iter().zip(lists).all(|(own, list)| Arc::ptr_eq(own, list))
    }

    /// How many targets have entered a subset since the table before, without the newcomers.
    pub(super) fn count_entered(&self, before: &SubsetTable, newcomers: &[TargetId]) -> u64 {
        let entered = |(now, was): (&Arc<[TargetId]>, &Arc<[TargetId]>)| {
            if Arc::ptr_eq(now, was) {
                return 0;
            }
            let is_known = |target: &&TargetId| {
                was.binary_search(target).is_ok() || newcomers.binary_search(target).is_ok()
            };
            now.len() - now.iter().filter(is_known).count()
        };
        self.0.subsets.iter().zip(&before.0.subsets).map(entered).sum::<usize>() as u64
    }
}
