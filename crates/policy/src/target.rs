//! The number of a target.

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
