//! The names by which hashing policies know the targets of a balancer.

use crate::key;
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::sync::Arc;

/// The names of a balancer's targets, by index: an address, else a server's name. No two of them are equal, so that the
/// shares of a ring or a table are. Made once and shared: a balancer on another loop copies no letters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct TargetNames(Arc<[Arc<str>]>);

impl TargetNames {
    /// Tells repeats apart ([`key::distinct`]).
    pub fn new(names: &[impl AsRef<str>]) -> TargetNames {
        TargetNames(key::distinct(names).into_iter().map(Arc::from).collect())
    }

    /// Names that differ already; those of removed targets may be empty.
    pub fn of_distinct(names: impl Iterator<Item = Arc<str>>) -> TargetNames {
        TargetNames(names.collect())
    }
}

impl Deref for TargetNames {
    type Target = [Arc<str>];

    fn deref(&self) -> &[Arc<str>] {
        &self.0
    }
}

impl From<Vec<String>> for TargetNames {
    fn from(names: Vec<String>) -> TargetNames {
        TargetNames::of_distinct(names.into_iter().map(Arc::from))
    }
}

impl From<TargetNames> for Vec<String> {
    fn from(names: TargetNames) -> Vec<String> {
        names.iter().map(|name| String::from(&**name)).collect()
    }
}

impl<S: AsRef<str>> From<&[S]> for TargetNames {
    fn from(names: &[S]) -> TargetNames {
        TargetNames::new(names)
    }
}

impl<S: AsRef<str>> From<&Vec<S>> for TargetNames {
    fn from(names: &Vec<S>) -> TargetNames {
        TargetNames::new(names)
    }
}

impl<S: AsRef<str>, const N: usize> From<&[S; N]> for TargetNames {
    fn from(names: &[S; N]) -> TargetNames {
        TargetNames::new(names)
    }
}

impl From<&TargetNames> for TargetNames {
    fn from(names: &TargetNames) -> TargetNames {
        names.clone()
    }
}
