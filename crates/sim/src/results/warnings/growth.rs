//! Latencies that depend on how long the run is: queues that grow, and means that drift.

use super::Finished;
use crate::code::SiteId;
use crate::results::summary::Replication;
use weir_model::Traffic;
use weir_plan::{Faulty, Point, Spec, unbounded_sites};
use weir_stats::Estimate;

/// Above this utilisation a queue or server may be unable to keep up.
const BUSY: f64 = 0.98;
/// Answers that take longer than the arrivals by this share of their time are falling behind.
const BEHIND: f64 = 0.02;
/// The growth of the mean latency from the first to the second half of the window that deserves a warning.
const DRIFT: f64 = 0.1;

/// A warning about latencies that grow.
pub(super) enum Growth {
    Overload(String),
    Drift(String),
}

/// The warning about overload, or else about drift.
pub(super) fn find(finished: &Finished) -> Option<Growth> {
    if let Some((site, busy, behind)) = overloaded_site(finished) {
        let Point { nodes, specs, sites, .. } = finished.point;
        let shares = |spec: u32| matches!(specs[spec as usize], Spec::Concurrent { .. });
        let shared = nodes.iter().any(|n| n.site == site.0 && shares(n.spec));
        return Some(Growth::Overload(format!(
            "overloaded: the {} at {} is busy {:.1} % of the time and its queue keeps growing: answering all requests takes \
             {} as long as they took to arrive; latencies depend on how long the run is, not on the system",
            if shared { "server" } else { "queue" },
            sites[site.index()].label,
            100.0 * busy,
            format_args!("{:.*} times", if behind < 9.0 { 2 } else { 0 }, 1.0 + behind)
        )));
    }
    // Changes, and outages by a schedule, make the transient the question.
    if !finished.scenario.events.is_empty() {
        return None;
    }
    if super::faults(finished.point, &finished.program.code).any(Faulty::is_scheduled) {
        return None;
    }
    let growth = drift(finished.runs)?;
    Some(Growth::Drift(format!(
        "not settled: in the second half of the window the mean latency is {:.0} % {} than in the first; run longer \
         (--requests), or read the figures as those of a start-up, not of a steady state",
        100.0 * growth.abs(),
        if growth > 0.0 { "higher" } else { "lower" }
    )))
}

/// The busiest queue or server with an unbounded line, if it is always busy and answers fall behind requests.
fn overloaded_site(finished: &Finished) -> Option<(SiteId, f64, f64)> {
    let Finished { point, scenario, program, runs, .. } = finished;
    // In a closed loop users wait for their answers.
    if matches!(scenario.traffic, Traffic::Closed { .. }) {
        return None;
    }
    let busy = |row: usize| Estimate::new(runs.iter().map(|r| r.utilisation(row))).value;
    let rows = program.rows[..program.shown].iter().enumerate();
    let mut busy: Vec<(SiteId, f64)> = rows.filter_map(|(i, row)| Some((row.site(), busy(i)?))).collect();
    busy.retain(|(_, busy)| *busy > BUSY);
    let behind = beyond_chance(&Estimate::new(runs.iter().map(Replication::behind)), BEHIND)?;
    if behind < 0.0 || busy.is_empty() {
        return None;
    }
    if let Some(unbounded) = unbounded_sites(point, scenario) {
        busy.retain(|(site, _)| unbounded.contains(&(site.index() as u32)));
    }
    let (site, busy) = busy.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((site, busy, behind))
}

/// By how much the mean latency of the second half exceeds that of the first, if it is significant and large enough
/// to report.
fn drift(runs: &[Replication]) -> Option<f64> {
    let growth = |r: &Replication| match r.halves() {
        [Some(first), Some(second)] if first > 0.0 => Some(second / first - 1.0),
        _ => None,
    };
    beyond_chance(&Estimate::new(runs.iter().map(growth)), DRIFT)
}

/// The mean change, if it is at least `least` and more than chance.
fn beyond_chance(change: &Estimate, least: f64) -> Option<f64> {
    let value = change.value?;
    let certain = match (change.low, change.high) {
        (Some(low), Some(high)) => low > 0.0 || high < 0.0,
        // A single replication has no interval; then only a change that cannot be chance counts.
        _ => value.abs() > 5.0 * least,
    };
    (value.abs() > least && certain).then_some(value)
}
