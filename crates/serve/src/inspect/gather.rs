//! One thread's part of the view: on a loop the counts and estimates of its balancers, on the owner process-wide
//! state. Gathered in slices of targets, between which requests are served.

use crate::exchange::NodeId;
use crate::graph::Graph;
use crate::graph::blueprint::Blueprint;
use crate::graph::ends::Ends;
use crate::graph::identity::inside;
use crate::health::monitor::{Event, Monitor, TargetPast};
use crate::health::overrides::ByHand;
use crate::inspect::view::LeavingView;
use crate::metrics::{BriefCounts, RecentCounts};
use crate::nodes::lb::Lb;
use crate::nodes::{Id, Node};
use crate::sync::slices::Slices;
use crate::threads::admission::Admission;
use crate::threads::event_loop::Loop;
use crate::transport::listener::{Entry, Listener};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use weir_plan::{Edge, Point, Spec, label, listeners};
use weir_policy::eligibility::{Admin, Reason};
use weir_policy::{SubsetTable, TargetId};

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
    /// The load that it has reported last to any loop.
    pub load: Option<f32>,
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
    pub subsets: Option<SubsetTable>,
    pub targets: Vec<TargetHealth>,
}

/// The health of one target.
pub(super) struct TargetHealth {
    pub index: TargetId,
    pub node: NodeId,
    pub name: String,
    pub weight: f64,
    pub file_weight: f64,
    /// Whether its weight is 0 because the source that lists it drains it.
    pub is_drained: bool,
    pub ramp: f64,
    pub may_be_picked: bool,
    pub admin: Admin,
    /// The settings by hand.
    pub by_hand: ByHand,
    pub against: Vec<Reason>,
    /// Requests in flight over all loops, if they are limited, and their limit now.
    pub inside: Option<u32>,
    pub limit: Option<u32>,
    /// The address at the end of its only way.
    pub addr: Option<String>,
    pub past: TargetPast,
}

/// The listeners that drain on a loop after a reload has removed them.
fn leaving(lp: &Loop) -> Vec<(usize, LeavingView)> {
    let view = |(number, (listener, admission)): (usize, (Rc<Listener>, Admission))| {
        let (name, addr) = (listener.name.to_string(), listener.addr.clone());
        (number, LeavingView { name, addr, connections: admission.clients.connected() })
    };
    lp.leaving().into_iter().map(view).collect()
}

/// The part of a thread.
pub(super) async fn of_thread(lp: &Loop) -> ThreadView {
    let Some(graph) = lp.graph() else { return ThreadView::default() };
    let slices = Slices::new(&lp.core.runtime);
    let mut said = of_loop(&graph, lp.core.now(), &slices).await;
    if let Some(monitor) = lp.monitor() {
        let listeners = graph.all_entries().filter_map(|entry| {
            let Entry::Listener(number) = entry else { return None };
            let (listener, admission) = lp.listener(number)?;
            Some((entry, listener, admission.clients.connected()))
        });
        said.of_owner = Some(of_owner(&graph, monitor, listeners.collect(), &slices).await);
    }
    said.clients = lp.clients();
    said.leaving = leaving(lp);
    let now_ns = lp.core.now();
    lp.state.metrics.each_listener(|counts| {
        said.listeners.push((counts.name.clone(), counts.recent.counts(now_ns)));
    });
    said
}

/// A thread's balancers.
async fn of_loop(graph: &Graph, now_ns: u64, slices: &Slices) -> ThreadView {
    let mut said = ThreadView::default();
    for lb in graph.balancers() {
        slices.step().await;
        said.recent.push((lb.id, lb.counts.pool.recent.counts(now_ns)));
        let mut attempts = Vec::with_capacity(lb.counts.targets.len());
        for (target, counts) in (0..).map(TargetId).zip(lb.counts.targets.iter()) {
            slices.step().await;
            let (begun, failed) = counts.attempts();
            attempts.push(Attempts { target, begun, failed, brief: counts.brief.counts(now_ns) });
        }
        said.attempts.push((lb.id, attempts));
        // The state of the process's balancers is the owner's, that of the others each loop's.
        if lb.is_the_owners == lb.owner.is_here {
            said.pools.push((lb.id, targets(lb, now_ns, slices).await));
        }
    }
    said
}

async fn targets(lb: &Lb, now_ns: u64, slices: &Slices) -> Vec<TargetReport> {
    let count = lb.state.upstream.borrow().roster().len();
    let mut all = Vec::with_capacity(count as usize);
    for index in TargetId::all(count) {
        slices.step().await;
        // Requests use it between two steps.
        let upstream = lb.state.upstream.borrow();
        let roster = upstream.roster();
        if roster.exists(index) {
            all.push(TargetReport {
                index,
                weight: roster.open_weight(index),
                in_flight: lb.state.in_flight(index),
                estimate_ns: upstream.estimate_ns(now_ns, index),
                load: lb.state.flags().reported(index),
                passed_over: upstream.is_passed_over(index),
            });
        }
    }
    all
}

