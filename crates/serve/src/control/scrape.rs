//! A scrape: each thread is asked for its counts, and process-wide counts are read.
//!
//! For a loop that hangs, or has ended, its last counts are used, so that no counter decreases.

use crate::graph::Graph;
use crate::graph::blueprint::Blueprint;
use crate::metrics::counts::Value;
use crate::metrics::families::Id as Of;
use crate::metrics::sample::{Label, merged};
use crate::metrics::{
    Code, ConnectionCounts, Counting, Exposition, ListenerCounts, NodeCounts, Samples, text,
};
use crate::nodes::Node;
use crate::threads::event_loop::Loop;
use crate::threads::generation::Generation;
use crate::threads::process::Process;
use std::collections::BTreeMap;
use std::iter::once;
use std::sync::{Arc, PoisonError};
use weir_plan as plan;
use weir_plan::serving::Role;
use weir_policy::TargetId;

/// All metrics. `ready`: what `/ready` says; `lost`: lines of logs.
pub(super) fn scrape(
    process: &Process,
    generation: &Generation,
    ready: bool,
    lost: u64,
    format: Exposition,
) -> Vec<u8> {
    // Its content is valid after every step.
    let mut said = process.metrics.said.lock().unwrap_or_else(PoisonError::into_inner);
    let answers = process.ask_all(|lp| Arc::new(gather(lp)));
    said.resize(answers.len(), None);
    for (before, now) in said.iter_mut().zip(answers) {
        *before = now.or(before.take());
    }
    let mut own = Samples::default();
    process.metrics.gather(&mut own);
    own.add(Of::LogLinesLost, [], lost);
    own.add(Of::Ready, [], u64::from(ready));
    for conf in generation.confs.values() {
        if let Some(most) = conf.admission.most() {
            let listener: Arc<str> = conf.name.as_str().into();
            own.add(Of::ConnectionsLimit, [(&listener).into()], most as u64);
        }
        for (file, not_after_s) in conf.tls.iter().flat_map(|server| server.not_after()) {
            let [listener, file]: [Arc<str>; 2] = [conf.name.as_str().into(), file.into()];
            own.add(Of::TlsNotAfter, [(&listener).into(), (&file).into()], not_after_s);
        }
    }
    gather_shared(process, &generation.blueprint, &mut own);
    let all = merged(said.iter().flatten().map(|samples| &**samples).chain(once(&own)));
    drop(said);
    text::exposed(&all, format)
}

/// Process-wide metrics of nodes.
fn gather_shared(process: &Process, blueprint: &Blueprint, out: &mut Samples) {
    let now_ns = process.clock.now();
    for (id, key) in (0..).zip(&blueprint.keys.nodes) {
        if !matches!(blueprint.role(id), Role::Proxy | Role::Model) {
            continue;
        }
        let label = || Arc::<str>::from(plan::label(&blueprint.point, id));
        if let Some((inside, waiting)) = process.state.inside(*key) {
            let label = label();
            out.add(Of::QueueInside, [(&label).into()], inside);
            out.add(Of::QueueWaiting, [(&label).into()], waiting);
        }
        if let Some(budget) = process.state.budget(*key) {
            // Its present holder only does some arithmetic.
            let left = (0..TRIES).find_map(|_| budget.try_with(|tokens| tokens.left(now_ns)));
            if let Some(left) = left {
                out.add(Of::BudgetTokens, [(&label()).into()], left);
            }
        }
    }
}

/// How often a budget is tried that another thread holds.
const TRIES: u32 = 1000;

/// The counts of a thread.
fn gather(lp: &Loop) -> Samples {
    let mut out = Samples::default();
    let metrics = &lp.state.metrics;
    let round = metrics.begin_round();
    if let Some(monitor) = lp.monitor() {
        monitor.gather(round, &mut out);
    }
    // The owner serves no client.
    if lp.number == lp.process.owner() {
        return out;
    }
    let mut clients: BTreeMap<Arc<str>, [u64; 2]> = BTreeMap::new();
    lp.each_client(|session| {
        let counts = clients.entry(session.listener.counts.name.clone()).or_default();
        counts[usize::from(session.idle_since_ns.get() != u64::MAX)] += 1;
    });
    metrics.each_listener(|counts| {
        listener(counts, clients.get(&counts.name).copied().unwrap_or_default(), &mut out);
    });
    metrics.each_node(|counts| node(counts, &mut out));
    if let Some(graph) = lp.graph() {
        pools(&graph, round, &mut out);
        connections(&graph, &mut out);
    }
    for (limit, count) in metrics.limits.each() {
        out.add(Of::LimitReached, [limit.into()], count);
    }
    out.add(Of::LoopLag, [], &metrics.lag);
    out.add(Of::LoopBusy, [lp.number.into()], metrics.busy.ratio());
    out
}

