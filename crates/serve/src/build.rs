//! From the plan to the nodes that a loop, or the thread of the built-in servers, runs.

use crate::graph::Graph;
use crate::health::check::Question;
use crate::health::ends::{Checked, Ends};
use crate::health::keeper::{Kept, Known};
use crate::nodes::lb::common::Common;
use crate::nodes::{Node, NodeId, lb, retry, timeout};
use crate::origin::connect::{Addresses, Target};
use crate::origin::pool::Pool;
use crate::origin::server::Server;
use crate::process::Process;
use std::cell::{Cell, RefCell};
use std::net::ToSocketAddrs;
use std::rc::Rc;
use std::sync::Arc;
use weir_http1::Limits;
use weir_policy::Upstream;
use weir_policy::health::{Health, HealthConfig};
use weir_policy::snapshot::Snapshot;
use weir_policy::upstream::Around;
use weir_stats::Key;
use weir_topology::plan::{Lb, Origin, Point, Spec, To};
use weir_topology::serving::{Role, Serving};

/// Builds what one thread runs.
pub(crate) struct Builder<'a> {
    pub point: &'a Point,
    pub serving: &'a Serving,
    pub process: &'a Process,
    /// Whether for the thread of the built-in servers.
    pub built_in: bool,
    /// What balancers draw by.
    pub seed: Key,
}

