//! From the sums of replications to a result: estimates with intervals, one row per site or member.

use crate::code::Code;
use crate::ledger::{KINDS, Ledger};
use crate::result::{NodeResult, Requests, ScenarioResult};
use crate::run::{Finished, Program};
use weir_policy::Kind;
use weir_stats::{Estimate, Histogram, Latency};
use weir_topology::plan::{Point, Scenario, Spec};

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// A line of the result: the stages (all members of each, or one) that it sums.
pub(crate) struct Row {
    site: u32,
    /// Stage, and the index of one member in it.
    parts: Vec<(u32, Option<u32>)>,
}

/// The rows of a compiled scenario: one per site in order of the request's way, or one per member.
pub(crate) fn rows(code: &Code) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for &stage in &code.order {
        let site = code.stages[stage as usize].site;
        if code.mask != 0 {
            let members = code.stages[stage as usize].nodes.len() as u32;
            rows.extend((0..members).map(|m| Row { site, parts: vec![(stage, Some(m))] }));
        } else if let Some(row) = rows.iter_mut().find(|r| r.site == site) {
            row.parts.push((stage, None));
        } else {
            rows.push(Row { site, parts: vec![(stage, None)] });
        }
    }
    rows
}

/// What one replication says of a row.
#[derive(Clone, Default)]
struct RowSums {
    requests: u64,
    /// Entries that the stage itself turned away.
    refused: u64,
    /// By kind; empty if there are none.
    errors: Vec<u64>,
    /// Time that is part of latencies, and all time of its requests.
    part_ns: u64,
    time_ns: u64,
    /// Entries that got a slot.
    started: u64,
    served_ns: u64,
    /// Slot time over window and slots; time in line over window and members; the most in line.
    utilisation: Option<f64>,
    queue_mean: Option<f64>,
    queue_max: u64,
    spread: (f64, f64, f64),
}

/// What is kept of a replication.
pub(crate) struct Replication {
    /// Events that it took.
    pub events: u64,
    pub total: u64,
    pub selected: u64,
    /// Those of them that are not lost.
    answered: u64,
    ok: u64,
    errors: [u64; KINDS],
    good: u64,
    extra_attempts: u64,
    window_ns: u64,
    ends_ns: u64,
    all: Latencies,
    successes: Latencies,
    halves: [Option<f64>; 2],
    rows: Vec<RowSums>,
    /// How often nodes failed.
    pub outages: u64,
    /// Attempts made only because requests are taken as GET.
    pub as_get: u64,
    /// Broken laws; empty in a sound weir.
    pub violations: Vec<String>,
}

struct Latencies {
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    quantiles: [Option<f64>; 5],
}

impl Latencies {
    fn of(h: &Histogram) -> Latencies {
        let ms = |ns: f64| ns / NS_PER_MS;
        Latencies {
            min: h.min().map(|ns| ms(ns as f64)),
            max: h.max().map(|ns| ms(ns as f64)),
            mean: h.mean().map(ms),
            quantiles: [0.5, 0.9, 0.95, 0.99, 0.999].map(|q| h.quantile(q).map(ms)),
        }
    }
}

/// Sums up a finished replication.
pub(crate) fn replication(program: &Program, finished: &Finished) -> Replication {
    let Program { code, rows, .. } = program;
    let Finished { ledger, window_ns, violations } = finished;
    let window_ns = *window_ns;
    let mut all = ledger.ok.clone();
    all.merge(&ledger.failed);
    Replication {
        events: ledger.events,
        total: ledger.arrived,
        selected: all.count() + ledger.errors[Kind::Lost as usize],
        answered: all.count(),
        ok: ledger.ok.count(),
        errors: ledger.errors,
        good: ledger.good,
        extra_attempts: ledger.extra_attempts,
        window_ns,
        ends_ns: ledger.last_end.saturating_sub(ledger.first_end),
        all: Latencies::of(&all),
        successes: Latencies::of(&ledger.ok),
        halves: ledger.halves.map(|(sum, n)| (n > 0).then(|| sum as f64 / n as f64)),
        rows: rows.iter().map(|row| row_sums(code, row, ledger)).collect(),
        outages: ledger.outages,
        as_get: ledger.as_get,
        violations: violations.clone(),
    }
}

