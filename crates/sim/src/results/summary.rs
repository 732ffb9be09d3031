//! From the sums of replications to a result: estimates with intervals, one row per site or member.

use crate::account::entries::Entries;
use crate::account::ledger::{KINDS, Ledger};
use crate::account::settle::SettlingPoint;
use crate::code::Code;
use crate::code::MemberId;
use crate::code::changes::ChangeDelays;
use crate::results::connections::{self, ConnectionSums, Connections};
use crate::results::expect;
use crate::results::job::JobOptions;
use crate::results::latency::{self, LatencySummary, Pooled, ReplicationLatency};
use crate::results::over_time::{self, OverTime, PartFigures, PooledSlices, Regained};
use crate::results::replicate::{FinishedRun, Program};
use crate::results::result::{NodeResult, ReplicationValues, Requests, ScenarioResult};
use crate::results::rows::Row;
use crate::results::warnings::{self, Finished};
use crate::results::watch;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use weir_plan::hash::requests_hash;
use weir_plan::{Point, Scenario, Spec};
use weir_policy::Kind;
use weir_stats::Estimate;

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// The sums of one replication for a row.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RowSums {
    requests: u64,
    /// Entries that the stage itself refused.
    refused: u64,
    /// By kind; empty if there are no errors.
    errors: Vec<u64>,
    /// Time that is part of latencies, and all time that requests spent there.
    part_ns: u64,
    time_ns: u64,
    /// Entries that got a slot.
    started: u64,
    served_ns: u64,
    /// Slot time over window and slots; waiting time over window and members; the longest line.
    utilisation: Option<f64>,
    queue_mean: Option<f64>,
    queue_max: u64,
    spread: Option<(f64, f64, f64)>,
    /// Nodes of members that never were.
    vacant: u64,
    /// Connections to its servers, or of its listeners.
    connections: Option<Box<ConnectionSums>>,
}

/// What is kept of a replication.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Replication {
    /// Events that it processed.
    pub events: u64,
    pub total: u64,
    pub selected: u64,
    /// Selected requests that are not lost.
    answered: u64,
    ok: u64,
    errors: [u64; KINDS],
    /// Ends of any requests between the window's first and last arrival, and successes within the deadline among them.
    ends: [u64; 2],
    extra_attempts: u64,
    window_ns: u64,
    ends_ns: u64,
    all: ReplicationLatency,
    successes: ReplicationLatency,
    halves: [Option<f64>; 2],
    /// Whether sums of times over the whole run are exact; if not, no figure is derived from them.
    exact: bool,
    rows: Vec<RowSums>,
    /// How often nodes failed.
    pub outages: u64,
    /// How often balancers ejected a target.
    ejections: u64,
    /// The changes that took longer than they say.
    #[serde(default)]
    pub delays: ChangeDelays,
    /// Attempts made only because requests are taken as GET.
    pub as_get: u64,
    /// Connections to all servers; and how many were opened in the whole run, and were open at the window's end.
    connections: Option<Box<ConnectionSums>>,
    pub opened: Option<(u64, u64)>,
    /// Where it settled, if that was requested.
    pub settled: Option<SettlingPoint>,
    /// Figures of its own parts, where it has results over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Box<PartFigures>>,
    /// Broken laws; empty in a sound weir.
    pub violations: Vec<String>,
}

