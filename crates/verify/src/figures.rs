//! What one replication, or one run, says: the same figures of both worlds.

use crate::part::Row;
use crate::prepare::Arrangement;
use crate::trial::RunOutcome;
use std::collections::BTreeMap;
use weir_plan::NodeId;
use weir_policy::Kind;
use weir_sim::ScenarioResult;
use weir_stats::Histogram;

/// Figures of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    /// Latencies of all requests that count, ms: the mean and the [`QUANTILES`].
    pub mean: Option<f64>,
    pub quantiles: [Option<f64>; 5],
    /// How many requests count.
    pub requests: u64,
    /// The share of requests that succeeded.
    pub success: Option<f64>,
    /// Attempts per request.
    pub attempts: Option<f64>,
    /// How often balancers ejected a target.
    pub ejections: f64,
    /// Connections that clients opened; `None`: that is not known.
    pub from_clients: Option<f64>,
    /// Those that routers opened, and that were open when the last request that counts arrived.
    pub to_servers: Option<[f64; 2]>,
    /// Of all requests that came to a server, the share of each.
    pub shares: BTreeMap<NodeId, f64>,
}

/// The quantiles that are known in both worlds.
pub(crate) const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

impl Figures {
    /// Those of a simulated replication.
    pub fn simulated(result: &ScenarioResult, servers: &BTreeMap<NodeId, NodeId>) -> Figures {
        let latency = &result.latency_all;
        let by_node: BTreeMap<NodeId, u64> =
            result.nodes.iter().filter_map(|node| Some((node.id?, node.requests))).collect();
        let requests = |(server, simulated): (&NodeId, &NodeId)| {
            (*server, by_node.get(simulated).copied().unwrap_or_default())
        };
        Figures {
            mean: latency.mean.value,
            quantiles: [&latency.p50, &latency.p90, &latency.p95, &latency.p99, &latency.p999]
                .map(|e| e.value),
            requests: result.requests.selected,
            success: result.success.value,
            attempts: result.attempts_per_request.value,
            ejections: result.ejections as f64,
            from_clients: None,
            to_servers: result.connections.as_ref().and_then(|held| {
                let (opened, open) = held.runs.first()?;
                Some([*opened as f64, *open as f64])
            }),
            shares: shares(servers.iter().map(requests)),
        }
    }

    /// Those of a run. Without `patience` a request that was given up at the load's limit has no latency, as one that
    /// is lost.
    pub fn real(real: &RunOutcome, prepared: &Arrangement, patience: bool) -> Figures {
        // At the outermost listener results tell the kind itself: a client takes 404 or 429 for an answer.
        let outermost = real.routed.iter().filter(|row| !row.inner && row.server.is_none());
        let kinds: BTreeMap<u64, Kind> =
            outermost.filter_map(|row| Some((row.request.0, row.error?))).collect();
        let mut latencies = Histogram::new();
        let (mut selected, mut ok) = (0u64, 0u64);
        for row in real.load.rows.iter().filter(|row| row.selected) {
            selected += 1;
            ok += u64::from(row.error.is_none() && !kinds.contains_key(&row.request));
            if patience || row.error != Some(Kind::Timeout) {
                latencies.record(row.ended_ns.saturating_sub(row.intended_ns));
            }
        }
        let quantile = |q: f64| latencies.quantile(q).map(|ns| ns / 1e6);
        // Another proxy does not report its attempts: they are the requests that reached the servers.
        let attempts: u64 = if prepared.against.is_some() {
            real.served.iter().filter(|row| row.request.1).count() as u64
        } else {
            // Those of routers behind others are further ones.
            let made = |row: &Row| u64::from(row.attempts.max(1)) - u64::from(row.inner);
            real.routed.iter().filter(|row| row.request.1).map(made).sum()
        };
        let mut at: BTreeMap<NodeId, u64> = prepared.compared().map(|server| (server, 0)).collect();
        let served = real.served.iter().filter(|row| row.request.1);
        let served = served.filter_map(|row| Some((row.server?, 1)));
        for (server, requests) in served.chain(real.sent.iter().copied()) {
            if let Some(n) = at.get_mut(&server) {
                *n += requests;
            }
        }
        let per = |n: u64| (selected > 0).then(|| n as f64 / selected as f64);
        Figures {
            mean: latencies.mean().map(|ns| ns / 1e6),
            quantiles: QUANTILES.map(quantile),
            requests: selected,
            success: per(ok),
            attempts: per(attempts),
            ejections: real.ejections as f64,
            from_clients: Some(real.load.connections as f64),
            to_servers: real.connections.map(|of| [of.opened as f64, of.open as f64]),
            shares: shares(at),
        }
    }
}

/// The mean of several replications of the same requests; what one of them cannot say, it cannot.
pub(crate) fn mean(all: &[Figures]) -> Figures {
    let n = all.len() as f64;
    let of = |pick: &dyn Fn(&Figures) -> Option<f64>| Some(all.iter().map(pick).sum::<Option<f64>>()? / n);
    let servers = all.first().into_iter().flat_map(|first| first.shares.keys());
    let share = |server: &NodeId| of(&|f: &Figures| f.shares.get(server).copied()).unwrap_or_default();
    Figures {
        mean: of(&|f| f.mean),
        quantiles: std::array::from_fn(|i| of(&|f: &Figures| f.quantiles[i])),
        requests: all.iter().map(|f| f.requests).sum::<u64>() / all.len().max(1) as u64,
        success: of(&|f| f.success),
        attempts: of(&|f| f.attempts),
        ejections: of(&|f| Some(f.ejections)).unwrap_or_default(),
        from_clients: of(&|f| f.from_clients),
        to_servers: of(&|f| f.to_servers.map(|s| s[0]))
            .zip(of(&|f| f.to_servers.map(|s| s[1])))
            .map(Into::into),
        shares: servers.map(|server| (*server, share(server))).collect(),
    }
}

fn shares(requests: impl IntoIterator<Item = (NodeId, u64)>) -> BTreeMap<NodeId, f64> {
    let requests: BTreeMap<NodeId, u64> = requests.into_iter().collect();
    let all: u64 = requests.values().sum();
    requests.into_iter().map(|(server, n)| (server, n as f64 / all.max(1) as f64)).collect()
}