impl Builder<'_> {
    /// All nodes, and what the keeper of health begins with.
    pub fn graph(&self) -> (Graph, Vec<Kept>) {
        let (mut servers, mut kept) = (Vec::new(), Vec::new());
        let nodes = (0..self.point.nodes.len() as NodeId).map(|id| self.node(id, &mut servers, &mut kept)).collect();
        (Graph { nodes, servers }, kept)
    }

    fn node(&self, id: NodeId, servers: &mut Vec<Rc<Server>>, kept: &mut Vec<Kept>) -> Node {
        let node = &self.point.nodes[id as usize];
        let spec = &self.point.specs[node.spec as usize];
        let role = self.serving.roles[id as usize];
        if !self.built_in && role == Role::BuiltIn {
            return self.server(Target::BuiltIn(id), node.name.as_deref(), &Origin::default(), servers);
        }
        if role == Role::LeftOut {
            return Node::Pass(self.next(id));
        }
        match spec {
            Spec::Server { addr: Some(addr), origin, .. } if !self.built_in => {
                self.server(target(addr), node.name.as_deref(), origin, servers)
            }
            Spec::Lb(lb) => Node::Lb(Rc::new(self.balancer(id, lb, kept))),
            Spec::Retry(config) => Node::Retry(Rc::new(retry::Retry {
                config: config.clone(),
                node: self.next(id),
                budget: config.budget.as_ref().map(|b| RefCell::new(weir_policy::budget::Tokens::new(b, self.process.clock.now()))),
            })),
            Spec::Timeout { time_ns: Some(time_ns) } => {
                Node::Timeout(timeout::Timeout { time_ns: *time_ns, node: self.next(id) })
            }
            _ => Node::Pass(self.next(id)),
        }
    }

    /// The node behind one that has exactly one.
    fn next(&self, id: NodeId) -> NodeId {
        match self.point.nodes[id as usize].to {
            To::Node(next) => next,
            _ => id,
        }
    }

    fn list(&self, id: NodeId) -> &[NodeId] {
        match self.point.nodes[id as usize].to {
            To::List(list) => &self.point.lists[list as usize],
            _ => &[],
        }
    }

    fn server(&self, target: Target, name: Option<&str>, origin: &Origin, servers: &mut Vec<Rc<Server>>) -> Node {
        let server = Rc::new(Server {
            name: Rc::from(name.unwrap_or("server")),
            target,
            origin: origin.clone(),
            limits: Limits::default(),
            pool: RefCell::new(Pool::default()),
            retired: Cell::new(false),
        });
        servers.push(server.clone());
        Node::Server(server)
    }

    fn balancer(&self, id: NodeId, lb: &Lb, kept: &mut Vec<Kept>) -> lb::Lb {
        let targets = self.list(id).to_vec();
        let weights: Vec<f64> = targets.iter().map(|t| self.weight(*t)).collect();
        let names: Vec<String> = targets.iter().map(|t| self.hash_name(*t)).collect();
        let health = HealthConfig {
            check: lb.health.as_ref().map(|h| h.check.clone()),
            eject: lb.eject.clone(),
            outlier: lb.outlier.clone(),
            slow_start: lb.slow_start.clone(),
            panic: lb.panic,
            on_empty: lb.on_empty,
        };
        let ejects = lb.eject.is_some() || lb.outlier.is_some();
        // Health and limits are the process's.
        let pass_over_ns = if ejects { 0 } else { lb.pass_over_ns };
        let around = Around { health: HealthConfig::default(), max_in_flight: None, pass_over_ns, counts: false };
        let now = self.process.clock.now();
        let draw = self.seed.with(u64::from(id));
        let health = Health::new(health, &weights, now, Key::new(self.process.seed).with(2).with(u64::from(id)));
        let mut upstream = Upstream::new(&lb.balance, around, &weights, &names, now, draw);
        upstream.follow(now, &Snapshot::of(&health));
        let ends: Rc<[Ends]> =
            targets.iter().map(|t| Ends::behind(self.point, self.serving, self.built_in, *t)).collect();
        let common = self.process.lbs.get(&id).cloned().unwrap_or_else(|| Arc::new(Common::new(lb, targets.len(), 0)));
        kept.push(Kept {
            id,
            health,
            ends: ends.clone(),
            common: common.clone(),
            questions: self.questions(lb, &ends),
            has_spare: lb.spare.is_some(),
            known: Known::default(),
        });
        lb::Lb {
            id,
            upstream: RefCell::new(upstream),
            targets,
            ends,
            common,
            listens: ejects,
            scope: lb.scope,
            sticky: lb.sticky.as_ref().map(|n| lb::Sticky::new(n, self.process.secret, &weir_policy::key::distinct(&names))),
            shown: Cell::new(false),
            key: lb.key.clone(),
            spare: lb.spare,
            line: Default::default(),
            max_waiting: lb.max_waiting.unwrap_or(u64::MAX),
            wait_timeout_ns: lb.wait_timeout_ns,
            due_ns: Cell::new(0),
        }
    }

    /// What a check asks of each target.
    fn questions(&self, lb: &Lb, ends: &[Ends]) -> Vec<Rc<Question>> {
        let Some(check) = &lb.health else { return Vec::new() };
        let question = |ends: &Ends| {
            let addr = match ends.checked {
                Checked::Server(id) => match &self.point.specs[self.point.nodes[id as usize].spec as usize] {
                    Spec::Server { addr, .. } if self.serving.roles[id as usize] != Role::BuiltIn => addr.as_deref(),
                    _ => None,
                },
                _ => None,
            };
            Rc::new(Question::new(check, addr, self.process.secret[0]))
        };
        ends.iter().map(question).collect()
    }

    fn weight(&self, id: NodeId) -> f64 {
        match self.point.specs[self.point.nodes[id as usize].spec as usize] {
            Spec::Weight { weight } => weight,
            _ => 1.0,
        }
    }

    /// What a target is hashed by: its address, else the innermost server's name.
    fn hash_name(&self, mut id: NodeId) -> String {
        loop {
            let node = &self.point.nodes[id as usize];
            match (&self.point.specs[node.spec as usize], node.to) {
                (Spec::Server { addr: Some(addr), .. }, _) => return addr.clone(),
                (_, To::Node(next)) => id = next,
                _ => return node.name.clone().unwrap_or_default(),
            }
        }
    }
}

fn target(addr: &str) -> Target {
    match addr.strip_prefix("unix:") {
        Some(path) => Target::Unix(path.into()),
        None => {
            let found: Vec<_> = addr.to_socket_addrs().map(Iterator::collect).unwrap_or_default();
            Target::Tcp(Rc::new(Addresses::new(None, &found)))
        }
    }
}