/// Sums up a finished replication. `settled`: where its scenario settles, if that was requested.
pub(crate) fn replication(
    program: &Program,
    ran: &FinishedRun,
    settled: Option<SettlingPoint>,
) -> Replication {
    let Program { code, rows, .. } = program;
    let FinishedRun { ledger, window_ns, violations } = ran;
    let window_ns = *window_ns;
    let mut all = ledger.ok.clone();
    all.merge(&ledger.failed);
    let entries = Entries::new(code, ledger);
    Replication {
        events: ledger.events,
        total: ledger.arrived,
        selected: all.count() + ledger.errors[Kind::Lost as usize],
        answered: all.count(),
        ok: ledger.ok.count(),
        errors: ledger.errors,
        ends: ledger.ends.between(),
        extra_attempts: ledger.extra_attempts,
        window_ns,
        ends_ns: ledger.last_end.saturating_sub(ledger.first_end),
        successes: ReplicationLatency::new(&ledger.ok),
        halves: ledger.halves.map(|(sum, n)| (n > 0).then(|| sum as f64 / n as f64)),
        exact: ledger.is_exact_over(ledger.over) && all.sum() <= u128::from(u64::MAX),
        all: ReplicationLatency::new(&all),
        rows: rows.iter().map(|row| row_sums(code, row, ledger, &entries)).collect(),
        outages: ledger.outages,
        ejections: ledger.ejections,
        delays: ledger.delays.clone(),
        as_get: ledger.as_get,
        connections: connections::of_scenario(ledger).map(Box::new),
        opened: ledger
            .connections
            .as_deref()
            .map(|of| (of.run.opened, of.marks[1].groups.first().map_or(0, |all| all.left))),
        settled,
        parts: None,
        violations: violations.clone(),
    }
}

fn row_sums(code: &Code, row: &Row, ledger: &Ledger, entries: &Entries) -> RowSums {
    let marked_ns = ledger.marked_ns[1].saturating_sub(ledger.marked_ns[0]);
    let mut sums = RowSums::default();
    let (mut busy, mut waiting, mut slots, mut queues) = (0.0, 0.0, 0.0, 0.0);
    let (mut n, mut sum, mut least, mut most, mut squares) = (0u64, 0u64, u64::MAX, 0u64, 0.0);
    for &(s, one) in row.parts() {
        let stage = &code.stages[s.index()];
        let base = code.blocks[stage.block as usize].base;
        let members = match one {
            Some(member) => member..member + 1,
            None => 0..stage.nodes.len() as u32,
        };
        let at = |offset: u32| offset.wrapping_add((base + members.start) & code.mask) as usize;
        let part = at(stage.part);
        sums.part_ns = sums.part_ns.wrapping_add(ledger.parts[part]);
        let spent = ledger.spent.get(part).copied().unwrap_or(0);
        sums.time_ns = sums.time_ns.wrapping_add(ledger.parts[part]).wrapping_add(spent);
        if let Some(errors) = ledger.stage_errors.get(part * KINDS..(part + 1) * KINDS)
            && errors.iter().any(|e| *e > 0)
        {
            sums.errors.resize(KINDS, 0);
            sums.errors.iter_mut().zip(errors).for_each(|(sum, e)| *sum += e);
        }
        if let Some(gauge) = stage.gauge {
            let gauge = at(gauge);
            let [first, last] = &ledger.marks;
            let between = |a: &[u64], b: &[u64]| b[gauge].wrapping_sub(a[gauge]) as f64;
            busy += between(&first.busy, &last.busy);
            waiting += between(&first.waiting, &last.waiting);
            sums.queue_max = sums.queue_max.max(u64::from(last.most[gauge]));
            sums.served_ns = sums.served_ns.wrapping_add(ledger.gauges[gauge].served);
            sums.started += ledger.gauges[gauge].started;
            let there = presence(code, ledger, &stage.nodes[members.start as usize..members.end as usize]);
            queues += there;
            slots += there * stage.slots;
        }
        sums.vacant += vacancies(code, ledger, &stage.nodes[members.start as usize..members.end as usize]);
        for index in members {
            let e = entries.get(s, index);
            sums.requests += e;
            sums.refused +=
                stage.refusals.map_or(0, |offset| ledger.refusals[MemberId(base + index).index_from(offset)]);
            if !is_spread(code, ledger, stage.nodes[index as usize]) {
                continue;
            }
            (n, least, most) = (n + 1, least.min(e), most.max(e));
            (sum, squares) = (sum + e, squares + (e as f64) * (e as f64));
        }
    }
    let is_known = !ledger.is_marked_late && ledger.is_exact_over(marked_ns);
    if marked_ns > 0 && slots > 0.0 && is_known {
        sums.utilisation = Some(busy / (marked_ns as f64 * slots));
        sums.queue_mean = Some(waiting / (marked_ns as f64 * queues));
    }
    let mean = sum as f64 / n.max(1) as f64;
    // Where all are equal the spread is exactly zero; rounding of the squares must not show as spread.
    let variance = if least == most { 0.0 } else { (squares / n.max(1) as f64 - mean * mean).max(0.0) };
    let cv = if mean > 0.0 { variance.sqrt() / mean } else { 0.0 };
    sums.spread = (n > 0).then_some((least as f64, most as f64, cv));
    sums.connections = connections::of_row(code, ledger, &row.nodes(code)).map(Box::new);
    sums
}

