//! Warnings about changes that took longer than the file says, or went no further.

use crate::code::Code;
use crate::code::changes::ChangeDelays;
use crate::results::summary::Replication;
use std::collections::BTreeSet;
use weir_plan::fleets::StepKind;
use weir_plan::{ChangeKind, Scenario, Wait};

/// A replacement halted, since a batch took too long: the first one.
pub(super) fn halted(scenario: &Scenario, code: &Code, runs: &[Replication]) -> Option<String> {
    let (change, count) = first(runs, |delays| &delays.halted)?;
    let wait = match scenario.events.get(change as usize)?.what {
        ChangeKind::Rolling { more, .. } => more.wait,
        _ => None,
    };
    let what = if wait == Some(Wait::Eligible) { "eligible everywhere" } else { "running" };
    Some(format!(
        "halted: the replacement of {} that begins at {} went no further in {count} of {} replications: a batch was not {what} \
         within 10 minutes, and the members behind it were not replaced",
        label(code, change),
        begins_at(scenario, change)?,
        runs.len()
    ))
}

/// A change waited for members that another one was still moving: the first one.
pub(super) fn held_up(scenario: &Scenario, code: &Code, runs: &[Replication]) -> Option<String> {
    let (change, count) = first(runs, |delays| &delays.held_up)?;
    Some(format!(
        "held up: the change of {} at {} found members that another change was still moving, and waited for their end, in \
         {count} of {} replications",
        label(code, change),
        begins_at(scenario, change)?,
        runs.len()
    ))
}

/// The first change of a kind, and in how many replications it is of that kind.
fn first(runs: &[Replication], of: impl Fn(&ChangeDelays) -> &BTreeSet<u32>) -> Option<(u32, usize)> {
    let change = *runs.iter().filter_map(|run| of(&run.delays).first()).min()?;
    Some((change, runs.iter().filter(|run| of(&run.delays).contains(&change)).count()))
}

/// The fleet that a change is about, in words.
fn label(code: &Code, change: u32) -> &str {
    let label = || {
        let tables = code.changes.as_deref()?;
        let what = tables.steps.iter().find(|step| step.change == change)?.what;
        let fleet = match what {
            StepKind::InPlace { of } => of.fleet,
            StepKind::Scale { fleet, .. } => fleet,
            StepKind::Move { leave, join, .. } => leave.map(|of| of.fleet).or(join.map(|(fleet, _)| fleet))?,
            _ => return None,
        };
        tables.fleets.get(fleet as usize).map(|fleet| fleet.label.as_str())
    };
    label().unwrap_or("a fleet")
}

/// When a change begins, in words.
fn begins_at(scenario: &Scenario, change: u32) -> Option<String> {
    Some(format!("{} s", scenario.events.get(change as usize)?.at_ns as f64 / 1e9))
}
