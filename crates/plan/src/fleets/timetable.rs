//! What balancers see of a scenario's changes in one replication, as data: the simulator finds it, and a verification plays
//! it in reality.

use crate::NodeId;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use weir_policy::fleet::Doubt;

/// The changes of fleets in one replication. Nodes are those of the point that has every member ([`crate::Point::grown`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timetable {
    /// The balancers over fleets, each with its targets at the start.
    pub first: Vec<(NodeId, Vec<NodeId>)>,
    /// The balancers that may doubt a source, by source.
    pub doubts: Vec<SourceDoubt>,
    /// In the order in which they happen.
    pub sights: Vec<Sight>,
    /// The nodes of each newcomer, with when it joins, ns.
    pub joins: Vec<(Range<NodeId>, u64)>,
}

/// How far a balancer believes the lists of a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourceDoubt {
    /// The balancer.
    pub lb: NodeId,
    /// The number of the source.
    pub source: u32,
    /// How far it is believed.
    pub doubt: Doubt,
    /// The targets that the balancer has of this source at the start.
    pub first: Vec<NodeId>,
}

/// What a balancer sees at one instant, as one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sight {
    /// When, ns from the start of the run.
    pub at_ns: u64,
    /// The balancer.
    pub lb: NodeId,
    /// What it sees, in this order: an index of a target is never used twice.
    pub news: Vec<TargetNews>,
}

/// What a balancer sees of its targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetNews {
    /// This one may be picked from now on.
    Add(NodeId),
    /// This one is picked no more.
    Remove(NodeId),
    /// What a source lists that the balancer may doubt. What becomes of its targets depends on those that fail.
    List(TargetList),
}

/// All that a source lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetList {
    /// The number of the source.
    pub source: u32,
    /// The targets that are its members.
    pub targets: Vec<NodeId>,
}
