//! One thread's part of the view: on a loop the counts and estimates of its balancers, on the owner process-wide
//! state.

use crate::exchange::NodeId;
use crate::graph::Graph;
use crate::graph::blueprint::Blueprint;
use crate::graph::ends::Ends;
use crate::graph::identity::inside;
use crate::health::monitor::{Event, Monitor, TargetPast};
use crate::health::overrides::ByHand;
use crate::inspect::view::LeavingView;
use crate::metrics::{BriefCounts, RecentCounts, TargetCounts};
use crate::nodes::lb::Lb;
use crate::nodes::{Id, Node};
use crate::threads::admission::Admission;
use crate::threads::event_loop::Loop;
use crate::transport::listener::{Entry, Listener};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use weir_plan::{Scope, Spec, label, listeners};
use weir_policy::TargetId;
use weir_policy::eligibility::{Admin, Reason};

/// The answer of a thread.
#[derive(Default)]
pub(super) struct ThreadView {
    /// The balancers whose state it has, by identity: threads adopt a generation one after another.
    pub pools: Vec<(Id, Vec<TargetReport>)>,
    /// Of all balancers by target: attempts so far, and failed ones.
    pub attempts: Vec<(Id, Vec<Attempts>)>,
    /// Clients that it serves.
    pub clients: usize,
    /// The last minutes, by the listener's name and by balancer.
    pub listeners: Vec<(Arc<str>, [RecentCounts; 2])>,
    pub recent: Vec<(Id, [RecentCounts; 2])>,
    /// Listeners that a reload has removed and that drain here, by number.
    pub leaving: Vec<(usize, LeavingView)>,
    /// The part that only the owner knows.
    pub of_owner: Option<OwnerReport>,
}

/// Attempts at a target.
pub(super) struct Attempts {
    /// The target's index.
    pub target: TargetId,
    pub begun: u64,
    pub failed: u64,
    pub brief: BriefCounts,
}

/// A target as the thread sees it.
pub(super) struct TargetReport {
    pub index: TargetId,
    pub weight: f64,
    pub in_flight: u32,
    pub estimate_ns: Option<f64>,
    pub passed_over: bool,
}

/// The part that only the owner knows.
pub(super) struct OwnerReport {
    /// The topology it serves; all numbers of nodes belong to it.
    pub plan: Arc<Blueprint>,
    pub pools: Vec<PoolHealth>,
    pub queues: Vec<(NodeId, u32, u64)>,
    /// The last changes of targets.
    pub events: Vec<Event>,
    /// The time of all of it, ns.
    pub now_ns: u64,
    pub listeners: Vec<ListenerReport>,
}

/// A listener.
pub(super) struct ListenerReport {
    pub node: NodeId,
    pub addr: String,
    pub port: Option<u16>,
    pub connections: usize,
    pub has_target: bool,
}

/// The health of a balancer's targets.
pub(super) struct PoolHealth {
    pub id: Id,
    pub node: NodeId,
    pub is_ignored: bool,
    pub of: u32,
    pub eligible: u32,
    pub waiting: Option<u64>,
    pub targets: Vec<TargetHealth>,
}

/// The health of one target.
pub(super) struct TargetHealth {
    pub index: TargetId,
    pub node: NodeId,
    pub name: String,
    pub weight: f64,
    pub file_weight: f64,
    pub ramp: f64,
    pub may_be_picked: bool,
    pub admin: Admin,
    /// The settings by hand.
    pub by_hand: ByHand,
    pub against: Vec<Reason>,
    /// Requests in flight over all loops, if they are limited.
    pub inside: Option<u32>,
    /// The address at the end of its only way.
    pub addr: Option<String>,
    pub past: TargetPast,
}

fn balancers(graph: &Graph) -> impl Iterator<Item = &Rc<Lb>> {
    let all = 0..graph.blueprint.point.nodes.len() as NodeId;
    all.filter_map(|id| if let Node::Lb(lb) = graph.node(id) { Some(lb) } else { None })
}

/// The listeners that drain on a loop after a reload has removed them.
pub(super) fn leaving(lp: &Loop) -> Vec<(usize, LeavingView)> {
    let view = |(number, (listener, admission)): (usize, (Rc<Listener>, Admission))| {
        let (name, addr) = (listener.name.to_string(), listener.addr.clone());
        (number, LeavingView { name, addr, connections: admission.clients.connected() })
    };
    lp.leaving().into_iter().map(view).collect()
}