/// How many of these nodes were there on average, between the window's first and last arrival.
fn presence(code: &Code, ledger: &Ledger, nodes: &[u32]) -> f64 {
    let Some(changes) = code.changes.as_deref() else { return nodes.len() as f64 };
    let [from_ns, to_ns] = ledger.marked_ns;
    let there = |node: &u32| ledger.attendance.within(changes, *node, from_ns, to_ns);
    let sum_ns: u64 = nodes.iter().map(there).sum();
    sum_ns as f64 / to_ns.saturating_sub(from_ns).max(1) as f64
}

/// How many of these nodes are of members that never were.
fn vacancies(code: &Code, ledger: &Ledger, nodes: &[u32]) -> u64 {
    let Some(changes) = code.changes.as_deref() else { return 0 };
    nodes.iter().filter(|node| ledger.attendance.presence(changes, **node).is_none()).count() as u64
}

/// Whether a node counts in the spread of its row: not a member of a fleet that was listed for a part of the window only.
fn is_spread(code: &Code, ledger: &Ledger, node: u32) -> bool {
    let [from_ns, to_ns] = ledger.marked_ns;
    code.changes.as_deref().is_none_or(|changes| ledger.attendance.is_listed(changes, node, from_ns, to_ns))
}

/// What is pooled over replications: latencies, and the parts of runs with results over time.
pub(crate) struct PooledRuns<'a> {
    pub latencies: Pooled,
    pub slices: Option<&'a PooledSlices>,
}

/// The result of a scenario from its replications, in their order.
pub(crate) fn scenario(
    point: &Point,
    scenario: &Scenario,
    program: &Program,
    runs: &[Replication],
    pooled: PooledRuns<'_>,
    asked: JobOptions,
    keep: bool,
) -> ScenarioResult {
    let rows = &program.rows[..program.shown];
    let mut each = ReplicationValues::new();
    let mut over = |path: &'static str, f: &dyn Fn(&Replication) -> Option<f64>| {
        kept(path, runs.iter().map(f), keep.then_some(&mut each))
    };
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let PooledRuns { latencies, slices } = pooled;
    let (pooled_ok, pooled_all) = latencies.into_parts();
    let own: Vec<&ReplicationLatency> = runs.iter().map(|r| &r.all).collect();
    let LatencySummary { latency: latency_all, curve: curve_all, too_short } =
        LatencySummary::new(&pooled_all, &own);
    let successes: Vec<&ReplicationLatency> = runs.iter().map(|r| &r.successes).collect();
    let LatencySummary { latency: latency_ok, curve: curve_ok, .. } =
        LatencySummary::new(&pooled_ok, &successes);
    let finished = Finished { point, scenario, program, runs, asked, too_short: &too_short };
    let found = warnings::find(&finished);
    let mut result = ScenarioResult {
        name: scenario.name.clone(),
        finished: None,
        params: point.params.clone(),
        requests_hash: requests_hash(scenario, asked.requests, asked.seed),
        requests: requests(runs),
        success: over("success", &|r| share(r.ok, r.selected)),
        // All over one time: overload delays answers, it does not make more of them, and one late answer is no time in
        // which nothing came back.
        goodput_per_s: over("goodput_per_s", &|r| per_s(r.ends[1], r.window_ns)),
        request_rate_per_s: over("request_rate_per_s", &|r| per_s(r.selected, r.window_ns)),
        response_rate_per_s: over("response_rate_per_s", &|r| per_s(r.ends[0], r.window_ns)),
        attempts_per_request: over("attempts_per_request", &|r| {
            share(r.selected + r.extra_attempts, r.selected)
        }),
        ejections: runs.iter().map(|r| r.ejections).sum(),
        latency_all,
        latency_ok,
        curve_all,
        curve_ok,
        connections: {
            let sums: Vec<Option<&ConnectionSums>> = runs.iter().map(|r| r.connections.as_deref()).collect();
            connections::estimated(&sums, &mut |path, f| {
                over(path, &|r| r.connections.as_deref().and_then(f))
            })
            .map(|held| Connections { runs: runs.iter().filter_map(|r| r.opened).collect(), ..held })
        },
        nodes: rows.iter().enumerate().map(|(i, row)| node(point, program, row, i, runs, keep)).collect(),
        warnings: found.warnings,
        needs_times: found.needs_times,
        too_short,
        expectations: Vec::new(),
        each: ReplicationValues::new(),
        over_time: over_time(point, scenario, program, runs, slices, keep.then_some(&mut each)),
        explained: None,
    };
    if keep {
        each.extend(latency_values(ALL, &own).chain(latency_values(OK, &successes)));
    }
    result.each = each;
    result.expectations = expect::judged(point, scenario, program, runs, &result);
    result
}

