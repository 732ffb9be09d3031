//! Fleets: targets that come and go while it runs, and the changes that a scenario makes to them.

use super::{Mode, NodeId};
use crate::SourceKind;
use serde::{Deserialize, Serialize};
use weir_model::Dist;
use weir_model::process::Life;

/// `fleet(n, f)` or `find.*(...)`: copies of a template. The template is the nodes from `first` to the fleet's own, which
/// leads to the one that a balancer picks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fleet {
    /// How many members it has at the start.
    pub size: u32,
    /// The first node of the template.
    pub first: NodeId,
    /// How much later a balancer sees a change.
    pub lag: Dist,
    /// What lists its members when it is served; `None`: nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<FleetSource>,
    /// How its members begin and end; `None`: at once, and when nothing is inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<Life>,
    /// Its name in words: `name=`, or the variable that it is bound to; not part of the hash.
    pub label: String,
    /// The location of the call that makes it, `file:line:column`, which is not that of its node: members have the places
    /// of a pool's. Not part of the hash; empty in plans of before it was kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub span: String,
}

/// What lists the members of a fleet (`find.*`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetSource {
    /// Where the list comes from.
    pub from: SourceKind,
    /// A list that is shorter than the members by more than this share is doubted, 0 to 1; `None`: every list is believed.
    pub shrink: Option<f64>,
    /// How long a member that only a doubted list lacks is picked, ns.
    pub grace_ns: u64,
}

/// A change of a fleet during a run (`change.`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The node of the fleet; of a change of nodes, the first of them.
    pub fleet: NodeId,
    /// The other nodes that it concerns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<NodeId>,
    /// When, ns from the start of the run.
    pub at_ns: u64,
    /// What happens.
    pub what: ChangeKind,
    /// The call's location, `file:line:column`; not part of the hash.
    pub span: String,
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// New members, up and listed.
    Join {
        /// How many; at least 1.
        k: u32,
    },
    /// Members that are listed no more.
    Leave {
        /// How many; at least 1.
        k: u32,
        /// Which of them.
        which: Leavers,
    },
    /// The newest leave, or newcomers join.
    Scale {
        /// How many members there are afterwards.
        to: u32,
    },
    /// The registry forgets a share of the members for a while.
    Unlist {
        /// How long, ns; above 0.
        lasts_ns: u64,
        /// Which share, above 0 and up to 1; drawn.
        share: f64,
    },
    /// The members of that instant are replaced.
    Rolling {
        /// How many at once; at least 1.
        batch: u32,
        /// From one batch to the next, ns.
        every_ns: u64,
        /// What is done first in each batch.
        first: First,
        /// Which of them go first.
        which: Leavers,
        /// The node of the fleet that newcomers belong to; `None`: the same.
        into: Option<NodeId>,
        /// What only some replacements have.
        #[serde(default, skip_serializing_if = "Rollout::is_plain")]
        more: Rollout,
    },
    /// Nodes fail.
    Down {
        /// How long, ns; `None`: to the end.
        lasts_ns: Option<u64>,
        /// How many of them; `None`: all.
        k: Option<u32>,
        /// Which of them.
        which: Leavers,
        /// As a `faulty` node of that mode.
        mode: Mode,
        /// How many times longer work takes meanwhile, in mode `slow`.
        slow: f64,
        /// Whether health checks pass meanwhile.
        checks_pass: bool,
    },
    /// The operator's word on targets, at every balancer that has them.
    Set {
        /// What they are; `None`: as they were.
        state: Option<TargetState>,
        /// Their weight; `None`: as it was.
        weight: Option<f64>,
        /// How long, ns; `None`: to the end.
        lasts_ns: Option<u64>,
        /// How many of them; `None`: all.
        k: Option<u32>,
        /// Which of them.
        which: Leavers,
    },
}

/// What the operator says of a target (`POST /targets`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetState {
    /// Up, whatever checks and outcomes say.
    Up,
    /// It gets no new requests.
    Drain,
    /// The same; it counts as failed.
    Eject,
    /// As one that has left.
    Out,
    /// As the file says: what was said before is taken back.
    File,
}

impl TargetState {
    /// Its word in files and results.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            TargetState::Up => "up",
            TargetState::Drain => "drain",
            TargetState::Eject => "eject",
            TargetState::Out => "out",
            TargetState::File => "file",
        }
    }
}

/// How a replacement goes, where it is not one by one at fixed instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollout {
    /// How many members are replaced; `None`: all.
    pub count: Option<u32>,
    /// In place: how long a member is stopped before it boots, ns.
    pub down_ns: u64,
    /// Whether balancers see it.
    pub is_unlisted: bool,
    /// What the next batch waits for.
    pub wait: Option<Wait>,
}

impl Default for Rollout {
    fn default() -> Rollout {
        Rollout { count: None, down_ns: 0, is_unlisted: true, wait: None }
    }
}

impl Rollout {
    fn is_plain(&self) -> bool {
        *self == Rollout::default()
    }
}

/// What the next batch of a replacement waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// The newcomers run.
    Running,
    /// They may be picked at every balancer that has them.
    Eligible,
}

impl Change {
    /// The nodes that it concerns: of the compact point.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::once(self.fleet).chain(self.others.iter().copied())
    }
}

/// Which members leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leavers {
    /// Those that joined first.
    #[default]
    Oldest,
    /// Those that joined last.
    Newest,
    /// Drawn by scenario and change.
    Random,
}

/// The order in a batch of a rolling replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum First {
    /// Newcomers join, then the old leave.
    #[default]
    Join,
    /// The old leave, then newcomers join.
    Leave,
    /// The old stop, and begin anew under their number and address.
    InPlace,
}
