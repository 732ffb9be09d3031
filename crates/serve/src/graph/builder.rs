//! From the plan to the nodes that a loop, or the thread of the built-in servers, runs.

use crate::control::process::Process;
use crate::exchange::failure_log;
use crate::graph::Graph;
use crate::graph::ends::{End, Ends};
use crate::graph::state::OnLoop;
use crate::health::check::Question;
use crate::health::monitor::{Kept, Known};
use crate::io::runtime::Runtime;
use crate::nodes::lb::common::Common;
use crate::nodes::sticky::Sticky;
use crate::nodes::{Node, NodeId, Own};
use crate::nodes::{
    buffered, cable, concurrent, delay, fanout, faulty, flaky, hedge, lb, model, queue, rate, redirect,
};
use crate::nodes::{retry, rewrite, route, sequence, split, timeout, warmup};
use crate::upstream::connect::{Addresses, Target};
use crate::upstream::pool::Pool;
use crate::upstream::server::Server;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use weir_http1::Limits;
use weir_model::sampler::Sampler;
use weir_model::{concurrent as sharing, warmup as warming};
use weir_policy::Upstream;
use weir_policy::config::Balance;
use weir_policy::health::{Health, HealthConfig};
use weir_policy::snapshot::Snapshot;
use weir_policy::split::Split as Shares;
use weir_policy::upstream::Around;
use weir_stats::Key;
use weir_topology::address::Address;
use weir_topology::plan::{self, Lb, Origin, Point, Spec, To, fixed};
use weir_topology::serving::{Role, Serving};

/// Builds what one thread runs.
pub(crate) struct Builder<'a> {
    pub point: &'a Point,
    pub serving: &'a Serving,
    pub process: &'a Process,
    /// Whether for the thread of the built-in servers.
    pub built_in: bool,
    /// The number of the loop; not looked at for the built-in servers.
    pub number: u32,
    /// What balancers draw by.
    pub seed: Key,
}