/// The scenario over time, if that is wanted and any replication has finished.
fn over_time(
    point: &Point,
    scenario: &Scenario,
    program: &Program,
    runs: &[Replication],
    slices: Option<&PooledSlices>,
    mut room: Option<&mut ReplicationValues>,
) -> Option<OverTime> {
    let (slices, code) = (slices?, &program.code);
    let mut found = OverTime::of_slices(scenario.every_ns?, &slices.all, code.connections.is_some());
    for (figure, path) in over_time::PEAKS.into_iter().enumerate() {
        found.peak[figure] = kept(path, runs.iter().map(|run| run.peak_ms(figure)), room.as_deref_mut());
    }
    let Some(tables) = code.watch.as_deref() else { return Some(found) };
    let acts = runs.first().and_then(|run| run.parts.as_ref()).map_or(&[][..], |parts| &parts.acts);
    watch::add_members(&mut found, tables, code, point, &slices.members, acts);
    for (index, site) in tables.sites.iter().enumerate().filter(|(_, site)| watch::begins(site.member, acts))
    {
        let value = Estimate::new(runs.iter().map(|run| run.regained_s(index)));
        found.regained.push(Regained { node: site.node.clone(), value });
    }
    Some(found)
}

/// The counts of a scenario's requests.
fn requests(runs: &[Replication]) -> Requests {
    let sum = |count: &dyn Fn(&Replication) -> u64| runs.iter().map(count).sum::<u64>();
    let (selected, ok) = (sum(&|r| r.selected), sum(&|r| r.ok));
    let errors = kinds(|k| sum(&|r| r.errors[k]));
    Requests { total: sum(&|r| r.total), selected, ok, failed: selected - ok, errors }
}