/// Process-wide state. `all`: its listeners, and the number of clients of each.
async fn of_owner(
    graph: &Graph,
    monitor: &Monitor,
    all: Vec<(Entry, Rc<Listener>, usize)>,
    slices: &Slices,
) -> OwnerReport {
    let plan = &graph.blueprint;
    let mut pools = Vec::new();
    for lb in graph.balancers() {
        slices.step().await;
        pools.extend(of_pool(plan, lb, monitor, slices).await);
    }
    pools.sort_by_key(|pool: &PoolHealth| pool.node);
    let queue = |id: NodeId| match graph.node(id) {
        Node::Queue(queue) => Some((id, queue.semaphore.inside(0), queue.semaphore.queue.waiting())),
        _ => None,
    };
    let mut queues = Vec::new();
    for id in 0..plan.point.nodes.len() as NodeId {
        slices.step().await;
        queues.extend(queue(id));
    }
    let finds = monitor.finds();
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
    OwnerReport {
        pools,
        queues,
        listeners: all.into_iter().filter_map(listener).collect(),
        events: monitor.events(),
        now_ns: monitor.core.now(),
        plan: plan.clone(),
    }
}

async fn of_pool(plan: &Blueprint, lb: &Lb, monitor: &Monitor, slices: &Slices) -> Option<PoolHealth> {
    let by_hand = of_pool_by_hand(&label(&plan.point, lb.node), monitor);
    let (len, (of, eligible), is_ignored) =
        monitor.look(lb.id, |health, _, _, _| (health.len(), health.count(), health.is_ignored()))?;
    let mut targets = Vec::with_capacity(len as usize);
    for index in TargetId::all(len) {
        slices.step().await;
        let Some(node) = lb.targets.get(index.index()).copied().flatten() else { continue };
        targets.extend(of_target(plan, lb, monitor, TargetPlace { index, node }, &by_hand));
    }
    Some(PoolHealth {
        id: lb.id,
        node: lb.node,
        is_ignored,
        of,
        eligible,
        waiting: lb.semaphore.as_ref().map(|semaphore| semaphore.queue.waiting()),
        subsets: plan.subsets(lb.node).map(|subsets| subsets.table().clone()),
        targets,
    })
}

/// What is set by hand of a pool's targets, by their names.
fn of_pool_by_hand(pool: &str, monitor: &Monitor) -> BTreeMap<String, ByHand> {
    let all = monitor.by_hand().into_iter().filter(|((of, _), _)| of == pool);
    all.map(|((_, target), by_hand)| (target, by_hand)).collect()
}

/// Where a target is: its index, and its node.
struct TargetPlace {
    index: TargetId,
    node: NodeId,
}

/// A target of a pool; `None`: a reload has removed it meanwhile.
fn of_target(
    plan: &Blueprint,
    lb: &Lb,
    monitor: &Monitor,
    TargetPlace { index, node }: TargetPlace,
    by_hand: &BTreeMap<String, ByHand>,
) -> Option<TargetHealth> {
    monitor.look(lb.id, |health, names, weights, pasts| {
        let name = String::from(&**names.get(index.index())?);
        let weight = health.whole_weight(index);
        Some(TargetHealth {
            by_hand: by_hand.get(&name).copied().unwrap_or_default(),
            index,
            node,
            name,
            weight,
            file_weight: weights.get(index.index()).copied()?,
            is_drained: weight <= 0.0 && is_drained(&plan.point, node),
            ramp: health.ramp(index),
            may_be_picked: health.view(index).may_be_picked,
            admin: health.admin(index),
            against: health.against(index).collect(),
            inside: lb.semaphore.as_ref().map(|semaphore| semaphore.inside(index.0)),
            limit: lb.semaphore.as_ref().map(|semaphore| semaphore.limit(index.0)),
            addr: plan.address(node),
            past: pasts.get(index.index()).cloned().unwrap_or_default(),
        })
    })?
}

/// Whether the source that lists a target says that it drains. Weight 0 in a list does so, too.
fn is_drained(point: &Point, target: NodeId) -> bool {
    let mut id = target;
    // A weight before a member is none of its nodes.
    while let (Some(Spec::Weight { .. }), Some(Edge::Node(next))) =
        (point.spec(id), point.node(id).map(|node| node.to))
    {
        id = next;
    }
    point.fleets.as_deref().and_then(|fleets| fleets.listed(id)).is_some_and(|member| member.drain)
}

/// The capacity of a queue.
pub(super) fn concurrency(plan: &Blueprint, queue: NodeId) -> u32 {
    if let Spec::Queue { concurrency, .. } = plan.spec(queue) { *concurrency } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::panic_tests::serve;
    use crate::sync::slices::AT_ONCE;
    use std::time::Duration;

    const TARGETS: usize = 3000;

    /// The sockets are polled after every few targets, on the loop and on the thread of health: a page is asked for every
    /// few seconds.
    #[test]
    fn requests_are_served_between_slices_of_a_view() {
        let pool = format!("pool({TARGETS}, lambda i: server(\"s%d\" % i, addr=\"127.0.0.1:%d\" % (1 + i)))");
        let (running, _) = serve(&format!("listen(\"127.0.0.1:0\", lb.random({pool}))"));
        let asked = running.remote().process().ask_all_in_turns(Duration::from_secs(60), |lp| async move {
            let before = lp.core.runtime.looks();
            let said = of_thread(&lp).await;
            let health = said.of_owner.map(|of_owner| of_owner.pools[0].targets.len());
            (said.attempts[0].1.len(), health, lp.core.runtime.looks() - before)
        });
        for (said, health) in asked.into_iter().zip([None, Some(TARGETS)]) {
            let (attempts, found, turns) = said.expect("an answer");
            assert_eq!((attempts, found), (TARGETS, health));
            assert!(turns >= (2 * TARGETS / AT_ONCE) as u64, "{turns} turns");
        }
        running.remote().drain();
    }
}
