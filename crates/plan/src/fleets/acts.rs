//! What the changes of a scenario do at instants that are known before a run, in words: for a person who checks a file.

use super::{Departure, StepKind, compact, schedule, templates};
use crate::duration::show_ns;
use crate::{Change, ChangeKind, First, Point, Scenario, Spec, label};

/// Something that a change does at an instant that no draw and no request decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedAct {
    /// When, ns from the start of the run.
    pub at_ns: u64,
    /// What, in words.
    pub what: String,
}

/// All that a scenario's changes do at known instants, in their order. Batches that wait for the one before, boots, drains and what
/// balancers see later are not among them.
#[must_use]
pub fn fixed_acts(point: &Point, scenario: &Scenario) -> Vec<FixedAct> {
    let point = compact(point);
    let Ok(schedule) = schedule(point, &scenario.events) else { return Vec::new() };
    let fleets: Vec<String> = templates(point)
        .into_iter()
        .map(|(_, id)| match point.spec(id) {
            Some(Spec::Fleet(fleet)) => fleet.label.clone(),
            _ => String::new(),
        })
        .collect();
    let waits =
        |change: &Change| matches!(change.what, ChangeKind::Rolling { more, .. } if more.wait.is_some());
    let act = |step: &super::Step| {
        let change = &scenario.events[step.change as usize];
        let is_fixed = step.part == 0 || !waits(change);
        is_fixed.then(|| FixedAct { at_ns: step.at_ns, what: describe(point, &fleets, step.what, change) })
    };
    schedule.steps.iter().filter_map(act).collect()
}

fn describe(point: &Point, fleets: &[String], what: StepKind, change: &Change) -> String {
    let name = |fleet: u32| fleets.get(fleet as usize).map_or("", String::as_str);
    let members = |of: Departure| format!("{} of {}", of.k, name(of.fleet));
    match what {
        StepKind::Move { leave: Some(leave), join: Some((into, _)), first } => {
            let by = if into == leave.fleet { String::new() } else { format!(" by {}", name(into)) };
            let order = if first == First::Leave { ", the old ones first" } else { "" };
            format!("{} replaced{by}{order}", members(leave))
        }
        StepKind::Move { leave: Some(leave), .. } => format!("{} leave", members(leave)),
        StepKind::Move { join: Some((fleet, k)), .. } => format!("{k} join {}", name(fleet)),
        StepKind::Move { .. } => String::new(),
        StepKind::Scale { fleet, to, .. } => format!("{} scaled to {to}", name(fleet)),
        StepKind::InPlace { of } => format!("{} replaced in place", members(of)),
        StepKind::Unlist { fleet, share } => format!("{} % of {} unlisted", share * 100.0, name(fleet)),
        StepKind::Relist { fleet } => format!("{} listed again", name(fleet)),
        StepKind::Down | StepKind::Repair | StepKind::Set | StepKind::Reset => {
            format!("{} {}", named(point, change), word(change, what))
        }
    }
}

/// What becomes of the nodes that a change names.
fn word(change: &Change, what: StepKind) -> String {
    match (change.what, what) {
        (ChangeKind::Down { mode, .. }, StepKind::Down) => format!("down ({})", mode.word()),
        (ChangeKind::Set { state, weight, .. }, StepKind::Set) => {
            let state = state.map(|state| format!("set to {}", state.word()));
            let weight = weight.map(|weight| format!("weight {weight}"));
            state.into_iter().chain(weight).collect::<Vec<_>>().join(", ")
        }
        (ChangeKind::Set { .. }, _) => "as before".to_owned(),
        _ => "up again".to_owned(),
    }
}

/// The nodes that a change names.
fn named(point: &Point, change: &Change) -> String {
    let name = |id| match point.spec(id) {
        Some(Spec::Fleet(fleet)) => fleet.label.clone(),
        _ => label(point, id),
    };
    let names: Vec<String> = change.nodes().take(3).map(name).collect();
    let more = if change.nodes().count() > names.len() { " and others" } else { "" };
    let k = match change.what {
        ChangeKind::Down { k: Some(k), .. } | ChangeKind::Set { k: Some(k), .. } => format!("{k} of "),
        _ => String::new(),
    };
    format!("{k}{}{more}", names.join(", "))
}

impl FixedAct {
    /// Its line: when, and what.
    #[must_use]
    pub fn when(&self) -> String {
        show_ns(i128::from(self.at_ns))
    }
}
