//! The expectations of a file about a scenario, and whether they hold: the whole interval must meet the condition.

use crate::code::StageId;
use crate::code::watch::WatchedSite;
use crate::results::replicate::Program;
use crate::results::result::{ExpectationResult, ScenarioResult};
use crate::results::rows::{Row, RowKind};
use crate::results::summary::Replication;
use crate::results::watch;
use weir_plan::{Condition, Metric, Point, Scenario};
use weir_stats::{Estimate, clopper_pearson};

const NS_PER_MS: f64 = 1e6;

/// The expectations of a point about a scenario, condition by condition.
pub(crate) fn judged(
    point: &Point,
    scenario: &Scenario,
    program: &Program,
    runs: &[Replication],
    result: &ScenarioResult,
) -> Vec<ExpectationResult> {
    let of_it = point.expectations.iter().filter(|e| e.scenario == scenario.name);
    let conditions = of_it.flat_map(|e| e.conditions.iter().map(move |c| (e, c)));
    conditions
        .map(|(e, condition)| {
            let value = match (condition.metric, &e.node) {
                (Metric::Errors(kind), _) => {
                    let over = Estimate::new(runs.iter().map(|r| r.share_of(kind)));
                    counted(over, runs.iter().map(|r| r.failed_with(kind)).sum(), result.requests.selected)
                }
                (Metric::Success, _) => counted(result.success, result.requests.ok, result.requests.selected),
                (Metric::Utilisation | Metric::WaitMs, Some(node)) => {
                    let rows =
                        program.expected.iter().filter(|of| of.name == *node && of.what != RowKind::Held);
                    let rows: Vec<(usize, &Row, bool)> =
                        rows.map(|of| (of.row, &program.rows[of.row], of.what == RowKind::Shares)).collect();
                    Estimate::new(runs.iter().map(|r| at_rows(program, &rows, r, condition.metric)))
                }
                (metric @ (Metric::Connections | Metric::OpenedPerS), Some(node)) => {
                    let rows =
                        program.expected.iter().filter(|of| of.name == *node && of.what == RowKind::Held);
                    let rows: Vec<usize> = rows.map(|of| of.row).collect();
                    Estimate::new(runs.iter().map(|r| held(&rows, r, metric)))
                }
                (Metric::Regained, Some(node)) => {
                    let sites = beginners(program, node, runs);
                    Estimate::new(runs.iter().map(|r| regained_ms(&sites, r)))
                }
                (metric, _) => result.estimate(metric),
            };
            let node = e.node.as_ref().map_or(String::new(), |node| format!(" at {node}"));
            ExpectationResult {
                expect: format!("{condition}{node}"),
                holds: holds(condition, &value),
                value,
                metric: condition.metric,
                span: e.span.clone(),
            }
        })
        .collect()
}

/// A share that `k` of `n` requests have, with the wider of its interval over replications and the exact binomial one:
/// if no request failed, all replications agree, and only the binomial interval shows how little few requests prove. A
/// single replication (`over` has no interval) has the binomial bounds, each of them one-sided.
pub(crate) fn counted(over: Estimate, k: u64, n: u64) -> Estimate {
    let tail = if over.low.is_none() { 0.05 } else { 0.025 };
    let (low, high) = clopper_pearson(k, n, tail);
    Estimate {
        value: over.value,
        low: over.value.map(|_| over.low.map_or(low, |of| of.min(low))),
        high: over.value.map(|_| over.high.map_or(high, |of| of.max(high))),
    }
}

/// Whether the whole interval meets the condition; `None`: only a part of it does, or its width is unknown.
fn holds(condition: &Condition, e: &Estimate) -> Option<bool> {
    let (low, high) = (condition.is_met(e.low?), condition.is_met(e.high?));
    (low == high).then_some(low)
}

/// The value of a replication for these rows together: busy slots over all slots, or the mean wait of an entry.
fn at_rows(program: &Program, rows: &[(usize, &Row, bool)], r: &Replication, metric: Metric) -> Option<f64> {
    let (mut sum, mut weight) = (0.0, 0.0);
    for (index, row, shares) in rows {
        match metric {
            Metric::Utilisation => {
                let slots = slots(program, row);
                sum += r.utilisation(*index)? * slots;
                weight += slots;
            }
            _ => {
                let (ns, entries) = r.waited(*index, *shares)?;
                sum += ns as f64 / NS_PER_MS;
                weight += entries as f64;
            }
        }
    }
    (weight > 0.0).then(|| sum / weight)
}

/// Connections of these rows together, or how many are opened per second.
fn held(rows: &[usize], r: &Replication, metric: Metric) -> Option<f64> {
    let of = |row: &usize| r.connections(*row, metric == Metric::OpenedPerS);
    rows.iter().map(of).sum()
}

/// The watched members that are called so and that begin to run during the first replication.
fn beginners(program: &Program, node: &str, runs: &[Replication]) -> Vec<usize> {
    let sites = program.code.watch.as_deref().map_or(&[][..], |tables| &tables.sites);
    let acts = runs.first().and_then(|r| r.parts.as_ref()).map_or(&[][..], |parts| &parts.acts);
    let begins = |site: &WatchedSite| site.names.contains(node) && watch::begins(site.member, acts);
    (0..sites.len()).filter(|at| begins(&sites[*at])).collect()
}

/// How long after it runs (anew) the last of these members has its share again, ms; `None` if one of them never has.
fn regained_ms(sites: &[usize], r: &Replication) -> Option<f64> {
    let all: Option<Vec<f64>> = sites.iter().map(|site| r.regained_s(*site)).collect();
    all?.into_iter().reduce(f64::max).map(|s| s * 1e3)
}

fn slots(program: &Program, row: &Row) -> f64 {
    let of = |(stage, member): &(StageId, Option<u32>)| {
        let stage = &program.code.stages[stage.index()];
        stage.slots * if member.is_some() { 1.0 } else { stage.nodes.len() as f64 }
    };
    row.parts().iter().map(of).sum()
}
