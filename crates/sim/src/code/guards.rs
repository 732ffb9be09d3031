//! The tables of a scenario's guarded balancers, and their sites.

use crate::code::probe_ways::ProbeWays;
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_plan::NodeId;
use weir_policy::config::Subset;
use weir_policy::subset::subset_key;
use weir_policy::upstream::UpstreamConfig;
use weir_policy::{TargetId, Upstream};
use weir_stats::Key;

/// The site of a guarded balancer.
#[derive(Clone, Debug)]
pub(crate) struct GuardSite {
    pub around: UpstreamConfig,
    /// How often its loops see each other's counts, ns; `None`: never.
    pub counts_every_ns: Option<u64>,
    /// The key that it hashes: index of a key source.
    pub key: Option<u32>,
    /// The cookie that keeps clients at a target, and the file with the key of its values.
    pub sticky: Option<(String, Option<String>)>,
    /// Member to spare node.
    pub spares: Option<u32>,
    pub max_waiting: u64,
    pub wait_timeout_ns: Option<u64>,
    /// Whether its health changes by itself or through outcomes.
    pub watches: bool,
    pub check_timeout_ns: u64,
    pub check_cost_ns: u64,
    /// The cost of a probe.
    pub probe_cost_ns: u64,
    /// Lowest and highest status that passes a check; empty: any.
    pub check_expects: Vec<(u16, u16)>,
    /// The address that checks come from.
    pub check_source: Option<IpAddr>,
}

/// How targets are divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SubsetSite {
    pub subset: Subset,
    pub loops: u32,
}

impl SubsetSite {
    /// Divides the targets of a balancer whose state has that key.
    pub fn divide(&self, upstream: &mut Upstream, names: &[String], own: Key) {
        upstream.keep_subsets(0, self.subset, self.loops, names, subset_key(own));
    }
}

impl GuardSite {
    /// Whether it sends health checks, or probes that cost work, to its targets.
    pub fn checks(&self) -> bool {
        self.around.health.check.is_some() || self.probe_cost_ns > 0
    }
}

/// The tables of a scenario's guarded balancers.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuardTables {
    pub sites: Vec<GuardSite>,
    /// The names by which each balancer hashes its targets, by number of the balancer on the first loop.
    pub names: BTreeMap<u32, Vec<String>>,
    /// How the targets of each are divided among loops, likewise; nothing where they are not.
    pub subsets: BTreeMap<u32, SubsetSite>,
    /// Where requests go if no target is left, by member and [`GuardSite::spares`].
    pub spares: Vec<crate::code::Target>,
    pub spare_nodes: Vec<NodeId>,
    /// The balancer of each node that is one.
    pub of_node: BTreeMap<NodeId, u32>,
    pub behind: BalancerNesting,
    /// Whether requests in flight at targets are counted for probes.
    pub probes: bool,
    pub probe_ways: ProbeWays,
}

/// The balancers behind each target of the others, for those whose health can change.
#[derive(Clone, Debug, Default)]
pub(crate) struct BalancerNesting {
    /// By balancer: the balancers and targets in front of it whose health depends on it.
    pub outside: Vec<Vec<(u32, TargetId)>>,
    /// The balancers behind each target.
    pub inside: BTreeMap<(u32, TargetId), Vec<u32>>,
}