impl Builder<'_> {
    /// All nodes, and what the keeper of health begins with. What others tell this loop is read from now on.
    pub fn graph(&self, rt: &Runtime) -> (Graph, Vec<Kept>) {
        let me = if self.built_in { self.process.shared.built_in() } else { self.number as usize };
        let shared = self.process.shared.on(me);
        let (mut servers, mut kept) = (Vec::new(), Vec::new());
        let mut node = |id| self.node(id, &shared, &mut servers, &mut kept);
        let nodes = (0..self.point.nodes.len() as NodeId).map(&mut node).collect();
        shared.read(rt);
        (Graph { nodes, servers, entries: self.entries() }, kept)
    }

    /// Where ways end that lead through no balancer's targets.
    fn entries(&self) -> Vec<End> {
        let begin = |(id, node): (NodeId, &plan::Node)| {
            let spec = &self.point.specs[node.spec as usize];
            let listens = matches!(spec, Spec::Listen(_)).then_some(id);
            listens.into_iter().chain(spec.aside()).collect::<Vec<_>>()
        };
        let begins = (0..).zip(&self.point.nodes).flat_map(begin);
        begins.flat_map(|id| Ends::behind(self.point, self.serving, self.built_in, id).all).collect()
    }

    fn node(
        &self,
        id: NodeId,
        shared: &OnLoop<'_>,
        servers: &mut Vec<Rc<Server>>,
        kept: &mut Vec<Kept>,
    ) -> Node {
        let role = self.serving.roles.get(id as usize).copied().unwrap_or_default();
        match (self.built_in, role) {
            (false, Role::BuiltIn) => {
                self.server(id, Target::BuiltIn(id), Some(&self.hash_name(id)), &Origin::of(false), servers)
            }
            (false, Role::Inside) | (true, Role::Proxy | Role::Model | Role::LeftOut) => Node::Nowhere,
            (false, Role::LeftOut) => Node::Pass(self.next(id)),
            _ => self.make(id, shared, servers, kept),
        }
    }

    /// A node that acts on this thread.
    fn make(
        &self,
        id: NodeId,
        shared: &OnLoop<'_>,
        servers: &mut Vec<Rc<Server>>,
        kept: &mut Vec<Kept>,
    ) -> Node {
        let node = &self.point.nodes[id as usize];
        let next = self.next(id);
        let place = self.point.sites.get(node.site as usize).map_or(id, |site| site.place);
        let name = node.name.as_deref();
        let budget = || self.process.shared.budget(id);
        match &self.point.specs[node.spec as usize] {
            Spec::Server { addr: Some(addr), origin, .. } if !self.built_in => {
                self.server(id, self.target(addr), name, origin, servers)
            }
            Spec::Server { model, .. } => {
                let answer = Rc::new(Own::server(name.unwrap_or("server")));
                match model {
                    Some(root) => Node::Model(model::Model { root: *root, answer }),
                    None => Node::Answer(answer),
                }
            }
            Spec::Listen(_) | Spec::Weight { .. } | Spec::Timeout { time_ns: None } => Node::Pass(next),
            Spec::Timeout { time_ns: Some(time_ns) } => {
                Node::Timeout(timeout::Timeout { time_ns: *time_ns, node: next })
            }
            Spec::Respond { status, body, headers } => Node::Answer(Rc::new(Own {
                status: *status,
                headers: headers.clone(),
                body: body.as_bytes().into(),
                by_server: false,
            })),
            Spec::Redirect { to, status } => {
                Node::Redirect(redirect::Redirect { to: to.clone(), status: *status })
            }
            Spec::Rewrite(config) => Node::Rewrite(rewrite::Rewrite { config: config.clone(), node: next }),
            Spec::Buffered { bytes } => {
                Node::Buffered(buffered::Buffered { bytes: whole(*bytes), node: next })
            }
            Spec::Delay { time } => Node::Delay(delay::Delay { time: Sampler::new(time), place, node: next }),
            Spec::Cable { time, loss, resend_ns } => Node::Cable(cable::Cable {
                time: Sampler::new(time),
                loss: *loss,
                resend_ns: *resend_ns,
                place,
                node: next,
            }),
            Spec::Queue { capacity, timeout_ns, on_cancel, .. } => {
                let Some(gate) = shared.gate(id) else { return Node::Pass(next) };
                Node::Queue(Rc::new(queue::Queue {
                    gate,
                    capacity: capacity.unwrap_or(u64::MAX),
                    timeout_ns: *timeout_ns,
                    on_cancel: *on_cancel,
                    node: next,
                }))
            }
            Spec::Concurrent { work, cores, contention, coherency, threads, on_cancel } => {
                Node::Concurrent(Rc::new(concurrent::Concurrent {
                    work: Sampler::new(work),
                    law: sharing::Law::new(*cores, *contention, *coherency, *threads),
                    on_cancel: *on_cancel,
                    place,
                    answer: Rc::new(Own::server(name.unwrap_or("concurrent"))),
                    state: RefCell::default(),
                    driven: Cell::new(false),
                }))
            }
            Spec::Warmup { factor, requests, time_ns } => {
                let Some(state) = self.process.shared.warmup(id) else { return Node::Pass(next) };
                let law = warming::Law::new(*factor, *requests, *time_ns);
                Node::Warmup(warmup::Warmup { law, state, node: next })
            }
            Spec::Flaky { p, kind } => Node::Flaky(flaky::Flaky { p: *p, kind: *kind, place, node: next }),
            Spec::Faulty(config) => {
                let Some(line) = shared.time_line(id) else { return Node::Pass(next) };
                Node::Faulty(faulty::Faulty {
                    line,
                    mode: config.mode,
                    slow: config.slow,
                    checks_pass: config.checks_pass,
                    node: next,
                })
            }
            Spec::Sequence => {
                let empty = Rc::new(Own::server(name.unwrap_or("sequence")));
                Node::Sequence(sequence::Sequence { nodes: self.list(id).to_vec(), empty })
            }
            Spec::Fanout { need } => {
                let empty = Rc::new(Own::server(name.unwrap_or("fanout")));
                Node::Fanout(fanout::Fanout { nodes: self.list(id).to_vec(), need: *need, empty })
            }
            Spec::Route { rules, otherwise } => {
                let nodes = self.list(id);
                Node::Route(route::Route {
                    rules: rules.iter().cloned().zip(nodes.iter().copied()).collect(),
                    otherwise: nodes.last().copied().filter(|_| *otherwise),
                })
            }
            Spec::Split { weights, key } => Node::Split(split::Split {
                id,
                shares: Shares::new(weights),
                nodes: self.list(id).to_vec(),
                key: key.clone(),
            }),
            Spec::Rate { key, .. } => {
                let Some(buckets) = self.process.shared.rate(id) else { return Node::Pass(next) };
                Node::Rate(rate::Rate { buckets, key: key.clone(), node: next })
            }
            Spec::Hedge(hedged) => Node::Hedge(hedge::Hedge {
                config: hedged.hedge.clone(),
                replay: whole(hedged.replay_bytes),
                budget: budget(),
                node: next,
            }),
            Spec::Retry(config) => {
                Node::Retry(Rc::new(retry::Retry { config: config.clone(), node: next, budget: budget() }))
            }
            Spec::Lb(lb) => Node::Lb(Rc::new(self.balancer(id, lb, shared, kept))),
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

    fn server(
        &self,
        id: NodeId,
        target: Target,
        name: Option<&str>,
        origin: &Origin,
        servers: &mut Vec<Rc<Server>>,
    ) -> Node {
        let spec = &self.point.specs[self.point.nodes[id as usize].spec as usize];
        let addr =
            if let Spec::Server { addr: Some(addr), .. } = spec { Some(Rc::from(&addr[..])) } else { None };
        let server = Rc::new(Server {
            id,
            addr,
            name: Rc::from(name.unwrap_or("server")),
            target,
            origin: origin.clone(),
            limits: Limits {
                max_head: fixed::MAX_RESPONSE_HEAD_BYTES,
                max_headers: fixed::MAX_RESPONSE_HEADERS,
                ..Limits::default()
            },
            pool: RefCell::new(Pool::default()),
            retired: Cell::new(false),
            most: self.process.connections.get(&id).cloned(),
        });
        servers.push(server.clone());
        Node::Server(server)
    }

    fn balancer(&self, id: NodeId, lb: &Lb, shared: &OnLoop<'_>, kept: &mut Vec<Kept>) -> lb::Lb {
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
        // Health is the process's, and what is in flight is limited by its slots.
        let listens = lb.eject.is_some() || lb.outlier.is_some();
        let pass_over_ns = if listens { 0 } else { lb.pass_over_ns };
        let around =
            Around { health: HealthConfig::default(), max_in_flight: None, pass_over_ns, counts: false };
        let now = self.process.clock.now();
        let draw = self.seed.with(u64::from(id));
        let health =
            Health::new(health, &weights, now, Key::new(self.process.seed).with(HEALTH).with(u64::from(id)));
        let mut upstream = Upstream::new(&lb.balance, around, &weights, &names, now, draw);
        upstream.follow(now, &Snapshot::of(&health));
        let behind = |t: &NodeId| Ends::behind(self.point, self.serving, self.built_in, *t);
        let ends: Rc<[Ends]> = targets.iter().map(behind).collect();
        let new = || Arc::new(Common::new(targets.len(), lb.outlier.is_some(), Box::default()));
        let common = self.process.lbs.get(&id).cloned().unwrap_or_else(new);
        kept.push(Kept {
            id,
            health,
            ends: ends.clone(),
            common: common.clone(),
            questions: self.questions(lb, &ends),
            has_spare: lb.spare.is_some(),
            known: Known::default(),
            name: self.point.nodes[id as usize].name.clone().unwrap_or_else(|| "a balancer".to_owned()),
            names: targets.iter().map(|t| self.described(*t)).collect(),
        });
        lb::Lb {
            id,
            upstream: RefCell::new(upstream),
            targets,
            ends,
            cuts: names.iter().map(|_| Rc::default()).collect(),
            lent: RefCell::default(),
            scope: lb.scope,
            common,
            listens,
            probes: matches!(lb.balance, Balance::Prequal { .. }),
            shown: Cell::new(false),
            key: lb.key.clone(),
            spare: lb.spare,
            sticky: lb.sticky.as_ref().map(|name| Sticky::new(name, &names, self.process.secret)),
            gate: shared.gate(id),
            max_waiting: lb.max_waiting.unwrap_or(u64::MAX),
            wait_timeout_ns: lb.wait_timeout_ns,
            due_ns: Cell::new(0),
        }
    }

    /// Where a server with this address is.
    fn target(&self, addr: &str) -> Target {
        let (name, list): (_, &[_]) = match Address::parse(addr) {
            Some(Address::Unix(path)) => return Target::Unix(path.into()),
            Some(Address::Ip(address)) => (None, &[address]),
            Some(Address::Name(host, port)) => match self.process.names.of(&host, port) {
                Some((name, list)) => (Some(name), list),
                None => (None, &[]),
            },
            // The plan was checked: there is no such server.
            Some(Address::Port(_)) | None => (None, &[]),
        };
        Target::Tcp(Rc::new(Addresses::new(name, list)))
    }

    /// What a check asks of each target.
    fn questions(&self, lb: &Lb, ends: &[Ends]) -> Vec<Rc<Question>> {
        let Some(check) = &lb.health else { return Vec::new() };
        let question =
            |ends: &Ends| Rc::new(Question::new(check, ends.addr(self.point), self.process.secret[0]));
        ends.iter().map(question).collect()
    }

    fn weight(&self, id: NodeId) -> f64 {
        match self.point.specs[self.point.nodes[id as usize].spec as usize] {
            Spec::Weight { weight } => weight,
            _ => 1.0,
        }
    }

    /// What a person is told of a target: the server that its only way leads to, with its address, else what its ways part at.
    fn described(&self, mut id: NodeId) -> String {
        loop {
            let node = &self.point.nodes[id as usize];
            let name = node.name.as_deref();
            id = match (&self.point.specs[node.spec as usize], node.to) {
                (Spec::Server { addr, .. }, _) => {
                    return failure_log::server(name.unwrap_or("server"), addr.as_deref());
                }
                (_, To::Node(next)) => next,
                (spec, _) => {
                    return name.map_or(spec.kind().to_owned(), |n| format!("{} {n:?}", spec.kind()));
                }
            }
        }
    }

    /// What a target is hashed by: the address of the server that its way ends at first, else that server's name.
    fn hash_name(&self, mut id: NodeId) -> String {
        loop {
            let node = &self.point.nodes[id as usize];
            let name = || node.name.clone().unwrap_or_default();
            id = match (&self.point.specs[node.spec as usize], node.to) {
                (Spec::Server { addr: Some(addr), .. }, _) => return addr.clone(),
                (_, To::Node(next)) => next,
                (_, To::List(list)) => match self.point.lists[list as usize].first() {
                    Some(first) => *first,
                    None => return name(),
                },
                _ => return name(),
            }
        }
    }
}

/// What health draws by, beside the seed.
const HEALTH: u64 = 0x4845_414c_5448;

fn whole(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
