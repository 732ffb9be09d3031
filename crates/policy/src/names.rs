//! The names by which hashing policies know the targets of a balancer.

use crate::key;
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::sync::Arc;

/// The names of a balancer's targets, by index: an address, else a server's name. No two of them are equal, so that the
/// shares of a ring or a table are. Made once and shared: a balancer on another loop copies no name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<String>", into = "Vec<String>")]
pub struct TargetNames(Arc<Vec<Arc<str>>>);

impl TargetNames {
    /// Tells repeats apart ([`key::distinct`]).
    pub fn new(names: &[impl AsRef<str>]) -> TargetNames {
        TargetNames::of_distinct(key::distinct(names).into_iter().map(Arc::from))
    }

    /// Names that differ already; those of removed targets may be empty.
    pub fn of_distinct(names: impl Iterator<Item = Arc<str>>) -> TargetNames {
        TargetNames(Arc::new(names.collect()))
    }

    /// Whether the other is a copy of this list, which needs no look at its names.
    pub fn is_copy_of(&self, other: &TargetNames) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Sets a name, after empty ones if there are not as many; copies of the list keep what they have.
    pub fn set(&mut self, index: usize, name: Arc<str>) {
        if self.get(index) == Some(&name) {
            return;
        }
        let names = Arc::make_mut(&mut self.0);
        names.resize(names.len().max(index + 1), Arc::default());
        names[index] = name;
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
