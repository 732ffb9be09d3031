//! Changes that happen when nothing counts, or to no balancer.

use super::{placed, warning};
use crate::diagnostic::{Diagnostic, Location};
use crate::fleets::{Step, schedule};
use crate::{Change, ChangeKind, Edge, First, NodeId, Point, Scenario, Spec, Window};
use std::collections::HashMap;
use weir_model::Traffic;

/// Warnings about the changes of all scenarios; `places` has those of the changes in the text. In a point before the
/// members of fleets are made.
pub fn changes(compact: &Point, places: &HashMap<String, Location>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for scenario in compact.scenarios.iter().filter(|s| !s.events.is_empty()) {
        let of = |change: &Change, message: String, help: &str| {
            placed(warning(message).help(help), places.get(&change.span))
        };
        for change in &scenario.events {
            if let Some((what, help)) = misses_balancers(compact, scenario, change) {
                let message = format!("in scenario \"{}\" no balancer has {what}", scenario.name);
                found.push(of(change, message, help));
            }
        }
        let Some((first_ns, last_ns)) = arrivals(scenario) else { continue };
        for change in scenario.events.iter().filter(|change| change.at_ns > last_ns) {
            let message = format!(
                "scenario \"{}\" is over before this: its last request arrives at some {}",
                scenario.name,
                seconds(last_ns)
            );
            found.push(of(change, message, "give the scenario more `requests` or a longer `duration`"));
        }
        let Ok(schedule) = schedule(compact, &scenario.events) else { continue };
        for (change, number) in scenario.events.iter().zip(0..) {
            let own = || schedule.steps.iter().filter(|step| step.change == number);
            let last = own().map(|step| step.at_ns).max().unwrap_or(change.at_ns);
            let begins_ns = match waits(change) {
                true => awaited_ns(compact, change, own().count()),
                false => last,
            };
            let found_here = deploys(compact, change, begins_ns, last_ns);
            found.extend(found_here.into_iter().map(|(message, help)| {
                of(change, format!("in scenario \"{}\" {message}", scenario.name), help)
            }));
        }
        let (from_ns, to_ns) = window(scenario, first_ns, last_ns);
        // A batch that waits for the one before comes some time later.
        let may_come = |step: &Step| {
            step.at_ns <= to_ns && (step.at_ns >= from_ns || waits(&scenario.events[step.change as usize]))
        };
        let counts = schedule.steps.iter().any(may_come);
        let is_late = scenario.events.iter().any(|change| change.at_ns > last_ns);
        if let (false, false, Some(change)) = (counts, is_late, scenario.events.first()) {
            let message = format!(
                "all changes of scenario \"{}\" are outside of its window, which is from some {} to {}",
                scenario.name,
                seconds(from_ns),
                seconds(to_ns)
            );
            found.push(of(change, message, "write `window=\"all\"`, or change the fleet at another time"));
        }
    }
    found
}

/// What of a change concerns no balancer, and a help.
fn misses_balancers(
    compact: &Point,
    scenario: &Scenario,
    change: &Change,
) -> Option<(&'static str, &'static str)> {
    let is_picked = |fleet: NodeId| is_picked(compact, scenario, fleet);
    let help = "give the fleet to a balancer that the scenario's requests come to";
    match change.what {
        ChangeKind::Down { .. } => None,
        ChangeKind::Set { .. } => change.nodes().any(|id| !is_target(compact, id)).then_some((
            "one of these nodes as a target: its state and weight have no effect",
            "name a target of a balancer, or a fleet",
        )),
        _ if !is_picked(change.fleet) => Some(("this fleet: the change has no effect", help)),
        ChangeKind::Rolling { into: Some(into), .. } if !is_picked(into) => {
            Some(("the fleet of `into`: its newcomers get no requests", help))
        }
        _ => None,
    }
}

/// Whether the batches of a change wait for each other.
fn waits(change: &Change) -> bool {
    matches!(change.what, ChangeKind::Rolling { more, .. } if more.wait.is_some())
}

/// When the last of these batches begins at the earliest, ns, if each waits for the one before.
fn awaited_ns(compact: &Point, change: &Change, batches: usize) -> u64 {
    let ChangeKind::Rolling { every_ns, more, .. } = change.what else { return change.at_ns };
    let runs_ns = more.down_ns.saturating_add(boot_ns(compact, change));
    let each_ns = every_ns.max(runs_ns);
    change.at_ns.saturating_add(each_ns.saturating_mul(batches.saturating_sub(1) as u64))
}