fn row_sums(code: &Code, row: &Row, ledger: &Ledger) -> RowSums {
    let marked_ns = ledger.marked_ns[1].saturating_sub(ledger.marked_ns[0]);
    let mut sums = RowSums::default();
    let (mut busy, mut waiting, mut slots, mut queues) = (0.0, 0.0, 0.0, 0.0);
    let (mut n, mut least, mut most, mut squares) = (0u64, u64::MAX, 0u64, 0.0);
    for &(s, one) in &row.parts {
        let stage = &code.stages[s as usize];
        let base = code.blocks[stage.block as usize].base;
        let members = match one {
            Some(member) => member..member + 1,
            None => 0..stage.nodes.len() as u32,
        };
        let at = |offset: u32| offset.wrapping_add((base + members.start) & code.mask) as usize;
        let part = at(stage.part);
        sums.part_ns += ledger.parts[part];
        sums.time_ns += ledger.parts[part].wrapping_add(ledger.spent.get(part).copied().unwrap_or(0));
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
            sums.served_ns += ledger.gauges[gauge].served;
            sums.started += ledger.gauges[gauge].started;
            queues += f64::from(members.end - members.start);
            slots += f64::from(members.end - members.start) * stage.slots;
        }
        for member in members {
            let e = ledger.entries_at(code, stage, member);
            sums.requests += e;
            sums.refused += stage.refusals.map_or(0, |offset| {
                u64::from(ledger.refusals[(base + member).wrapping_add(offset) as usize])
            });
            (n, least, most) = (n + 1, least.min(e), most.max(e));
            squares += (e as f64) * (e as f64);
        }
    }
    if marked_ns > 0 && slots > 0.0 {
        sums.utilisation = Some(busy / (marked_ns as f64 * slots));
        sums.queue_mean = Some(waiting / (marked_ns as f64 * queues));
    }
    let mean = sums.requests as f64 / n.max(1) as f64;
    // Exact in whole numbers where they are equal; rounding of the squares must not show as spread.
    let variance = if least == most { 0.0 } else { (squares / n.max(1) as f64 - mean * mean).max(0.0) };
    let cv = if mean > 0.0 { variance.sqrt() / mean } else { 0.0 };
    sums.spread = (least as f64, most as f64, cv);
    sums
}

/// The result of a scenario from its replications, in their order.
pub(crate) fn scenario(
    point: &Point,
    scenario: &Scenario,
    program: &Program,
    runs: &[Replication],
) -> ScenarioResult {
    let Program { code, rows, .. } = program;
    let over = |f: &dyn Fn(&Replication) -> Option<f64>| Estimate::of(runs.iter().map(f));
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let per_s = |count: u64, ns: u64| (ns > 0).then(|| count as f64 / (ns as f64 / NS_PER_S));
    let errors = kinds(|k| runs.iter().map(|r| r.errors[k]).sum());
    let (selected, ok) = (runs.iter().map(|r| r.selected).sum(), runs.iter().map(|r| r.ok).sum());
    ScenarioResult {
        name: scenario.name.clone(),
        params: point.params.clone(),
        requests: Requests {
            total: runs.iter().map(|r| r.total).sum(),
            selected,
            ok,
            failed: selected - ok,
            errors,
        },
        success: over(&|r| share(r.ok, r.selected)),
        goodput_per_s: over(&|r| per_s(r.good, r.window_ns)),
        request_rate_per_s: over(&|r| per_s(r.selected, r.window_ns)),
        response_rate_per_s: over(&|r| per_s(r.selected, r.ends_ns)),
        attempts_per_request: over(&|r| share(r.selected + r.extra_attempts, r.selected)),
        latency_all: latency(runs, |r| &r.all),
        latency_ok: latency(runs, |r| &r.successes),
        nodes: rows.iter().enumerate().map(|(i, row)| node(point, program, row, i, runs)).collect(),
        warnings: crate::warnings::of(point, scenario, code, rows, runs),
    }
}

fn kinds(count: impl Fn(usize) -> u64) -> Vec<(Kind, u64)> {
    Kind::ALL.into_iter().map(|k| (k, count(k as usize))).filter(|(_, n)| *n > 0).collect()
}

