//! The nodes of a topology as one thread serves them, built from a plan.
//!
//! A graph has an epoch; requests stay in the graph they began in, and state that outlives a graph belongs to
//! identities ([`identity`], [`state`]).

pub(crate) mod blueprint;
pub(crate) mod builder;
pub(crate) mod draws;
pub(crate) mod ends;
mod hash_names;
pub(crate) mod identity;
mod make;
pub(crate) mod newest;
mod probe_ways;
mod run;
pub(crate) mod sharing;
pub(crate) mod slots;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use crate::exchange::abort::AbortFlag;
use crate::exchange::reply::Answer;
use crate::exchange::serve::Serves;
use crate::exchange::{self, Exchange, NodeId, RequestContext, Run, Upstream};
use crate::metrics::TargetHealth;
use crate::nodes::lb::Lb;
use crate::nodes::{Id, Node};
use crate::sync::discards::{Discards, Slice};
use crate::sync::shared_list::SharedList;
use crate::transport::listener::Entry;
use crate::upstream::server::Server;
use blueprint::Blueprint;
use ends::{End, Ends, reachable};
use newest::NewestGraph;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::io::reuse::Shared;
use weir_plan as plan;

/// The nodes, by their number in the plan.
pub(crate) struct Graph {
    /// Its blueprint, which lives as long as any graph has it.
    pub blueprint: Arc<Blueprint>,
    nodes: SharedList<Node>,
    /// Where the newest graph of its thread is.
    newest: Rc<NewestGraph>,
    /// Whether its requests end now.
    pub cut: AbortFlag,
    /// Where requests of each listener enter, by the listener's number.
    entries: BTreeMap<usize, NodeId>,
    /// Roots of built-in servers by identity, on the thread that runs them.
    roots: BTreeMap<u32, NodeId>,
    /// Balancers by identity.
    lbs: BTreeMap<u32, NodeId>,
    /// Where the ways of balancers' targets end.
    ends: BTreeMap<NodeId, Arc<[Ends]>>,
    /// The counters of their targets' health, on the thread that keeps it, until they are taken.
    healths: RefCell<BTreeMap<NodeId, Vec<TargetHealth>>>,
    /// Where its nodes are freed.
    discards: Rc<Discards>,
    /// Where ways end that lead through no balancer's targets: from listeners, and of spare nodes.
    outer: Vec<End>,
}

impl exchange::Graph for Graph {
    fn start(self: Rc<Self>, ex: Shared<Exchange>, ctx: RequestContext, node: NodeId) -> Run {
        Box::pin(run::run(self, ex, ctx, node))
    }

    fn describe(&self, node: NodeId) -> Option<String> {
        match self.node(node) {
            Node::Server(server) => Some(server.described()),
            _ => None,
        }
    }

    fn site(&self, node: NodeId) -> (String, String) {
        let point = &self.blueprint.point;
        let site = point.nodes.get(node as usize).and_then(|node| point.sites.get(node.site as usize));
        (site.map(|site| site.label.clone()).unwrap_or_default(), plan::label(point, node))
    }

    fn generation(&self) -> u32 {
        self.blueprint.generation
    }
}

impl Serves for Graph {
    fn run(
        self: Rc<Self>,
        ex: Shared<Exchange>,
        ctx: RequestContext,
        node: NodeId,
    ) -> impl Future<Output = Answer> + 'static {
        run::run(self, ex, ctx, node)
    }

    fn ends(&self) -> AbortFlag {
        self.cut.clone()
    }
}

impl Graph {
    /// The graph in which a request goes on: the newest of this thread, if its last pick led there.
    #[inline]
    fn after_pick(self: Rc<Graph>, ctx: &RequestContext) -> Rc<Graph> {
        if ctx.moves() { self.newest.get().unwrap_or(self) } else { self }
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    /// Where requests enter; `None`: nowhere any more.
    pub fn entry(&self, entry: Entry) -> Option<NodeId> {
        match entry {
            Entry::Listener(number) => self.entries.get(&number).copied(),
            Entry::BuiltIn(root) => self.roots.get(&root).copied(),
        }
    }

    /// All entries.
    pub fn all_entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let listeners = self.entries.keys().map(|number| Entry::Listener(*number));
        listeners.chain(self.roots.keys().map(|root| Entry::BuiltIn(*root)))
    }

    /// A balancer by its identity between threads; `None`: it belongs to another graph.
    pub fn lb(&self, id: Id) -> Option<&Rc<Lb>> {
        if let Node::Lb(lb) = self.node(*self.lbs.get(&id.0)?) { Some(lb) } else { None }
    }

    /// Frees what a graph has replaced, later.
    pub fn discard<T: 'static>(&self, pieces: Vec<T>) {
        self.discards.put(pieces, Slice::Memory);
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
    pub fn ends(&self, lb: NodeId) -> Arc<[Ends]> {
        self.ends.get(&lb).cloned().unwrap_or_default()
    }

    /// The same, for display.
    pub fn ends_of(&self, lb: NodeId) -> Option<&[Ends]> {
        self.ends.get(&lb).map(|ends| &**ends)
    }

    /// Takes the counters of the health of a balancer's targets, by index.
    pub fn take_healths(&self, lb: NodeId) -> Vec<TargetHealth> {
        self.healths.borrow_mut().remove(&lb).unwrap_or_default()
    }

    /// The identities of targets to which some way of built-in servers leads, ascending.
    pub fn reached_inside(&self) -> Vec<u32> {
        let servers = reachable(&self.outer, |lb| self.ends_of(lb));
        let keys: BTreeSet<u32> =
            servers.into_iter().map(|id| self.blueprint.keys.targets[id as usize]).collect();
        keys.into_iter().collect()
    }
}

impl Drop for Graph {
    /// With its last request, which does not free ten thousand nodes.
    fn drop(&mut self) {
        std::mem::take(&mut self.nodes).discard(&self.discards);
    }
}
