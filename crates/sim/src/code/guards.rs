//! What a scenario knows of balancers that have something around them.

use crate::code::probe_ways::ProbeWays;
use std::collections::BTreeMap;
use weir_plan::NodeId;
use weir_policy::upstream::Around;

/// A balancer's place.
#[derive(Clone, Debug)]
pub(crate) struct GuardSite {
    pub around: Around,
    /// What it hashes: index of a key source.
    pub key: Option<u32>,
    /// The cookie by which clients return, and the file that makes its values.
    pub sticky: Option<(String, Option<String>)>,
    /// Member to spare node.
    pub spares: Option<u32>,
    pub max_waiting: u64,
    pub wait_timeout_ns: Option<u64>,
    /// Whether its health changes by itself or by what comes back.
    pub watches: bool,
    pub check_timeout_ns: u64,
    pub check_cost_ns: u64,
    /// What a probe costs.
    pub probe_cost_ns: u64,
    /// Lowest and highest status that passes a check; empty: any.
    pub check_expects: Vec<(u16, u16)>,
}

impl GuardSite {
    /// Whether checks go to its targets, or probes that cost as much.
    pub fn checks(&self) -> bool {
        self.around.health.check.is_some() || self.probe_cost_ns > 0
    }
}

/// What a scenario knows of its guarded balancers.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuardTables {
    pub sites: Vec<GuardSite>,
    /// What targets of each balancer are hashed by, by number of the balancer on the first loop.
    pub names: BTreeMap<u32, Vec<String>>,
    /// Where requests go that no target is left for, by member and [`GuardSite::spares`].
    pub spares: Vec<crate::code::Target>,
    pub spare_nodes: Vec<NodeId>,
    /// The balancer of each node that is one.
    pub of_node: BTreeMap<NodeId, u32>,
    pub behind: Behind,
    /// Whether what targets have in flight is counted for probes.
    pub probes: bool,
    pub probe_ways: ProbeWays,
}

/// Which balancers stand behind which targets of which others, where the others' health can tell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behind {
    /// By balancer: the balancers and their targets behind which it stands.
    pub outside: Vec<Vec<(u32, u32)>>,
    /// The balancers that a target's way ends in.
    pub inside: BTreeMap<(u32, u32), Vec<u32>>,
}