/// The latencies of single replications, by their paths in the JSON, which are in `paths`.
fn latency_values(
    paths: [&'static str; 6],
    own: &[&ReplicationLatency],
) -> impl Iterator<Item = (&'static str, Vec<f64>)> + use<> {
    let path = move |name: &str| paths.into_iter().find(|path| path.ends_with(name));
    latency::each(own).into_iter().filter_map(move |(name, values)| Some((path(name)?, values)))
}

/// The paths of the latencies in the JSON.
const ALL: [&str; 6] = [
    "latency_ms.all.mean",
    "latency_ms.all.p50",
    "latency_ms.all.p90",
    "latency_ms.all.p95",
    "latency_ms.all.p99",
    "latency_ms.all.p999",
];
const OK: [&str; 6] = [
    "latency_ms.ok.mean",
    "latency_ms.ok.p50",
    "latency_ms.ok.p90",
    "latency_ms.ok.p95",
    "latency_ms.ok.p99",
    "latency_ms.ok.p999",
];

/// The estimate of these values; `room` keeps the values themselves.
fn kept(
    path: &'static str,
    values: impl Iterator<Item = Option<f64>>,
    room: Option<&mut ReplicationValues>,
) -> Estimate {
    let values: Option<Vec<f64>> = values.collect();
    let Some(values) = values else { return Estimate::default() };
    let estimate = Estimate::new(values.iter().copied().map(Some));
    if let (Some(room), Some(_)) = (room, estimate.value) {
        room.insert(path, values);
    }
    estimate
}

fn per_s(count: u64, ns: u64) -> Option<f64> {
    (ns > 0).then(|| count as f64 / (ns as f64 / NS_PER_S))
}

fn kinds(count: impl Fn(usize) -> u64) -> Vec<(Kind, u64)> {
    Kind::ALL.into_iter().map(|k| (k, count(k as usize))).filter(|(_, n)| *n > 0).collect()
}

fn node(
    point: &Point,
    program: &Program,
    row: &Row,
    index: usize,
    runs: &[Replication],
    keep: bool,
) -> NodeResult {
    let each = RefCell::new(ReplicationValues::new());
    let over = |path: &'static str, f: &dyn Fn(&RowSums, &Replication) -> Option<f64>| {
        let values = runs.iter().map(|r| f(&r.rows[index], r));
        kept(path, values, keep.then_some(&mut *each.borrow_mut()))
    };
    let timed = |path: &'static str, f: &dyn Fn(&RowSums, &Replication) -> Option<f64>| {
        over(path, &|row, r| if r.exact { f(row, r) } else { None })
    };
    let per = |ns: u64, entries: u64| (entries > 0).then(|| ns as f64 / NS_PER_MS / entries as f64);
    let nodes = row.nodes(&program.code);
    let vacant = runs.iter().map(|r| r.rows[index].vacant).min().unwrap_or_default();
    let count = nodes.len() as u64 - vacant;
    let first = nodes.first().map(|id| &point.specs[point.nodes[*id as usize].spec as usize]);
    let kind = first.map_or("", Spec::kind);
    let shares = matches!(first, Some(Spec::Concurrent { .. }));
    let queue = shares || matches!(first, Some(Spec::Queue { .. }));
    let delay = matches!(first, Some(Spec::Delay { .. }));
    // A refused request did not wait.
    let wait = |r: &RowSums| {
        per(r.time_ns.wrapping_sub(if shares { r.served_ns } else { 0 }), r.requests - r.refused)
    };
    let service = |r: &RowSums| per(r.served_ns, r.started);
    let nothing = Estimate::default();
    NodeResult {
        id: nodes.first().filter(|_| nodes.len() == 1).map(|id| program.number(*id)),
        name: common_name(point, &nodes).unwrap_or(kind).to_string(),
        kind: kind.to_string(),
        place: point.sites[row.site().index()].label.clone(),
        count,
        requests: runs.iter().map(|r| r.rows[index].requests).sum(),
        errors: kinds(|k| runs.iter().filter_map(|r| r.rows[index].errors.get(k)).sum()),
        utilisation: if queue { over("utilisation", &|r, _| r.utilisation) } else { nothing },
        queue_mean: if queue { over("queue.mean", &|r, _| r.queue_mean) } else { nothing },
        queue_max: queue.then(|| runs.iter().map(|r| r.rows[index].queue_max).max()).flatten(),
        wait_ms: if queue { timed("wait_ms", &|r, _| wait(r)) } else { nothing },
        service_ms: match (queue, delay) {
            (true, _) => timed("service_ms", &|r, _| service(r)),
            (_, true) => timed("service_ms", &|r, _| per(r.time_ns, r.requests)),
            _ => nothing,
        },
        latency_part_ms: timed("latency_part_ms", &|row, r| {
            (r.answered > 0).then(|| row.part_ns as f64 / NS_PER_MS / r.answered as f64)
        }),
        spread_min: runs.iter().filter_map(|r| r.rows[index].spread).map(|spread| spread.0).reduce(f64::min),
        spread_max: runs.iter().filter_map(|r| r.rows[index].spread).map(|spread| spread.1).reduce(f64::max),
        spread_cv: over("spread.cv", &|r, _| r.spread.map(|spread| spread.2)),
        connections: {
            let sums: Vec<Option<&ConnectionSums>> =
                runs.iter().map(|r| r.rows[index].connections.as_deref()).collect();
            connections::estimated(&sums, &mut |path, f| {
                over(path, &|row, _| row.connections.as_deref().and_then(f))
            })
        },
        each: each.into_inner(),
    }
}

