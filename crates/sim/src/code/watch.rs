//! The members that a scenario's changes move: what a result over time tells of each of them, beside the others.

use std::collections::BTreeSet;
use weir_plan::fleets::Member;

/// The most members that are shown one by one.
pub(crate) const MOST_WATCHED: usize = 100;

/// The members of a scenario with results over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchTables {
    /// Those that are shown one by one, in the order of fleets and numbers.
    pub sites: Vec<WatchedSite>,
    /// What is at each place of each balancer over fleets.
    pub roles: Vec<Vec<Role>>,
    /// The members of the same fleets that run throughout and are not moved.
    pub others: Vec<Member>,
    /// The names of the balancers over fleets, by view.
    pub viewers: Vec<String>,
}

/// A member that is shown by itself.
#[derive(Clone, Debug)]
pub(crate) struct WatchedSite {
    pub member: Member,
    /// Its name in results, and all names by which the file may mean it.
    pub node: String,
    pub names: BTreeSet<String>,
    /// Whether it runs at the start.
    pub runs: bool,
}

/// What a target is to a result over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is shown by itself: an index of [`WatchTables::sites`].
    Watched(u32),
    /// It is one of those that run throughout.
    Other,
    /// It is moved, but there are too many; or it is no member.
    Neither,
}

impl WatchTables {
    /// What is at a place of a balancer.
    pub fn role(&self, view: usize, place: u32) -> Role {
        self.roles.get(view).and_then(|roles| roles.get(place as usize)).copied().unwrap_or(Role::Neither)
    }
}