/// A thread's balancers.
pub(super) fn of_loop(graph: &Graph, now_ns: u64) -> ThreadView {
    // The state of the process's balancers is the owner's, that of the others each loop's.
    let mine = balancers(graph).filter(|lb| (lb.scope == Scope::Process) == lb.owner.is_here);
    let attempts = |lb: &Rc<Lb>| {
        let counted = (0..).map(TargetId).zip(&lb.counts.targets);
        let of_target = |(index, counts): (TargetId, &Rc<TargetCounts>)| {
            let (begun, failed) = counts.attempts();
            Attempts { target: index, begun, failed, brief: counts.brief.counts(now_ns) }
        };
        (lb.id, counted.map(of_target).collect())
    };
    ThreadView {
        pools: mine.map(|lb| (lb.id, targets(lb, now_ns))).collect(),
        attempts: balancers(graph).map(attempts).collect(),
        recent: balancers(graph).map(|lb| (lb.id, lb.counts.pool.recent.counts(now_ns))).collect(),
        ..ThreadView::default()
    }
}

fn targets(lb: &Lb, now_ns: u64) -> Vec<TargetReport> {
    let upstream = lb.state.upstream.borrow();
    let roster = upstream.roster();
    let there = TargetId::all(roster.len()).filter(|target| roster.exists(*target));
    let said = |index: TargetId| TargetReport {
        index,
        weight: roster.effective().get(index.index()).copied().unwrap_or_default(),
        in_flight: lb.state.in_flight(index),
        estimate_ns: upstream.estimate_ns(now_ns, index),
        passed_over: upstream.is_passed_over(index),
    };
    there.map(said).collect()
}

/// Process-wide state. `all`: its listeners, and the number of clients of each.
pub(super) fn of_owner(
    graph: &Graph,
    monitor: &Monitor,
    all: impl Iterator<Item = (Entry, Rc<Listener>, usize)>,
) -> OwnerReport {
    let (plan, finds) = (&graph.blueprint, monitor.finds());
    let listener = |(entry, listener, connections): (Entry, Rc<Listener>, usize)| {
        let entered = graph.entry(entry)?;
        let ends = Ends::behind(&plan.point, &plan.serving, false, entered);
        let has_target = finds(&ends);
        let is_it = |id: &NodeId| matches!(plan.spec(*id), Spec::Listen(listen) if listen.addr == listener.addr && inside(&plan.point, *id) == entered);
        let node = listeners(&plan.point).into_iter().find(is_it)?;
        Some(ListenerReport {
            node,
            addr: listener.addr.clone(),
            port: listener.port,
            connections,
            has_target,
        })
    };
    let queue = |id: NodeId| match graph.node(id) {
        Node::Queue(queue) => Some((id, queue.semaphore.inside(0), queue.semaphore.queue.waiting())),
        _ => None,
    };
    let mut pools: Vec<PoolHealth> = balancers(graph).filter_map(|lb| of_pool(plan, lb, monitor)).collect();
    pools.sort_by_key(|pool| pool.node);
    OwnerReport {
        pools,
        queues: (0..plan.point.nodes.len() as NodeId).filter_map(queue).collect(),
        listeners: all.filter_map(listener).collect(),
        events: monitor.events(),
        now_ns: monitor.core.now(),
        plan: plan.clone(),
    }
}

fn of_pool(plan: &Blueprint, lb: &Lb, monitor: &Monitor) -> Option<PoolHealth> {
    let at = |index: TargetId| lb.targets.get(index.index()).copied().flatten();
    let (pool, by_hand) = (label(&plan.point, lb.node), monitor.by_hand());
    monitor.look(lb.id, |health, names, weights, pasts| {
        let target = |index: TargetId| {
            let name = names.get(index.index())?.clone();
            Some(TargetHealth {
                by_hand: by_hand.get(&(pool.clone(), name.clone())).copied().unwrap_or_default(),
                index,
                node: at(index)?,
                name,
                weight: health.whole_weight(index),
                file_weight: weights.get(index.index()).copied()?,
                ramp: health.ramp(index),
                may_be_picked: health.view(index).may_be_picked,
                admin: health.admin(index),
                against: health.against(index).collect(),
                inside: lb.semaphore.as_ref().map(|semaphore| semaphore.inside(index.0)),
                addr: plan.address(at(index)?),
                past: pasts.get(index.index()).cloned().unwrap_or_default(),
            })
        };
        let (of, eligible) = health.count();
        let waiting = lb.semaphore.as_ref().map(|semaphore| semaphore.queue.waiting());
        let mut targets: Vec<TargetHealth> = TargetId::all(health.len()).filter_map(target).collect();
        // In the order of the file: later targets may have the index of a removed one.
        let places: BTreeMap<NodeId, usize> = plan.list(lb.node).iter().copied().zip(0..).collect();
        targets.sort_by_key(|target| places.get(&target.node).copied());
        PoolHealth {
            id: lb.id,
            node: lb.node,
            is_ignored: health.is_ignored(),
            of,
            eligible,
            waiting,
            targets,
        }
    })
}

/// The capacity of a queue.
pub(super) fn concurrency(plan: &Blueprint, queue: NodeId) -> u32 {
    if let Spec::Queue { concurrency, .. } = plan.spec(queue) { *concurrency } else { 0 }
}
