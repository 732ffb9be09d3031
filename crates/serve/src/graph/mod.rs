//! The nodes of a topology as one thread serves them, built from a plan.
//!
//! A graph has an epoch; requests stay in the graph they began in, and what outlives a graph belongs to identities
//! ([`identity`], [`state`]).

pub(crate) mod blueprint;
pub(crate) mod builder;
pub(crate) mod draws;
pub(crate) mod ends;
pub(crate) mod identity;
mod run;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use crate::exchange::reply::Answer;
use crate::exchange::serve::Serves;
use crate::exchange::{self, Exchange, NodeId, RequestContext, Run, Upstream};
use crate::nodes::lb::Lb;
use crate::nodes::{Id, Node};
use crate::transport::listener::Entry;
use crate::upstream::server::Server;
use ends::{End, Ends};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::rc::Rc;

/// The nodes, by their number in the plan.
pub(crate) struct Graph {
    /// Which graph, counted by reloads.
    pub epoch: u32,
    nodes: Vec<Node>,
    /// Where requests of each listener enter.
    entries: Vec<NodeId>,
    /// Balancers by identity.
    lbs: BTreeMap<u32, NodeId>,
    /// Where the ways of balancers' targets end.
    ends: BTreeMap<NodeId, Rc<[Ends]>>,
    /// Where ways end that lead through no balancer's targets: from listeners, and of nodes that stand in.
    outer: Vec<End>,
}

impl exchange::Graph for Graph {
    fn start(self: Rc<Self>, ex: Rc<Exchange>, ctx: RequestContext, node: NodeId) -> Run {
        Box::pin(run::run(self, ex, ctx, node))
    }

    fn describe(&self, node: NodeId) -> Option<String> {
        match self.nodes.get(node as usize) {
            Some(Node::Server(server)) => Some(server.described()),
            _ => None,
        }
    }
}

impl Serves for Graph {
    fn run(
        self: Rc<Self>,
        ex: Rc<Exchange>,
        ctx: RequestContext,
        node: NodeId,
    ) -> impl Future<Output = Answer> + 'static {
        run::run(self, ex, ctx, node)
    }
}

impl Graph {
    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// Where requests enter.
    pub fn entry(&self, entry: Entry) -> NodeId {
        match entry {
            Entry::Listener(number) => self.entries[number],
            Entry::BuiltIn(root) => root,
        }
    }

    /// A balancer as other threads name it; `None`: it is of another graph.
    pub fn lb(&self, id: Id) -> Option<&Rc<Lb>> {
        let node = self.lbs.get(&id.key).filter(|_| id.epoch == self.epoch)?;
        if let Node::Lb(lb) = self.node(*node) { Some(lb) } else { None }
    }

    /// Its balancers.
    pub fn balancers(&self) -> impl Iterator<Item = &Rc<Lb>> {
        self.lbs.values().filter_map(|id| if let Node::Lb(lb) = self.node(*id) { Some(lb) } else { None })
    }

    /// Its servers.
    pub fn servers(&self) -> impl Iterator<Item = &Rc<Server>> {
        self.nodes.iter().filter_map(|node| if let Node::Server(server) = node { Some(server) } else { None })
    }

    /// Where the ways of a balancer's targets end.
    pub fn ends(&self, lb: NodeId) -> Rc<[Ends]> {
        self.ends.get(&lb).cloned().unwrap_or_default()
    }

    /// The same, to look at.
    pub fn ends_of(&self, lb: NodeId) -> Option<&[Ends]> {
        self.ends.get(&lb).map(|ends| &**ends)
    }

    /// Closes the idle connections of targets to which no way leads any more.
    pub fn retire_unreachable(&self) {
        let reachable = self.reachable();
        for (id, node) in (0..).zip(&self.nodes) {
            if let Node::Server(server) = node
                && !reachable.contains(&id)
            {
                server.target.retire();
            }
        }
    }

    /// Servers to which some way leads through targets that were not removed.
    fn reachable(&self) -> BTreeSet<NodeId> {
        let (mut servers, mut lbs) = (BTreeSet::new(), BTreeSet::new());
        let mut open = self.outer.clone();
        while let Some(end) = open.pop() {
            match end {
                End::Server(id) => {
                    servers.insert(id);
                }
                End::Lb(id) => {
                    if let (Node::Lb(lb), true) = (self.node(id), lbs.insert(id)) {
                        let there = (0u32..).zip(self.ends(id).to_vec());
                        let there = there.filter(|(target, _)| lb.has_target(*target));
                        open.extend(there.flat_map(|(_, ends)| ends.all));
                    }
                }
                End::Own => {}
            }
        }
        servers
    }
}