fn listener(counts: &ListenerCounts, [active, idle]: [u64; 2], out: &mut Samples) {
    let name = || Label::from(&counts.name);
    for (method, protocol, code, count) in counts.each_request() {
        let code = match code {
            Code::Number(number) => u32::from(number).into(),
            Code::None => "none".into(),
            Code::Other => "other".into(),
        };
        out.add(Of::Requests, [name(), method.name().into(), code, protocol.name().into()], count);
    }
    for (kind, count) in counts.errors.each() {
        out.add(Of::RequestErrors, [name(), kind.into()], count);
    }
    out.add(Of::RequestDuration, [name()], &counts.duration);
    out.add(Of::RequestsInFlight, [name()], counts.in_flight.get());
    out.add(Of::Connections, [name(), "active".into()], active);
    out.add(Of::Connections, [name(), "idle".into()], idle);
    out.add(Of::ConnectionsAccepted, [name()], counts.accepted.get());
    for (reason, count) in counts.closed.each() {
        out.add(Of::ConnectionsClosed, [name(), reason.into()], count);
    }
    out.add(Of::RequestBytes, [name()], counts.received.get());
    out.add(Of::ResponseBytes, [name()], counts.sent.get());
    if counts.panics.get() > 0 {
        out.add(Of::RequestPanics, [name()], counts.panics.get());
    }
    for (rule, count) in counts.each_rule() {
        out.add(Of::BadRequests, [name(), rule.into()], count);
    }
    for (limit, count) in counts.limits.each() {
        out.add(Of::LimitReached, [limit.into()], count);
    }
    if counts.unlogged.get() > 0 {
        out.add(Of::LogLinesSampled, [name()], counts.unlogged.get());
    }
    for (result, count) in counts.handshakes.each() {
        out.add(Of::TlsHandshakes, [name(), result.into()], count);
    }
}

fn node(counts: &NodeCounts, out: &mut Samples) {
    let name = || Label::from(&counts.label);
    for (kind, count) in counts.retries.each() {
        out.add(Of::Retries, [name(), kind.into()], count);
    }
    for (reason, count) in counts.denied.each() {
        out.add(Of::RetriesDenied, [name(), reason.into()], count);
    }
    for (won, count) in counts.hedges.each() {
        out.add(Of::Hedges, [name(), won.into()], count);
    }
    for (reason, count) in counts.rejected.each() {
        out.add(Of::QueueRejected, [name(), reason.into()], count);
    }
    if let Some(waited) = counts.waited() {
        out.add(Of::QueueWait, [name()], waited);
    }
    if counts.is == Counting::Rate {
        out.add(Of::Limited, [name()], counts.limited.get());
    }
}

/// Attempts, by the balancers that begin them.
fn pools(graph: &Graph, round: u64, out: &mut Samples) {
    let of_balancers = graph.balancers().map(|lb| (&lb.counts, Some(lb)));
    let of_servers =
        graph.servers().filter_map(|server| server.alone.get()).map(|alone| (&alone.counts, None));
    for (counts, lb) in of_balancers.chain(of_servers) {
        let pool = &counts.pool;
        if pool.is_new_in(round) {
            out.add(Of::AttemptDuration, [(&pool.label).into()], &pool.duration);
        }
        for (number, target) in (0..).map(TargetId).zip(&counts.targets) {
            let is_there = lb.is_none_or(|lb| lb.has_target(number));
            if !is_there || !target.is_new_in(round) {
                continue;
            }
            let of = || [Label::from(&pool.label), (&target.label).into()];
            out.add(Of::AttemptsInFlight, of(), target.in_flight());
            for (outcome, count) in target.ended.each() {
                let [pool, target] = of();
                out.add(Of::Attempts, [pool, target, outcome.into()], count);
            }
        }
    }
}

/// A target's connections, and those of them that are idle.
type PooledConnections<'a> = (&'a ConnectionCounts, u64);

/// Connections, by the balancer next to their target; if several lead to a target, by the first.
fn connections(graph: &Graph, out: &mut Samples) {
    let mut homes: BTreeMap<u32, ([&Arc<str>; 2], PooledConnections<'_>)> = BTreeMap::new();
    for lb in graph.balancers() {
        let Some(ends) = graph.ends_of(lb.node) else { continue };
        for ((number, ends), target) in (0..).map(TargetId).zip(ends.iter()).zip(&lb.counts.targets) {
            if !lb.has_target(number) {
                continue;
            }
            for id in ends.servers() {
                if let Node::Server(server) = graph.node(id) {
                    let held = || (&*server.target.counts, server.target.idle() as u64);
                    let home = || ([&lb.counts.pool.label, &target.label], held());
                    homes.entry(server.target.key).or_insert_with(home);
                }
            }
        }
    }
    for server in graph.servers() {
        if let Some(alone) = server.alone.get() {
            let held = || (&*server.target.counts, server.target.idle() as u64);
            let names = [&alone.counts.pool.label, &alone.counts.pool.label];
            homes.entry(server.target.key).or_insert_with(|| (names, held()));
        }
    }
    let mut resent: BTreeMap<&Arc<str>, u64> = BTreeMap::new();
    for ([pool, target], (counts, idle)) in homes.into_values() {
        let of = || [Label::from(pool), target.into()];
        for (state, count) in [("active", counts.open().saturating_sub(idle)), ("idle", idle)] {
            let [pool, target] = of();
            out.add(Of::UpstreamConnections, [pool, target, state.into()], count);
        }
        out.add(Of::UpstreamOpened, of(), counts.opened.get());
        out.add(Of::UpstreamReused, of(), counts.reused.get());
        for (reason, count) in counts.closed.each() {
            let [pool, target] = of();
            out.add(Of::UpstreamClosed, [pool, target, reason.into()], count);
        }
        *resent.entry(pool).or_default() += counts.resent.get();
        if let Some(connected) = counts.connected() {
            out.add(Of::ConnectDuration, [pool.into()], connected);
        }
    }
    for (pool, count) in resent {
        out.add(Of::Resends, [pool.into()], count);
    }
}
