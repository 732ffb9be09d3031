//! The number of connections that a run should need: from its clients to the router's loops, and from each loop to each
//! server.
//!
//! Nothing that a request waits for hangs on them but the opening itself, which takes a tenth of a millisecond on
//! loopback. So they follow from when exchanges begin and end in the simulation, and the time to open them is reported
//! beside the statistics.

use crate::hops::CalibratedPoint;
use crate::prepare::Arrangement;
use std::collections::BTreeMap;
use weir_model::connections::{Exchange, opened};
use weir_model::draws::purpose;
use weir_model::loops;
use weir_plan::serving::named_server;
use weir_plan::{Edge, HttpVersion, NodeId, Origin, OriginProtocol, Point, Scenario, Spec};
use weir_policy::{Kind, TargetId};
use weir_sim::{History, Stage};
use weir_stats::Key;
use weir_workload::{Requests, reached_from};

/// Connections that were opened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionCounts {
    /// By clients, and by routers; `None`: unknown.
    pub client: Option<u64>,
    pub server: Option<u64>,
    /// Those of both that were opened by requests that count.
    pub selected: u64,
}

/// Predicts them for a replication (with this key) from its histories.
pub(crate) fn predicted(
    point: &Point,
    scenario: &Scenario,
    prepared: &Arrangement,
    slowed: &CalibratedPoint,
    key: Key,
    histories: &[History],
) -> ConnectionCounts {
    let Some(listen) = prepared.listen() else { return ConnectionCounts::default() };
    let loops = listen.loops.unwrap_or(1).max(1);
    let requests = Requests::new(scenario, key);
    let meets = |request| loops::met(loops, requests.open(request).way.with(purpose::MEETS));
    let server_of = servers(point, slowed, prepared);
    let (mut clients, mut servers) = (BTreeMap::new(), BTreeMap::new());
    for history in histories {
        let on = meets(history.request);
        let at = |ns: u64| history.arrived_ns.saturating_add(ns);
        let exchange = |(from, to), keeps| Exchange { begins_ns: at(from), ends_ns: at(to), keeps };
        let answered = exchange((0, history.latency_ns.unwrap_or(0)), history.latency_ns.is_some());
        let pool: &mut Vec<Exchange> = clients.entry(on).or_default();
        pool.push(Exchange { keeps: answered.keeps && history.outcome != Some(Kind::Cancelled), ..answered });
        for (key, visit) in visits(history, &server_of) {
            let pool: &mut Vec<Exchange> = servers.entry((on, key.server)).or_default();
            pool.push(exchange((visit.from_ns, visit.to_ns), visit.keeps));
        }
    }
    let since = histories.iter().filter(|h| h.selected).map(|h| h.arrived_ns);
    let (first, last) = since.fold((u64::MAX, 0), |(low, high), ns| (low.min(ns), high.max(ns)));
    let mut selected = 0;
    let mut all = |pools: Vec<Vec<Exchange>>, idle_ns| -> u64 {
        let opened = pools.into_iter().flat_map(|pool| opened(pool, idle_ns)).collect::<Vec<u64>>();
        selected += opened.iter().filter(|at| (first..=last).contains(at)).count() as u64;
        opened.len() as u64
    };
    let client = all(clients.into_values().collect(), listen.http.idle_timeout_ns);
    // Pools are of HTTP/1.1: one connection of HTTP/2 carries many requests.
    let origins: Vec<Origin> = servers.keys().map(|(_, server)| origin(point, *server)).collect();
    let is_multiplexed = origins.iter().any(|origin| origin.protocol == OriginProtocol::H2);
    let server = servers
        .into_values()
        .zip(origins)
        .map(|(pool, origin)| all(vec![pool], origin.idle_timeout_ns))
        .sum();
    // Connections of routers behind others are others' own.
    let is_h1 = listen.http.versions.contains(&HttpVersion::H1);
    let is_plain = prepared.inner().is_empty() && prepared.against.is_none() && !is_multiplexed;
    ConnectionCounts { client: is_h1.then_some(client), server: is_plain.then_some(server), selected }
}

/// How the built-in server that begins at a node is spoken to.
fn origin(point: &Point, first: NodeId) -> Origin {
    match named_server(point, first).and_then(|server| point.spec(server)) {
        Some(Spec::Server { origin, .. }) => origin.built_in(),
        _ => Origin::new(false),
    }
}

/// The time to open connections is not simulated; a warning says so when it is more than this share of the mean
/// latency.
const MATTERS: f64 = 0.005;

/// A warning if it matters: the share of requests that count that opened a connection, and the time of each.
pub(crate) fn matter(
    opened: u64,
    selected: u64,
    takes_ms: Option<f64>,
    mean_ms: Option<f64>,
) -> Option<String> {
    let each = opened as f64 / selected.max(1) as f64;
    let share = each * takes_ms? / mean_ms?;
    (share > MATTERS).then(|| {
        format!(
            "requests that count open {each:.2} connections each, and opening takes {:.2} ms, which is not simulated: {:.1} % of the \
             mean latency",
            takes_ms.unwrap_or_default(),
            share * 100.0
        )
    })
}

/// By node of the point, the server that it is a part of, with the hop there if there is one.
fn servers(point: &Point, slowed: &CalibratedPoint, prepared: &Arrangement) -> Vec<Option<NodeId>> {
    let with_hop = |(was, &server): (&NodeId, &NodeId)| {
        let hop = server + 1;
        let leads_there = point.nodes.get(hop as usize).is_some_and(|node| node.to == Edge::Node(server));
        (if leads_there && prepared.servers.binary_search(was).is_ok() { hop } else { server }, server)
    };
    reached_from(point, slowed.nodes.iter().map(with_hop))
}

/// The identity of a request's visit at a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct VisitKey {
    server: NodeId,
    attempt: u32,
    branch: u32,
    /// The balancer that sent it, and which of its targets the server is.
    target: Option<(NodeId, TargetId)>,
}

/// The time of a visit, ns after the request arrived.
struct Visit {
    from_ns: u64,
    to_ns: u64,
    /// Whether its connection can be used again.
    keeps: bool,
}

/// The visits of a request at servers.
fn visits(history: &History, server_of: &[Option<NodeId>]) -> BTreeMap<VisitKey, Visit> {
    let mut visits = BTreeMap::new();
    for stage in &history.stages {
        let Some(server) = server_of.get(stage.node as usize).copied().flatten() else { continue };
        let broken = [Kind::Cancelled, Kind::Reset, Kind::ConnectFailed, Kind::Lost];
        let keeps = !stage.outcome.flatten().is_some_and(|kind| broken.contains(&kind));
        let Stage { from_ns, to_ns, attempt, branch, target, .. } = *stage;
        let key = VisitKey { server, attempt, branch, target };
        let visit = visits.entry(key).or_insert(Visit { from_ns, to_ns, keeps });
        *visit = Visit {
            from_ns: visit.from_ns.min(from_ns),
            to_ns: visit.to_ns.max(to_ns),
            keeps: visit.keeps && keeps,
        };
    }
    visits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_opening_takes_is_said_where_it_matters() {
        assert_eq!(matter(10, 1000, Some(0.1), Some(50.0)), None);
        assert_eq!(matter(10, 1000, None, Some(50.0)), None);
        let said = matter(2000, 1000, Some(0.2), Some(20.0)).expect("it matters");
        assert!(said.contains("2.00 connections each") && said.contains("2.0 %"), "{said}");
    }
}
