//! The number of connections from clients to the router's loops that a run should need. Nothing that a request waits for hangs
//! on them but the opening itself, which takes a tenth of a millisecond on loopback and is not simulated. So they follow from when
//! requests begin and end in the simulation.

use crate::prepare::Arrangement;
use std::collections::BTreeMap;
use weir_model::draws::purpose;
use weir_model::exchanges::{Exchange, opened};
use weir_model::loops;
use weir_plan::{HttpVersion, Scenario};
use weir_policy::Kind;
use weir_sim::History;
use weir_stats::Key;
use weir_workload::Requests;

/// Connections that clients open in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientConnections {
    /// All; `None`: unknown.
    pub all: Option<u64>,
    /// Those that were opened by requests that count.
    pub selected: u64,
}

/// Predicts them for a replication (with this key) from its histories.
pub(crate) fn predicted(
    scenario: &Scenario,
    prepared: &Arrangement,
    key: Key,
    histories: &[History],
) -> ClientConnections {
    let Some(listen) = prepared.listen() else { return ClientConnections::default() };
    let loops = listen.loops.unwrap_or(1).max(1);
    let requests = Requests::new(scenario, key);
    let meets = |request| loops::met(loops, requests.open(request).way.with(purpose::MEETS));
    let mut clients: BTreeMap<u32, Vec<Exchange>> = BTreeMap::new();
    for history in histories {
        let begins_ns = history.arrived_ns;
        let ends_ns = begins_ns.saturating_add(history.latency_ns.unwrap_or(0));
        let keeps = history.latency_ns.is_some() && history.outcome != Some(Kind::Cancelled);
        clients.entry(meets(history.request)).or_default().push(Exchange { begins_ns, ends_ns, keeps });
    }
    let since = histories.iter().filter(|h| h.selected).map(|h| h.arrived_ns);
    let (first, last) = since.fold((u64::MAX, 0), |(low, high), ns| (low.min(ns), high.max(ns)));
    let pools = clients.into_values();
    let opened: Vec<u64> = pools.flat_map(|pool| opened(pool, listen.http.idle_timeout_ns)).collect();
    // One connection of HTTP/2 carries many.
    let is_h1 = listen.http.versions.contains(&HttpVersion::H1);
    ClientConnections {
        all: is_h1.then_some(opened.len() as u64),
        selected: opened.iter().filter(|at| (first..=last).contains(at)).count() as u64,
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
            "the clients of requests that count open {each:.2} connections each, and opening takes {:.2} ms, which is not simulated: {:.1} % of the \
             mean latency",
            takes_ms.unwrap_or_default(),
            share * 100.0
        )
    })
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
