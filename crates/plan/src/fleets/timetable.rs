//! What balancers see of a scenario's changes in one replication, as data: the simulator finds it, and a verification plays
//! it in reality.

use crate::NodeId;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The changes of fleets in one replication. Nodes are those of the point that has every member ([`crate::Point::grown`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timetable {
    /// The balancers over fleets, each with its targets at the start.
    pub first: Vec<(NodeId, Vec<NodeId>)>,
    /// In the order in which they happen.
    pub sights: Vec<Sight>,
    /// The nodes of each newcomer, with when it joins, ns.
    pub joins: Vec<(Range<NodeId>, u64)>,
}

/// What a balancer sees at one instant, as one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sight {
    /// When, ns from the start of the run.
    pub at_ns: u64,
    /// The balancer.
    pub lb: NodeId,
    /// What becomes of its targets, in this order: an index is never used twice.
    pub moves: Vec<TargetMove>,
}

/// A target that a balancer gets or loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetMove {
    /// It may be picked from now on.
    Add(NodeId),
    /// It is picked no more.
    Remove(NodeId),
}
