//! The expectations of a file about a scenario, and whether they hold: the whole interval must meet the condition.

use crate::code::StageId;
use crate::results::replicate::Program;
use crate::results::result::{ExpectationResult, ScenarioResult};
use crate::results::summary::{Replication, Row};
use weir_plan::{Condition, Metric, Point, Scenario, Spec};
use weir_stats::Estimate;

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
                (Metric::Errors(kind), _) => Estimate::new(runs.iter().map(|r| r.share_of(kind))),
                (Metric::Utilisation | Metric::WaitMs, Some(node)) => {
                    let rows = rows(point, program, node);
                    Estimate::new(runs.iter().map(|r| at_rows(program, &rows, r, condition.metric)))
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

/// Whether the whole interval meets the condition; `None`: only a part of it does, or its width is unknown.
fn holds(condition: &Condition, e: &Estimate) -> Option<bool> {
    let (low, high) = (condition.is_met(e.low?), condition.is_met(e.high?));
    (low == high).then_some(low)
}

/// The rows of the queues (or servers that share their cores) with that name, and whether they share.
fn rows<'p>(point: &Point, program: &'p Program, node: &str) -> Vec<(usize, &'p Row, bool)> {
    let named = |row: &Row| {
        let (stage, member) = *row.parts().first()?;
        let stage = &program.code.stages[stage.index()];
        let id = *stage.nodes.get(member.unwrap_or(0) as usize)?;
        let found = &point.nodes[id as usize];
        (found.name.as_deref() == Some(node)).then_some(&point.specs[found.spec as usize])
    };
    let wanted = |(index, row): (usize, &'p Row)| match named(row)? {
        Spec::Queue { .. } => Some((index, row, false)),
        Spec::Concurrent { .. } => Some((index, row, true)),
        _ => None,
    };
    program.rows.iter().enumerate().filter_map(wanted).collect()
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

fn slots(program: &Program, row: &Row) -> f64 {
    let of = |(stage, member): &(StageId, Option<u32>)| {
        let stage = &program.code.stages[stage.index()];
        stage.slots * if member.is_some() { 1.0 } else { stage.nodes.len() as f64 }
    };
    row.parts().iter().map(of).sum()
}
