//! The counts of a thread, for a scrape: gathered in slices, between which requests are served.

use crate::graph::Graph;
use crate::metrics::connected::PoolTotals;
use crate::metrics::counts::Value;
use crate::metrics::families::Id as Of;
use crate::metrics::sample::Label;
use crate::metrics::{
    Code, ConnectionCounts, Counting, ListenerCounts, NodeCounts, OriginHandshake, PoolCounts, Samples,
};
use crate::nodes::Node;
use crate::sync::slices::Slices;
use crate::threads::event_loop::Loop;
use crate::upstream::server::Server;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use weir_policy::TargetId;

/// Gathering in slices.
struct Round<'a> {
    lp: &'a Loop,
    number: u64,
    slices: Slices,
}

impl Round<'_> {
    /// A step; `None`: a later scrape has begun, which no longer waits for this one.
    async fn step(&self) -> Option<()> {
        self.slices.step().await;
        (!self.ends()).then_some(())
    }

    fn ends(&self) -> bool {
        self.lp.state.metrics.round() != self.number
    }
}

/// The counts of a thread; `None`: a later scrape asks for them.
pub(super) async fn gather(lp: &Loop) -> Option<Samples> {
    let mut out = Samples::default();
    let metrics = &lp.state.metrics;
    let number = metrics.begin_round();
    let round = Round { lp, number, slices: Slices::new(&lp.core.runtime) };
    if let Some(monitor) = lp.monitor() {
        monitor.gather(number, &mut out, &round.slices, || round.ends()).await?;
    }
    // The owner serves no client.
    if lp.number == lp.process.owner() {
        return Some(out);
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
        pools(&graph, &round, &mut out).await?;
        connections(&graph, &round, &mut out).await?;
    }
    for (limit, count) in metrics.limits.each() {
        out.add(Of::LimitReached, [limit.into()], count);
    }
    out.add(Of::LoopLag, [], &metrics.lag);
    out.add(Of::LoopBusy, [lp.number.into()], metrics.busy.ratio());
    Some(out)
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
async fn pools(graph: &Graph, round: &Round<'_>, out: &mut Samples) -> Option<()> {
    let of_balancers = graph.balancers().map(|lb| (&lb.counts, Some(lb)));
    let of_servers =
        graph.servers().filter_map(|server| server.alone.get()).map(|alone| (&alone.counts, None));
    for (counts, lb) in of_balancers.chain(of_servers) {
        let pool = &counts.pool;
        if pool.is_new_in(round.number) {
            out.add(Of::AttemptDuration, [(&pool.label).into()], &pool.duration);
        }
        if let Some(borrowed) = lb.and_then(|lb| lb.state.borrowed()) {
            out.add(Of::SubsetBorrowed, [(&pool.label).into()], borrowed);
        }
        for (number, target) in (0..).map(TargetId).zip(counts.targets.iter()) {
            round.step().await?;
            let is_there = lb.is_none_or(|lb| lb.has_target(number));
            if !is_there || !target.is_new_in(round.number) {
                continue;
            }
            let of = || [Label::from(&pool.label), (&target.label).into()];
            out.add(Of::AttemptsInFlight, of(), target.in_flight());
            if let Some(load) = lb.and_then(|lb| lb.state.flags().reported(number)) {
                out.add(Of::TargetLoad, of(), f64::from(load));
            }
            for (outcome, count) in target.ended.each() {
                let [pool, target] = of();
                out.add(Of::Attempts, [pool, target, outcome.into()], count);
            }
        }
    }
    Some(())
}

/// The connections of a target, and where they are counted.
struct TargetConnections<'a> {
    pool: &'a Rc<PoolCounts>,
    target: &'a Arc<str>,
    counts: &'a Rc<ConnectionCounts>,
    idle: u64,
    is_tls: bool,
}

