//! The connections of a result: their number, openings and ends per second, and how evenly they are spread.

use crate::account::ledger::Ledger;
use crate::code::Code;
use crate::state::connections::ConnectionTotals;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weir_model::connections::{Count, End};
use weir_stats::Estimate;

/// Connections to servers: of a scenario, to the servers of a row, or from the listeners of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Connections {
    /// How many there are, averaged over the time between the window's first and last arrival.
    pub open: Estimate,
    /// The most at one instant of any replication, from its start on.
    pub peak: u64,
    /// Openings per second of that time.
    pub opened_per_s: Estimate,
    /// Those of them by TLS.
    pub handshakes_per_s: Estimate,
    /// Ends per second, by reason, in the order of [`End::ALL`].
    pub closed_per_s: [Estimate; End::ALL.len()],
    /// Share of the requests that came to a server and found a connection.
    pub reused: Estimate,
    /// Requests on a connection that has any.
    pub streams: Estimate,
    /// Connections per member, each averaged over the time that it was there: least, most (over all replications).
    pub spread_min: Option<f64>,
    /// See `spread_min`.
    pub spread_max: Option<f64>,
    /// Their coefficient of variation.
    pub spread_cv: Estimate,
    /// By replication: how many were opened from its start to its end, and how many were open when the last request that counts
    /// arrived. Empty of a row.
    pub runs: Vec<(u64, u64)>,
}

/// What is kept of a replication.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ConnectionSums {
    /// The time that the figures are of, ns.
    ns: u64,
    open: f64,
    /// Connections with requests, and these, on average.
    busy: f64,
    requests: f64,
    peak: u64,
    opened: u64,
    handshakes: u64,
    closed: [u64; End::ALL.len()],
    came: u64,
    found: u64,
    spread: Option<(f64, f64, f64)>,
}

impl ConnectionSums {
    fn new(count: &Count, ns: u64, members: &[f64]) -> ConnectionSums {
        let over = |integral: i128| if ns > 0 { integral as f64 / ns as f64 } else { 0.0 };
        ConnectionSums {
            ns,
            open: over(count.open_ns),
            busy: over(count.busy_ns),
            requests: over(count.requests_ns),
            peak: count.peak,
            opened: count.opened,
            handshakes: count.handshakes,
            closed: count.closed,
            came: count.came,
            found: count.found,
            spread: spread(members),
        }
    }

    /// How many there are on average.
    pub fn open(&self) -> Option<f64> {
        (self.ns > 0).then_some(self.open)
    }

    /// How many are opened per second.
    pub fn opened_per_s(&self) -> Option<f64> {
        self.per_s(self.opened)
    }

    fn per_s(&self, n: u64) -> Option<f64> {
        (self.ns > 0).then(|| n as f64 / (self.ns as f64 / 1e9))
    }
}

/// Least, most, coefficient of variation.
fn spread(members: &[f64]) -> Option<(f64, f64, f64)> {
    let n = members.len() as f64;
    let least = members.iter().copied().reduce(f64::min)?;
    let most = members.iter().copied().reduce(f64::max)?;
    let mean = members.iter().sum::<f64>() / n;
    let variance = members.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
    let cv = if mean > 0.0 && least < most { variance.sqrt() / mean } else { 0.0 };
    Some((least, most, cv))
}

/// The sums of a scenario.
pub(crate) fn of_scenario(ledger: &Ledger) -> Option<ConnectionSums> {
    let totals = ledger.connections.as_deref()?;
    let count = between(totals, 0)?;
    let ns = length(ledger);
    let whole = ConnectionSums::new(&count, ns, &[]);
    Some(ConnectionSums { spread: spread(&[whole.open]), ..whole })
}

/// The sums of a row of these nodes, which are all of a site or one of it; `None`: they are no servers or listeners that have
/// connections.
pub(crate) fn of_row(code: &Code, ledger: &Ledger, nodes: &[u32]) -> Option<ConnectionSums> {
    let (tables, totals) = (code.connections.as_deref()?, ledger.connections.as_deref()?);
    let group = tables.group_of(nodes)?;
    let count = between(totals, group as usize)?;
    let set: BTreeSet<u32> = nodes.iter().copied().collect();
    let [from_ns, to_ns] = ledger.marked_ns;
    let average = |node: u32, [then, now]: [i128; 2]| {
        let changes = code.changes.as_deref();
        let there = changes.map_or(length(ledger), |c| ledger.attendance.within(c, node, from_ns, to_ns));
        (there > 0).then(|| (now - then) as f64 / there as f64)
    };
    let [first, last] = &totals.marks;
    let servers = tables.servers_among(&set);
    let servers = servers.filter_map(|(at, node)| average(node, [first.servers_ns[at], last.servers_ns[at]]));
    let listeners = tables.listeners_among(&set);
    let listeners =
        listeners.filter_map(|(at, node)| average(node, [first.instances_ns[at], last.instances_ns[at]]));
    let members: Vec<f64> = servers.chain(listeners).collect();
    Some(ConnectionSums::new(&count, length(ledger), &members))
}

fn between(totals: &ConnectionTotals, group: usize) -> Option<Count> {
    let [first, last] = &totals.marks;
    Some(last.groups.get(group)?.since(first.groups.get(group)?))
}

fn length(ledger: &Ledger) -> u64 {
    ledger.marked_ns[1].saturating_sub(ledger.marked_ns[0])
}

/// A figure of each replication, and the estimate that it gives: `over("connections.open", ...)`.
pub(crate) type Over<'a> = dyn FnMut(&'static str, &dyn Fn(&ConnectionSums) -> Option<f64>) -> Estimate + 'a;

/// What replications give together; `None`: nothing has connections.
pub(crate) fn estimated(all: &[Option<&ConnectionSums>], over: &mut Over<'_>) -> Option<Connections> {
    let sums: Vec<&ConnectionSums> =
        all.iter().copied().collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())?;
    let mut closed_per_s = [Estimate::default(); End::ALL.len()];
    for (at, of) in closed_per_s.iter_mut().enumerate() {
        *of = over(CLOSED[at], &|s| s.per_s(s.closed[at]));
    }
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    Some(Connections {
        open: over("connections.open", &ConnectionSums::open),
        peak: sums.iter().map(|s| s.peak).max().unwrap_or(0),
        opened_per_s: over("connections.opened_per_s", &ConnectionSums::opened_per_s),
        handshakes_per_s: over("connections.handshakes_per_s", &|s| s.per_s(s.handshakes)),
        closed_per_s,
        reused: over("connections.reused", &|s| share(s.found as f64, s.came as f64)),
        streams: over("connections.streams", &|s| share(s.requests, s.busy)),
        spread_min: sums.iter().filter_map(|s| s.spread).map(|spread| spread.0).reduce(f64::min),
        spread_max: sums.iter().filter_map(|s| s.spread).map(|spread| spread.1).reduce(f64::max),
        spread_cv: over("connections.spread.cv", &|s| s.spread.map(|spread| spread.2)),
        runs: Vec::new(),
    })
}

/// The paths of the estimates of ends, in the order of [`End::ALL`].
pub const CLOSED: [&str; End::ALL.len()] = [
    "connections.closed_per_s.exchange",
    "connections.closed_per_s.origin",
    "connections.closed_per_s.idle",
    "connections.closed_per_s.age",
    "connections.closed_per_s.spare",
];
