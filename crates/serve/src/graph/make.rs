//! Makes the nodes that act on a thread, each from its entry in the plan.

use super::builder::{Builder, as_origin, reached, whole};
use crate::exchange::NodeId;
use crate::exchange::reply::LocalAnswer;
use crate::metrics::Counting;
use crate::nodes::{
    Node, buffered, cable, concurrent, delay, fanout, faulty, flaky, gate, hedge, model, queue, rate,
    redirect, retry, rewrite, route, sequence, split, timeout, warmup,
};
use crate::sync::TryCell;
use crate::sync::gate::SharedGate;
use crate::sync::timeline::LocalTimeLine;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use weir_model::Dist;
use weir_model::concurrent as sharing;
use weir_model::sampler::Sampler;
use weir_plan::{Faulty, HedgeSpec, KeySource, Spec};
use weir_policy::config::{GateArgs, Retry};
use weir_policy::split::Split as Shares;

impl Builder<'_> {
    /// Makes a node that acts on this thread.
    pub(super) fn make(&self, id: NodeId) -> Node {
        let next = self.blueprint.next(id);
        let draws = &self.blueprint.draws;
        let name = self.blueprint.point.nodes[id as usize].name.as_deref();
        let key = self.blueprint.keys.nodes[id as usize];
        match self.blueprint.spec(id) {
            Spec::Server { addr: Some(addr), origin, .. } if !self.is_built_in() => {
                self.server(id, name, origin, || self.place(addr))
            }
            Spec::Server { model, .. } => self.modelled(*model, name),
            Spec::Listen(listen) => match self.blueprint.inner.at.get(&id) {
                Some(at) => self.server(id, name, &as_origin(listen), || reached(at)),
                None => Node::Pass(next),
            },
            Spec::Weight { .. } | Spec::Fleet(_) | Spec::Connection(_) | Spec::Timeout { time_ns: None } => {
                Node::Pass(next)
            }
            Spec::Timeout { time_ns: Some(time_ns) } => {
                Node::Timeout(timeout::Timeout { time_ns: *time_ns, late: self.late(id), node: next })
            }
            Spec::Respond { status, body, headers } => answer(*status, body, headers),
            Spec::Redirect { to, status } => {
                Node::Redirect(redirect::Redirect { to: to.clone(), status: *status })
            }
            Spec::Rewrite(config) => Node::Rewrite(rewrite::Rewrite { config: config.clone(), node: next }),
            Spec::Buffered { bytes } => {
                Node::Buffered(buffered::Buffered { bytes: whole(*bytes), node: next })
            }
            Spec::Delay { time } => {
                let (time, key, process) = (Sampler::new(time), draws.work(id), self.process(id));
                Node::Delay(delay::Delay { time, key, process, node: next })
            }
            Spec::Cable { time, loss, resend_ns } => self.cable(id, time, *loss, *resend_ns),
            queue @ Spec::Queue { .. } => self.queue(id, queue).unwrap_or(Node::Pass(next)),
            server @ Spec::Concurrent { .. } => self.concurrent(id, server, name).unwrap_or(Node::Pass(next)),
            Spec::Warmup(law) => match self.state.process().warmup(key) {
                Some(state) => Node::Warmup(warmup::Warmup { law: *law, state, node: next }),
                None => Node::Pass(next),
            },
            Spec::Gate(args) => self.gate(id, args).unwrap_or(Node::Pass(next)),
            Spec::Flaky { p, kind } => {
                Node::Flaky(flaky::Flaky { p: *p, kind: *kind, key: draws.failure(id), node: next })
            }
            Spec::Faulty(config) => self.faulty(id, config).unwrap_or(Node::Pass(next)),
            Spec::Sequence => {
                let nodes = self.blueprint.list(id).to_vec();
                Node::Sequence(sequence::Sequence { nodes, empty: self.unmodelled(name, "sequence") })
            }
            Spec::Fanout { need } => {
                let nodes = self.blueprint.list(id).to_vec();
                Node::Fanout(fanout::Fanout { nodes, need: *need, empty: self.unmodelled(name, "fanout") })
            }
            Spec::Route { otherwise, .. } => self.route(id, *otherwise).unwrap_or(Node::Pass(next)),
            Spec::Split { weights, key } => self.split(id, weights, key.as_ref()),
            Spec::Rate { key, .. } => self.rate(id, key.as_ref()).unwrap_or(Node::Pass(next)),
            Spec::Hedge(config) => self.hedge(id, config),
            Spec::Retry(config) => self.retry(id, config),
            Spec::Lb(lb) => Node::Lb(Rc::new(self.balancer(id, lb))),
        }
    }

    fn cable(&self, id: NodeId, time: &Dist, loss: f64, resend_ns: Option<u64>) -> Node {
        Node::Cable(cable::Cable {
            time: Sampler::new(time),
            loss,
            resend_ns,
            keys: self.blueprint.draws.crossings(id),
            node: self.blueprint.next(id),
        })
    }

    /// A built-in server: it answers at once, or does what its model does.
    fn modelled(&self, root: Option<NodeId>, name: Option<&str>) -> Node {
        let answer = self.unmodelled(name, "server");
        match root {
            Some(root) => Node::Model(model::Model { root, answer }),
            None => Node::Answer(answer),
        }
    }

    /// The answer of something that has no model, by its name or its kind.
    fn unmodelled(&self, name: Option<&str>, kind: &str) -> Rc<LocalAnswer> {
        Rc::new(LocalAnswer::server(name.unwrap_or(kind), self.blueprint.load_fields.clone()))
    }

    fn queue(&self, id: NodeId, spec: &Spec) -> Option<Node> {
        let Spec::Queue { capacity, timeout_ns, on_cancel, .. } = spec else { return None };
        Some(Node::Queue(Rc::new(queue::Queue {
            semaphore: self.state.semaphore(self.blueprint.keys.nodes[id as usize])?,
            capacity: capacity.unwrap_or(u64::MAX),
            timeout_ns: *timeout_ns,
            on_cancel: *on_cancel,
            node: self.blueprint.next(id),
            reports: self.is_built_in(),
            counts: self.counts(id, Counting::Queue),
        })))
    }

    fn concurrent(&self, id: NodeId, spec: &Spec, name: Option<&str>) -> Option<Node> {
        let Spec::Concurrent {
            work,
            cores,
            contention,
            coherency,
            threads,
            min_threads,
            thread_cost_ns,
            on_cancel,
        } = spec
        else {
            return None;
        };
        let law = sharing::Law::new(*cores, *contention, *coherency, *threads);
        Some(Node::Concurrent(Rc::new(concurrent::Concurrent {
            work: Sampler::new(work),
            law: law.with_threads(*min_threads, *thread_cost_ns),
            life: Cell::new(0),
            on_cancel: *on_cancel,
            process: self.process(id),
            key: self.blueprint.draws.work(id),
            answer: self.unmodelled(name, "concurrent"),
            state: RefCell::default(),
            driven: Cell::new(false),
        })))
    }

    fn gate(&self, id: NodeId, args: &GateArgs) -> Option<Node> {
        let state = self.state.process().gate(self.blueprint.keys.nodes[id as usize])?;
        let closed = LocalAnswer { status: 503, ..LocalAnswer::server("gate", Arc::default()) };
        Some(Node::Gate(gate::Gate {
            args: args.clone(),
            id: self.blueprint.draws.number(id).to_string(),
            state,
            others: self.gates_beside(id, args),
            node: self.blueprint.next(id),
            closed: Rc::new(closed),
        }))
    }

    /// The gates of a gate's place, by number, if it judges by them.
    fn gates_beside(&self, id: NodeId, args: &GateArgs) -> Rc<[(u32, Arc<TryCell<SharedGate>>)]> {
        if !args.work.as_ref().is_some_and(|work| work.is_relative) {
            return Rc::default();
        }
        let point = &self.blueprint.point;
        let place = |id: NodeId| point.sites[point.nodes[id as usize].site as usize].place;
        let beside =
            (0..point.nodes.len() as NodeId).filter(|other| *other != id && place(*other) == place(id));
        let gate = |other: NodeId| {
            let state = self.state.process().gate(self.blueprint.keys.nodes[other as usize])?;
            Some((self.blueprint.draws.number(other), state))
        };
        beside.filter_map(gate).collect()
    }

    /// The timeline of the process that pauses around a node.
    fn process(&self, id: NodeId) -> Option<Rc<LocalTimeLine>> {
        let process = (*self.blueprint.process_of.get(id as usize)?)?;
        self.state.time_line(self.blueprint.keys.nodes[process as usize])
    }

    fn faulty(&self, id: NodeId, config: &Faulty) -> Option<Node> {
        Some(Node::Faulty(faulty::Faulty {
            timeline: self.state.time_line(self.blueprint.keys.nodes[id as usize])?,
            mode: config.mode,
            slow: config.slow,
            checks_pass: config.checks_pass,
            node: self.blueprint.next(id),
        }))
    }

    fn route(&self, id: NodeId, otherwise: bool) -> Option<Node> {
        let nodes = self.blueprint.list(id).to_vec();
        Some(Node::Route(route::Route {
            rules: self.blueprint.rules(id)?.clone(),
            otherwise: nodes.last().copied().filter(|_| otherwise),
            nodes,
        }))
    }

    fn split(&self, id: NodeId, weights: &[f64], key: Option<&KeySource>) -> Node {
        Node::Split(split::Split {
            choice: self.blueprint.draws.choice(id),
            shares: Shares::new(weights),
            nodes: self.blueprint.list(id).to_vec(),
            key: key.cloned(),
        })
    }

    fn rate(&self, id: NodeId, key: Option<&KeySource>) -> Option<Node> {
        Some(Node::Rate(rate::Rate {
            buckets: self.state.process().rate(self.blueprint.keys.nodes[id as usize])?,
            key: key.cloned(),
            node: self.blueprint.next(id),
            counts: self.counts(id, Counting::Rate),
        }))
    }

    fn hedge(&self, id: NodeId, spec: &HedgeSpec) -> Node {
        Node::Hedge(hedge::Hedge {
            config: spec.hedge.clone(),
            replay: whole(spec.replay_bytes),
            budget: self.state.process().budget(self.blueprint.keys.nodes[id as usize]),
            node: self.blueprint.next(id),
            counts: self.counts(id, Counting::Hedge),
        })
    }

    fn retry(&self, id: NodeId, config: &Retry) -> Node {
        Node::Retry(Rc::new(retry::Retry {
            config: config.clone(),
            choice: self.blueprint.draws.choice(id),
            node: self.blueprint.next(id),
            budget: self.state.process().budget(self.blueprint.keys.nodes[id as usize]),
            counts: self.counts(id, Counting::Retry),
        }))
    }
}

/// An answer of weir's own, as the file has it.
fn answer(status: u16, body: &str, headers: &[(String, String)]) -> Node {
    Node::Answer(Rc::new(LocalAnswer {
        status,
        headers: headers.to_vec(),
        body: body.as_bytes().into(),
        by_server: false,
        load_fields: Arc::default(),
    }))
}