impl<'a> TargetConnections<'a> {
    fn new(server: &'a Server, pool: &'a Rc<PoolCounts>, target: &'a Arc<str>) -> TargetConnections<'a> {
        let Server { target: own, tls, .. } = server;
        TargetConnections {
            pool,
            target,
            counts: &own.counts,
            idle: own.idle() as u64,
            is_tls: tls.is_some(),
        }
    }
}

/// Connections, by the balancer next to their target; if several lead to a target, by the first.
async fn connections(graph: &Graph, round: &Round<'_>, out: &mut Samples) -> Option<()> {
    let mut homes: BTreeMap<u32, TargetConnections<'_>> = BTreeMap::new();
    for lb in graph.balancers() {
        let Some(ends) = graph.ends_of(lb.node) else { continue };
        for ((number, ends), target) in (0..).map(TargetId).zip(ends.iter()).zip(lb.counts.targets.iter()) {
            round.step().await?;
            if !lb.has_target(number) {
                continue;
            }
            for id in ends.servers() {
                if let Node::Server(server) = graph.node(id) {
                    let home = || TargetConnections::new(server, &lb.counts.pool, &target.label);
                    homes.entry(server.target.key).or_insert_with(home);
                }
            }
        }
    }
    for server in graph.servers() {
        round.step().await?;
        if let Some(alone) = server.alone.get() {
            let pool = &alone.counts.pool;
            homes
                .entry(server.target.key)
                .or_insert_with(|| TargetConnections::new(server, pool, &pool.label));
        }
    }
    let (seen, mut totals) = (&round.lp.state.metrics.connected, BTreeMap::new());
    for (key, TargetConnections { pool, target, counts, idle, is_tls }) in homes {
        round.step().await?;
        seen.meet(key, pool, counts, round.number);
        let of = || [Label::from(&pool.label), target.into()];
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
        let (_, sum) = totals.entry(&pool.label).or_insert_with(|| (pool, PoolTotals::default()));
        sum.add(counts);
        sum.has_tls |= is_tls;
        if let Some(connected) = counts.connected() {
            out.add(Of::ConnectDuration, [(&pool.label).into()], connected);
        }
    }
    let mut after = None;
    while let Some(key) = seen.look(after, round.number) {
        round.step().await?;
        after = Some(key);
    }
    totals.into_values().for_each(|(pool, sum)| pool_connections(pool, &sum, out));
    Some(())
}

/// What is counted by pool.
fn pool_connections(pool: &PoolCounts, sum: &PoolTotals, out: &mut Samples) {
    let (of, left) = (|| Label::from(&pool.label), pool.left.get());
    out.add(Of::Resends, [of()], sum.resent + left.resent);
    for (protocol, open) in ["h1", "h2"].into_iter().zip(sum.open) {
        out.add(Of::UpstreamOpen, [of(), protocol.into()], open);
    }
    out.add(Of::UpstreamStreams, [of()], sum.streams);
    if sum.has_tls {
        for (result, (now, left)) in
            OriginHandshake::ALL.iter().zip(sum.handshakes.iter().zip(left.handshakes))
        {
            out.add(Of::UpstreamHandshakes, [of(), result.name().into()], now + left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::panic_tests::serve;
    use crate::sync::slices::AT_ONCE;
    use std::time::Duration;

    const TARGETS: u32 = 3000;
    const LIMIT: Duration = Duration::from_secs(60);

    fn many() -> String {
        let pool = format!("pool({TARGETS}, lambda i: server(\"s%d\" % i, addr=\"127.0.0.1:%d\" % (1 + i)))");
        format!("listen(\"127.0.0.1:0\", lb.random({pool}))")
    }

    /// The sockets are polled after every few targets, in each of the passes over them.
    #[test]
    fn requests_are_served_between_slices() {
        let (running, _) = serve(&many());
        let asked = running.remote().process().ask_all_in_turns(LIMIT, |lp| async move {
            let before = lp.core.runtime.looks();
            let gathered = gather(&lp).await;
            (gathered.is_some(), lp.core.runtime.looks() - before)
        });
        let (gathered, turns) = asked[0].expect("an answer");
        assert!(gathered && turns >= u64::from(TARGETS) / AT_ONCE as u64, "{turns} turns");
        running.remote().drain();
    }

    #[test]
    fn a_later_scrape_ends_an_earlier_one() {
        let (running, _) = serve(&many());
        let asked = running.remote().process().ask_all_in_turns(LIMIT, |lp| async move {
            let mut first = Box::pin(gather(&lp));
            let begun = std::future::poll_fn(|cx| std::task::Poll::Ready(first.as_mut().poll(cx))).await;
            let second = gather(&lp).await;
            (begun.is_pending(), first.await.is_none(), second.is_some())
        });
        assert_eq!(asked[0], Some((true, true, true)));
        running.remote().drain();
    }
}
