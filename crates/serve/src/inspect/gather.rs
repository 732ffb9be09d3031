//! What one thread says of itself: on a loop what its balancers count and believe, on the owner's what belongs to the process.

use crate::exchange::NodeId;
use crate::graph::Graph;
use crate::graph::blueprint::Blueprint;
use crate::graph::ends::Ends;
use crate::graph::identity::inside;
use crate::health::monitor::Monitor;
use crate::nodes::Node;
use crate::nodes::lb::Lb;
use crate::transport::listener::Entry;
use std::rc::Rc;
use weir_policy::eligibility::{Admin, Reason};
use weir_policy::health::Health;
use weir_topology::plan::{Scope, Spec, listeners};

/// What a thread says.
#[derive(Default)]
pub(super) struct Said {
    /// Of the balancers whose state it has.
    pub pools: Vec<(NodeId, Vec<TargetSaid>)>,
    /// Clients that it serves.
    pub clients: usize,
    /// What only the owner knows.
    pub of_owner: Option<OwnerSaid>,
}

/// A target as the thread has it.
pub(super) struct TargetSaid {
    pub index: u32,
    pub weight: f64,
    pub in_flight: Option<u64>,
    pub estimate_ns: Option<f64>,
    pub passed_over: bool,
}

/// What only the owner knows.
#[derive(Default)]
pub(super) struct OwnerSaid {
    pub pools: Vec<(NodeId, PoolHealth)>,
    pub queues: Vec<(NodeId, u32, u64)>,
    pub listeners: Vec<ListenerSaid>,
}

/// A listener.
pub(super) struct ListenerSaid {
    pub node: NodeId,
    pub name: String,
    pub port: Option<u16>,
    pub connections: usize,
    pub has_target: bool,
}

/// The health of a balancer's targets.
pub(super) struct PoolHealth {
    pub is_ignored: bool,
    pub of: u32,
    pub eligible: u32,
    pub waiting: Option<u64>,
    pub targets: Vec<TargetHealth>,
}

/// That of one.
pub(super) struct TargetHealth {
    pub index: u32,
    pub weight: f64,
    pub ramp: f64,
    pub may_be_picked: bool,
    pub admin: Admin,
    pub against: Vec<Reason>,
    /// Requests in flight over all loops, where they are limited.
    pub inside: Option<u32>,
}

fn balancers<'a>(plan: &'a Blueprint, graph: &'a Graph) -> impl Iterator<Item = &'a Rc<Lb>> {
    // Between two graphs nothing is said.
    let count = if graph.blueprint.epoch == plan.epoch { plan.point.nodes.len() as NodeId } else { 0 };
    (0..count).filter_map(|id| if let Node::Lb(lb) = graph.node(id) { Some(lb) } else { None })
}

/// A thread's balancers.
pub(super) fn of_loop(plan: &Blueprint, graph: &Graph, now_ns: u64) -> Said {
    // The state of the process's balancers is the owner's, that of the others each loop's.
    let mine = balancers(plan, graph).filter(|lb| (lb.scope == Scope::Process) == lb.owner.is_here);
    let pools = mine.map(|lb| (lb.node, targets(lb, now_ns))).collect();
    Said { pools, ..Said::default() }
}

fn targets(lb: &Lb, now_ns: u64) -> Vec<TargetSaid> {
    let upstream = lb.state.upstream.borrow();
    let roster = upstream.roster();
    let there = (0..roster.len()).filter(|target| roster.exists(*target));
    let said = |index: u32| TargetSaid {
        index,
        weight: roster.effective().get(index as usize).copied().unwrap_or_default(),
        in_flight: Some(u64::from(lb.state.in_flight(index))),
        estimate_ns: upstream.estimate_ns(now_ns, index),
        passed_over: upstream.is_passed_over(index),
    };
    there.map(said).collect()
}

/// What the process has. `all`: its listeners, with their ports and how many clients each has.
pub(super) fn of_owner<'a>(
    plan: &Blueprint,
    graph: &Graph,
    monitor: &Monitor,
    all: impl Iterator<Item = (Entry, &'a str, Option<u16>, usize)>,
) -> OwnerSaid {
    let named = |name: &str| {
        let is = |id: &NodeId| plan.point.nodes[*id as usize].name.as_deref().unwrap_or_default() == name;
        listeners(&plan.point).into_iter().find(is)
    };
    let listener = |(_, name, port, connections): (Entry, &str, Option<u16>, usize)| {
        let node = named(name)?;
        let ends = Ends::behind(&plan.point, &plan.serving, false, inside(&plan.point, node));
        let has_target = ends.all.is_empty() || ends.all.iter().any(|end| monitor.finds_anyone(*end));
        Some(ListenerSaid { node, name: name.to_owned(), port, connections, has_target })
    };
    let count = if graph.blueprint.epoch == plan.epoch { plan.point.nodes.len() as NodeId } else { 0 };
    let queue = |id: NodeId| match graph.node(id) {
        Node::Queue(queue) => Some((id, queue.semaphore.inside(0), queue.semaphore.queue.waiting())),
        _ => None,
    };
    let pool = |lb: &Rc<Lb>| Some((lb.node, monitor.look(lb.id, |health| of_health(lb, health))?));
    OwnerSaid {
        pools: balancers(plan, graph).filter_map(pool).collect(),
        queues: (0..count).filter_map(queue).collect(),
        listeners: all.filter_map(listener).collect(),
    }
}

fn of_health(lb: &Lb, health: &Health) -> PoolHealth {
    let (of, eligible) = health.count();
    let target = |index: u32| TargetHealth {
        index,
        weight: health.whole_weight(index),
        ramp: health.ramp(index),
        may_be_picked: health.view(index).may_be_picked,
        admin: health.admin(index),
        against: health.against(index).collect(),
        inside: lb.semaphore.as_ref().map(|semaphore| semaphore.inside(index)),
    };
    let there = (0..health.len()).filter(|index| lb.has_target(*index));
    PoolHealth {
        is_ignored: health.is_ignored(),
        of,
        eligible,
        waiting: lb.semaphore.as_ref().map(|semaphore| semaphore.queue.waiting()),
        targets: there.map(target).collect(),
    }
}

/// How many may be inside of a queue.
pub(super) fn concurrency(plan: &Blueprint, queue: NodeId) -> u32 {
    if let Spec::Queue { concurrency, .. } = plan.spec(queue) { *concurrency } else { 0 }
}