/// How long a newcomer of the fleet boots on average, ns.
fn boot_ns(compact: &Point, change: &Change) -> u64 {
    let Some(Spec::Fleet(fleet)) = compact.spec(change.fleet) else { return 0 };
    let mean_ns = fleet.life.as_ref().and_then(|life| life.boot.mean_ns());
    mean_ns.filter(|mean| mean.is_finite()).unwrap_or(0.0) as u64
}

/// What is probably wrong with the replacement of processes whose last batch begins at `begins_ns`: a message and a help.
fn deploys(compact: &Point, change: &Change, begins_ns: u64, last_ns: u64) -> Vec<(String, &'static str)> {
    let Some(Spec::Fleet(fleet)) = compact.spec(change.fleet) else { return Vec::new() };
    let ChangeKind::Rolling { batch, first, more, .. } = change.what else { return Vec::new() };
    if fleet.life.is_none() && first != First::InPlace {
        return Vec::new();
    }
    let mut found = Vec::new();
    let life = fleet.life.clone().unwrap_or_default();
    let count = more.count.unwrap_or(fleet.size);
    if first != First::Join && batch >= fleet.size && count >= fleet.size && fleet.size > 1 {
        let message = format!(
            "all {} members of this fleet go at once: none serves until the first has booted",
            fleet.size
        );
        found.push((message, "write a smaller `batch`, or `first=\"join\"`"));
    }
    if !more.is_unlisted && life.drain_ns.is_none() {
        let message =
            "a member that stays listed is stopped only when nothing is inside, and balancers go on sending";
        found.push((message.to_owned(), "give the fleet `life=life(drain=10*s)`"));
    }
    let runs_ns = begins_ns.saturating_add(more.down_ns).saturating_add(boot_ns(compact, change));
    if change.at_ns <= last_ns && runs_ns > last_ns {
        let message = format!(
            "this does not end: the last batch runs at some {} at the earliest, and the last request arrives at some {}",
            seconds(runs_ns),
            seconds(last_ns)
        );
        found.push((
            message,
            "give the scenario more `requests` or a longer `duration`, or write a shorter `every` or `boot`",
        ));
    }
    found
}

/// Whether a node, or its weight, is a target of any balancer.
fn is_target(compact: &Point, id: NodeId) -> bool {
    let is_it = |target: &NodeId| {
        let node = &compact.nodes[*target as usize];
        let is_weight = matches!(compact.spec(*target), Some(Spec::Weight { .. }));
        *target == id || is_weight && node.to == Edge::Node(id)
    };
    (0..).zip(&compact.nodes).any(|(lb, node)| match node.to {
        Edge::List(list) if matches!(compact.spec(lb), Some(Spec::Lb(_))) => {
            compact.lists[list as usize].iter().any(is_it)
        }
        _ => false,
    })
}

/// Whether a scenario's requests come to a balancer over that fleet, or over its weight.
fn is_picked(compact: &Point, scenario: &Scenario, fleet: NodeId) -> bool {
    crate::reach::Reach::new(compact, scenario.root).index(fleet).is_some()
}

/// When requests arrive from and to, ns: expected, where it is drawn.
fn arrivals(scenario: &Scenario) -> Option<(u64, u64)> {
    let gap_ns = match &scenario.traffic {
        Traffic::Poisson { gap_ns } | Traffic::Constant { gap_ns } => Some(*gap_ns),
        Traffic::Renewal { gap } => gap.mean_ns().filter(|mean| mean.is_finite()),
        Traffic::Trace { arrivals_ns, .. } => return Some((*arrivals_ns.first()?, *arrivals_ns.last()?)),
        _ => None,
    };
    // Where gaps are drawn, the run is over ten standard deviations later than expected.
    let is_drawn = !matches!(scenario.traffic, Traffic::Constant { .. });
    let slack = |n: f64| if is_drawn { 10.0 * n.sqrt() } else { 0.0 };
    let by_number = gap_ns.zip(scenario.requests).map(|(gap_ns, n)| {
        let n = n as f64;
        ((n + slack(n)) * gap_ns).min(u64::MAX as f64) as u64
    });
    let last = by_number.into_iter().chain(scenario.duration_ns).min()?;
    Some((0, last))
}

fn window(scenario: &Scenario, first_ns: u64, last_ns: u64) -> (u64, u64) {
    let quarter = (last_ns - first_ns) / 4;
    match scenario.window {
        Window::Middle => (first_ns + quarter, last_ns - quarter),
        Window::Auto | Window::All => (0, last_ns),
        Window::Between(from_ns, to_ns) => (from_ns, to_ns - 1),
    }
}

fn seconds(ns: u64) -> String {
    crate::duration::show_ns(i128::from(ns / 1_000_000 * 1_000_000))
}
