//! What happens to members and nodes in the course of a scenario's changes, in its order: for a result over time.
//!
//! Whatever changes a member or a node reports it here, by [`Acts::report`], at the instant at which it happens.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_plan::NodeId;
use weir_plan::fleets::Member;

/// The most acts that are kept.
const MOST: usize = 100_000;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActKind {
    /// The registry lists it no more.
    Unlisted,
    /// Its process has to stop, and has stopped.
    Stops,
    Stopped,
    /// Its process begins, and runs.
    Boots,
    Runs,
    /// The registry lists it.
    Listed,
    /// A balancer sees that it is listed, or no more.
    Seen,
    /// A balancer may pick it.
    Eligible,
    /// It fails, and is back.
    Down,
    Up,
    /// A partition begins and ends.
    Cut,
    Healed,
    /// The operator says something.
    Set,
    /// A number of members is wanted.
    Wanted,
}

impl ActKind {
    /// Its word in results.
    pub fn word(self) -> &'static str {
        match self {
            ActKind::Unlisted => "unlisted",
            ActKind::Stops => "stops",
            ActKind::Stopped => "stopped",
            ActKind::Boots => "boots",
            ActKind::Runs => "runs",
            ActKind::Listed => "listed",
            ActKind::Seen => "seen",
            ActKind::Eligible => "eligible",
            ActKind::Down => "down",
            ActKind::Up => "up",
            ActKind::Cut => "cut",
            ActKind::Healed => "healed",
            ActKind::Set => "set",
            ActKind::Wanted => "wanted",
        }
    }
}

/// To what it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Subject {
    Member(Member),
    Node(NodeId),
    /// A fleet as a whole, by its number.
    Fleet(u32),
}

/// One act.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Act {
    pub at_ns: u64,
    /// The number of the change in the scenario's list; `None`: that which concerned its subject last.
    pub change: Option<u32>,
    pub subject: Subject,
    pub what: ActKind,
    /// The balancer that sees it, by its view.
    pub by: Option<u32>,
    pub value: Option<f64>,
}

/// The acts of a replication.
#[derive(Clone, Debug, Default)]
pub(crate) struct Acts {
    pub all: Vec<Act>,
    /// The change that concerned each subject last.
    last: BTreeMap<Subject, u32>,
}

impl Acts {
    /// Something happens now.
    pub fn report(&mut self, mut act: Act) {
        match act.change {
            Some(change) => drop(self.last.insert(act.subject, change)),
            None => act.change = self.last.get(&act.subject).copied(),
        }
        if self.all.len() < MOST {
            self.all.push(act);
        }
    }
}
