//! The number of a target, and changes of a balancer's set of targets.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The number of a target within its balancer: an index of the roster ([`crate::roster::Roster`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct TargetId(pub u32);

impl TargetId {
    /// The index in a table of targets.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All targets of a balancer with `n` of them, in order.
    #[inline]
    pub fn all(n: u32) -> impl DoubleEndedIterator<Item = TargetId> + Clone {
        (0..n).map(TargetId)
    }
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A change of a balancer's set of targets. Any number of them is applied at once, in one pass over the targets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TargetChange<'a> {
    /// A new target, at the index of a removed one or the next. The caller knows that nothing is in flight there.
    Add {
        /// Its index.
        target: TargetId,
        /// Its weight; 0: never picked.
        weight: f64,
        /// The name that a hashing policy uses for it.
        name: &'a str,
    },
    /// A removed target: no new picks; requests in flight continue.
    Remove(TargetId),
}

impl TargetChange<'_> {
    /// The target that is added or removed.
    pub fn target(&self) -> TargetId {
        match *self {
            TargetChange::Add { target, .. } | TargetChange::Remove(target) => target,
        }
    }
}