fn latency(runs: &[Replication], of: impl Fn(&Replication) -> &Latencies) -> Latency {
    let quantile = |i: usize| Estimate::of(runs.iter().map(|r| of(r).quantiles[i]));
    Latency {
        min: runs.iter().filter_map(|r| of(r).min).reduce(f64::min),
        mean: Estimate::of(runs.iter().map(|r| of(r).mean)),
        p50: quantile(0),
        p90: quantile(1),
        p95: quantile(2),
        p99: quantile(3),
        p999: quantile(4),
        max: runs.iter().filter_map(|r| of(r).max).reduce(f64::max),
    }
}

fn node(point: &Point, program: &Program, row: &Row, index: usize, runs: &[Replication]) -> NodeResult {
    let code = &program.code;
    let over = |f: &dyn Fn(&RowSums, &Replication) -> Option<f64>| {
        Estimate::of(runs.iter().map(|r| f(&r.rows[index], r)))
    };
    let per = |ns: u64, entries: u64| (entries > 0).then(|| ns as f64 / NS_PER_MS / entries as f64);
    let nodes = || {
        row.parts.iter().flat_map(|&(s, one)| {
            let nodes = &code.stages[s as usize].nodes;
            match one {
                Some(m) => &nodes[m as usize..=m as usize],
                None => &nodes[..],
            }
        })
    };
    let count = nodes().count() as u64;
    let spec = |id: &u32| &point.specs[point.nodes[*id as usize].spec as usize];
    let first = nodes().next().map(spec);
    let kind = first.map_or("", Spec::kind);
    let shares = matches!(first, Some(Spec::Concurrent { .. }));
    let queue = shares || matches!(first, Some(Spec::Queue { .. }));
    let delay = matches!(first, Some(Spec::Delay { .. }));
    // Who was turned away did not wait.
    let wait = |r: &RowSums| per(r.time_ns - if shares { r.served_ns } else { 0 }, r.requests - r.refused);
    let service = |r: &RowSums| per(r.served_ns, r.started);
    let mut names = nodes().map(|id| point.nodes[*id as usize].name.as_deref());
    let first = names.next().flatten();
    let name = if names.all(|n| n == first) { first.unwrap_or(kind) } else { kind };
    let nothing = Estimate::default();
    NodeResult {
        id: if count == 1 { nodes().next().copied() } else { None },
        name: name.to_string(),
        kind: kind.to_string(),
        place: point.sites[row.site as usize].label.clone(),
        count,
        requests: runs.iter().map(|r| r.rows[index].requests).sum(),
        errors: kinds(|k| runs.iter().filter_map(|r| r.rows[index].errors.get(k)).sum()),
        utilisation: if queue { over(&|r, _| r.utilisation) } else { nothing },
        queue_mean: if queue { over(&|r, _| r.queue_mean) } else { nothing },
        queue_max: queue.then(|| runs.iter().map(|r| r.rows[index].queue_max).max()).flatten(),
        wait_ms: if queue { over(&|r, _| wait(r)) } else { nothing },
        service_ms: match (queue, delay) {
            (true, _) => over(&|r, _| service(r)),
            (_, true) => over(&|r, _| per(r.time_ns, r.requests)),
            _ => nothing,
        },
        latency_part_ms: over(&|row, r| {
            (r.answered > 0).then(|| row.part_ns as f64 / NS_PER_MS / r.answered as f64)
        }),
        spread_min: runs.iter().map(|r| r.rows[index].spread.0).reduce(f64::min),
        spread_max: runs.iter().map(|r| r.rows[index].spread.1).reduce(f64::max),
        spread_cv: over(&|r, _| Some(r.spread.2)),
    }
}

impl Replication {
    /// Selected requests that nothing ever answered.
    pub fn lost(&self) -> u64 {
        self.errors[Kind::Lost as usize]
    }

    /// Mean latency of the window's first and second half, ns.
    pub fn halves(&self) -> [Option<f64>; 2] {
        self.halves
    }

    /// Utilisation of a row's queues.
    pub fn utilisation(&self, row: usize) -> Option<f64> {
        self.rows[row].utilisation
    }
}

impl Row {
    /// Whether its queues turn requests away.
    pub fn is_bounded(&self, point: &Point, code: &Code) -> bool {
        let spec = |stage: u32| &point.specs[code.stages[stage as usize].spec as usize];
        self.parts.iter().any(|&(stage, _)| matches!(spec(stage), Spec::Queue { capacity: Some(_), .. }))
    }

    /// The site that it stands for.
    pub fn site(&self) -> u32 {
        self.site
    }
}