/// The name that all of these nodes have, if they have the same.
fn common_name<'p>(point: &'p Point, nodes: &[u32]) -> Option<&'p str> {
    let mut names = nodes.iter().map(|id| point.nodes[*id as usize].name.as_deref());
    let first = names.next().flatten();
    if names.all(|name| name == first) { first } else { None }
}

impl Replication {
    /// Selected requests that were never answered.
    pub fn lost(&self) -> u64 {
        self.errors[Kind::Lost as usize]
    }

    /// Mean latency in the first and the second half of the window, ns.
    pub fn halves(&self) -> [Option<f64>; 2] {
        self.halves
    }

    /// By what share of the time of the window's arrivals their answers took longer.
    pub fn behind(&self) -> Option<f64> {
        (self.window_ns > 0).then(|| self.ends_ns as f64 / self.window_ns as f64 - 1.0)
    }

    /// Whether sums of times are exact.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// The greatest of a part, ms, of that figure among [`FIGURES`].
    pub fn peak_ms(&self, figure: usize) -> Option<f64> {
        self.parts.as_ref().and_then(|parts| parts.peaks_ms[figure])
    }

    /// How long after it runs (anew) a watched member has its share again, s.
    pub fn regained_s(&self, site: usize) -> Option<f64> {
        self.parts.as_ref()?.regained_s.get(site).copied().flatten()
    }

    /// Selected requests that failed with `kind`.
    pub fn failed_with(&self, kind: Kind) -> u64 {
        self.errors[kind as usize]
    }

    /// Their share of all selected requests.
    pub fn share_of(&self, kind: Kind) -> Option<f64> {
        (self.selected > 0).then(|| self.failed_with(kind) as f64 / self.selected as f64)
    }

    /// The time that requests waited at a row's queues or servers, ns, and how many waited; `None` where it is not
    /// known exactly. `shares`: its servers share their cores, so not all time there is waiting.
    pub fn waited(&self, row: usize, shares: bool) -> Option<(u64, u64)> {
        let r = &self.rows[row];
        let ns = r.time_ns.wrapping_sub(if shares { r.served_ns } else { 0 });
        self.exact.then_some((ns, r.requests - r.refused))
    }

    /// The share of selected requests that succeeded.
    pub fn success(&self) -> Option<f64> {
        (self.selected > 0).then(|| self.ok as f64 / self.selected as f64)
    }

    /// How long requests arrived from the start of the run, s, if they went on as they did in the window.
    pub fn arrivals_s(&self) -> Option<f64> {
        (self.selected > 0)
            .then(|| self.window_ns as f64 / NS_PER_S * self.total as f64 / self.selected as f64)
    }

    /// Connections of a row on average, or how many are opened per second.
    pub fn connections(&self, row: usize, opened_per_s: bool) -> Option<f64> {
        let sums = self.rows[row].connections.as_deref()?;
        if opened_per_s { sums.opened_per_s() } else { sums.open() }
    }

    /// How many requests wait at each of a row's queues or servers, in the mean.
    pub fn queue_mean(&self, row: usize) -> Option<f64> {
        self.rows[row].queue_mean
    }

    /// How long a row's queues or servers serve a request, s, in the mean.
    pub fn service_s(&self, row: usize) -> Option<f64> {
        let r = &self.rows[row];
        (self.exact && r.started > 0).then(|| r.served_ns as f64 / NS_PER_S / r.started as f64)
    }

    /// Utilisation of a row's queues or servers.
    pub fn utilisation(&self, row: usize) -> Option<f64> {
        self.rows[row].utilisation
    }
}
