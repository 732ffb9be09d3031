//! Queues and servers that are offered more than they can take.

use super::warning;
use crate::diagnostic::{Diagnostic, Severity};
use crate::offered::{self, SiteLoad};
use crate::{Point, Scenario, Spec};
use weir_model::{Dist, Traffic};
use weir_policy::config::Balance;

/// Rounding of a load.
const ROUNDING: f64 = 1e-9;

/// A warning for each queue that is offered as much as it can take, or more; a hint where something keeps its line
/// short all the same.
pub fn overloaded(point: &Point) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for (i, scenario) in point.scenarios.iter().enumerate() {
        let loads = offered::offered_load(point, i);
        // Where balancers look at load, one queue's excess goes to the others; only if all of them have too much it
        // stays.
        let relieved = loads.iter().any(|l| l.steered && share(l) <= 1.0);
        for load in loads {
            if !is_full(point, scenario, &load) || load.steered && relieved {
                continue;
            }
            let Some(site) = point.sites.get(load.site as usize) else { continue };
            let (noun, end) = excess(point, &load);
            let (nodes, their) = match load.count {
                1 => (format!("the {noun}"), "its"),
                n => (format!("the {n} {noun}s of"), "their"),
            };
            let finding = warning(format!(
                "scenario \"{}\": the offered load of {nodes} {} is {:.2} times {their} capacity: {end}",
                scenario.name,
                site.label,
                share(&load)
            ));
            let severity = if load.bounded { Severity::Hint } else { Severity::Warning };
            found.push(Diagnostic { severity, ..finding.at_span(&site.span) });
        }
    }
    found
}

/// Arrivals over capacity: of the busiest, or of all together where balancers that consider load send them to idle
/// targets.
fn share(load: &SiteLoad) -> f64 {
    if load.steered { load.rate_per_s / load.capacity_per_s } else { load.utilisation }
}

/// Whether it has as much to do as it can, or more. Exactly as much is too much wherever anything varies.
fn is_full(point: &Point, scenario: &Scenario, load: &SiteLoad) -> bool {
    share(load) > 1.0 + ROUNDING || share(load) > 1.0 - ROUNDING && !load.bounded && varies(point, scenario)
}

/// Whether anything is drawn, as far as loads hang on it.
fn varies(point: &Point, scenario: &Scenario) -> bool {
    let fixed = |dist: &Dist| matches!(dist, Dist::Fixed { .. });
    !matches!(scenario.traffic, Traffic::Constant { .. })
        || point.reached(scenario).filter_map(|n| point.specs.get(n.spec as usize)).any(|spec| match spec {
            Spec::Delay { time } | Spec::Cable { time, .. } => !fixed(time),
            Spec::Concurrent { work, .. } => !fixed(work),
            Spec::Split { .. } => true,
            Spec::Lb(lb) => !matches!(lb.balance, Balance::RoundRobin(_) | Balance::First),
            _ => false,
        })
}

/// The name of a site's nodes, and what happens to an excess of requests.
fn excess(point: &Point, load: &SiteLoad) -> (&'static str, &'static str) {
    let nodes = point.nodes.iter().filter(|n| n.site == load.site);
    let mut noun = "server";
    for spec in nodes.map(|n| point.specs.get(n.spec as usize)) {
        match spec {
            Some(Spec::Queue { capacity: Some(_), .. }) => {
                return ("queue", "a request that finds them full is rejected");
            }
            Some(Spec::Queue { timeout_ns: Some(_), .. }) => {
                return ("queue", "a request that waits too long fails");
            }
            Some(Spec::Queue { .. }) => noun = "queue",
            _ => {}
        }
    }
    let end = if load.bounded { "the excess is cut off or rejected" } else { "the run will not settle" };
    (noun, end)
}
