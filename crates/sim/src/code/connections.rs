//! The tables of connections: which servers they lead to, which instances they lead from, and where they are counted.

use crate::code::{MemberId, SiteId, StageId, Target};
use std::collections::{BTreeMap, BTreeSet};
use weir_model::connections::{Instance, Server};
use weir_model::sampler::Sampler;
use weir_plan::NodeId;
use weir_plan::fleets::Member;

/// The site of nodes where requests take a connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionSite {
    pub connect: Sampler,
    /// The most of that, ns; and the server's work for one that is opened.
    pub timeout_ns: u64,
    pub cost_ns: u64,
    /// The limit of a connection's age, ns.
    pub age_ns: Option<u64>,
    /// Index in [`Code::draw_keys`], and the counter of visits.
    pub key: u32,
    pub visits: Option<u32>,
    /// Member to server.
    pub offset: u32,
    pub stage: StageId,
    /// Where a request without a connection continues.
    pub skip: u32,
}

/// The tables of a scenario with connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionTables {
    pub sites: Vec<ConnectionSite>,
    pub servers: Vec<Server>,
    pub instances: Vec<Instance>,
    /// By group but the first, which has all: the site whose connections it counts.
    pub sites_of_groups: Vec<SiteId>,
    /// By server: the node that takes its connections, and its own.
    pub nodes: Vec<(NodeId, NodeId)>,
    /// By instance, its listener; none before the first listener.
    pub listeners: Vec<Option<NodeId>>,
    /// By server, the timelines of the processes on the way to it: while one is down no connection is made.
    pub lines_of: Vec<Vec<u32>>,
    /// Whether any server has work for a new connection; then the queue or the cores where each does that, which are
    /// entered at that step (in the reference: stage).
    pub has_costs: bool,
    pub handshakes: Vec<Option<Target>>,
    /// The servers that share cores, and the queues, by their nodes.
    pub cores_of: BTreeMap<NodeId, Target>,
    pub queues_of: BTreeMap<NodeId, Target>,
    /// By timeline, the servers whose connections end with it.
    pub servers_of: BTreeMap<u32, Vec<u32>>,
    /// By balancer that sees changes, the instances that it belongs to.
    pub instances_of: BTreeMap<u32, Vec<u32>>,
    /// The servers and the instances of members.
    pub of_member: BTreeMap<Member, (Vec<u32>, Vec<u32>)>,
}

impl ConnectionTables {
    /// The server or the listener groups in which rows of these nodes are counted.
    pub fn group_of(&self, nodes: &[NodeId]) -> Option<u32> {
        let first = *nodes.first()?;
        let server = self.nodes.iter().position(|(_, node)| *node == first).map(|at| self.servers[at].group);
        server.or_else(|| {
            let at = self.listeners.iter().position(|node| *node == Some(first))?;
            self.instances[at].group
        })
    }

    /// The numbers of the servers that these nodes are.
    pub fn servers_among<'a>(
        &'a self,
        nodes: &'a BTreeSet<NodeId>,
    ) -> impl Iterator<Item = (usize, NodeId)> + 'a {
        let own = self.nodes.iter().enumerate();
        own.filter(|(_, (_, node))| nodes.contains(node)).map(|(at, (_, node))| (at, *node))
    }

    /// The same of listeners.
    pub fn listeners_among<'a>(
        &'a self,
        nodes: &'a BTreeSet<NodeId>,
    ) -> impl Iterator<Item = (usize, NodeId)> + 'a {
        let own = self.listeners.iter().enumerate();
        own.filter_map(|(at, node)| Some((at, node.filter(|node| nodes.contains(node))?)))
    }

    /// Where the server of a member does the work for a new connection; `None`: nowhere, it only takes time.
    pub fn handshake(&self, site: u32, member: MemberId) -> Option<Target> {
        let has_cost = self.has_costs && self.sites[site as usize].cost_ns > 0;
        has_cost.then(|| self.handshakes.get(self.server(site, member) as usize).copied().flatten()).flatten()
    }

    /// The server of a member at a site.
    pub fn server(&self, site: u32, member: MemberId) -> u32 {
        member.number_from(self.sites[site as usize].offset)
    }
}
