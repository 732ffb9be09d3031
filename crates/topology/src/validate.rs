//! A plan read from a file is checked as a topology file would be: it may have been edited by hand.

use crate::evaluate::SCHEMA;
use crate::graph::MOST_NODES;
use crate::nodes;
use crate::params::MOST_POINTS;
use crate::plan::{Faulty, Line, NodeId, Plan, Point, Spec, To};
use std::collections::{HashMap, HashSet};
use weir_policy::config::Balance;
use weir_policy::round_robin::{GREATEST_SUM, is_too_long};

mod scenario;
mod spec;

/// Checks everything that the evaluation of a file would have made sure of.
///
/// # Errors
/// The first thing that is wrong, with its place in the plan.
pub(crate) fn plan(plan: &Plan) -> Result<(), String> {
    if plan.schema != SCHEMA {
        return Err(format!("schema: \"{}\" is not \"{SCHEMA}\"", plan.schema));
    }
    if plan.points.is_empty() || plan.points.len() > MOST_POINTS {
        return Err(format!("points: there must be 1 to {MOST_POINTS}, and are {}", plan.points.len()));
    }
    for (i, p) in plan.points.iter().enumerate() {
        point(p).map_err(|why| format!("points[{i}].{why}"))?;
    }
    Ok(())
}

fn point(p: &Point) -> Result<(), String> {
    if p.nodes.len() > MOST_NODES {
        return Err(format!("nodes: there are more than {MOST_NODES}"));
    }
    let within = |what: String, index: u32, len: usize, of: &str| {
        if (index as usize) < len {
            Ok(())
        } else {
            Err(format!("{what}: there is no {of} {index} (there are {len})"))
        }
    };
    for (i, site) in p.sites.iter().enumerate() {
        within(format!("sites[{i}].place"), site.place, p.places.len(), "place")?;
    }
    let mut labels = HashSet::new();
    if let Some(twice) = p.sites.iter().find(|s| !labels.insert(s.label.as_str())) {
        return Err(format!("sites: two have the label \"{}\"", twice.label));
    }
    for (i, s) in p.specs.iter().enumerate() {
        spec::check(s).map_err(|why| format!("specs[{i}]: {why}"))?;
    }
    time_lines(&p.specs)?;
    for (i, list) in p.lists.iter().enumerate() {
        if list.is_empty() {
            return Err(format!("lists[{i}]: a list of targets must not be empty"));
        }
        for target in list {
            within(format!("lists[{i}]"), *target, p.nodes.len(), "node")?;
        }
    }
    let highest: Vec<NodeId> = p.lists.iter().map(|l| l.iter().copied().max().unwrap_or(0)).collect();
    for (i, node) in p.nodes.iter().enumerate() {
        let at = |field: &str| format!("nodes[{i}].{field}");
        within(at("site"), node.site, p.sites.len(), "site")?;
        within(at("spec"), node.spec, p.specs.len(), "spec")?;
        let spec = &p.specs[node.spec as usize];
        let aside = spec.aside();
        let last = match (node.to, spec) {
            (To::None, Spec::Server { .. } | Spec::Concurrent { .. }) => aside,
            (
                To::Node(next),
                Spec::Delay { .. }
                | Spec::Cable { .. }
                | Spec::Queue { .. }
                | Spec::Weight { .. }
                | Spec::Retry(_)
                | Spec::Faulty(_)
                | Spec::Timeout { .. }
                | Spec::Warmup { .. }
                | Spec::Flaky { .. }
                | Spec::Rate { .. }
                | Spec::Hedge(_),
            ) => Some(next),
            (
                To::List(list),
                Spec::Lb(_) | Spec::Sequence | Spec::Fanout { .. } | Spec::Route { .. } | Spec::Split { .. },
            ) => {
                within(at("to"), list, p.lists.len(), "list")?;
                aside.max(Some(highest[list as usize]))
            }
            (_, spec) => {
                let wanted = match spec {
                    Spec::Server { .. } | Spec::Concurrent { .. } => "to nothing",
                    Spec::Lb(_)
                    | Spec::Sequence
                    | Spec::Fanout { .. }
                    | Spec::Route { .. }
                    | Spec::Split { .. } => "to a list",
                    _ => "to one node",
                };
                return Err(format!("{}: a `{}` leads {wanted}", at("to"), spec.kind()));
            }
        };
        if let Some(last) = last
            && last as usize >= i
        {
            return Err(format!(
                "{}: it leads to node {last}, and a node must come after all that it leads to (no cycles)",
                at("to")
            ));
        }
        if let (Spec::Lb(lb), To::List(list)) = (spec, node.to) {
            weights(p, &lb.balance, &p.lists[list as usize]).map_err(|why| format!("nodes[{i}]: {why}"))?;
        }
        if let (Spec::Fanout { need }, To::List(list)) = (spec, node.to)
            && *need as usize > p.lists[list as usize].len()
        {
            return Err(format!("nodes[{i}]: it needs {need} of {} nodes", p.lists[list as usize].len()));
        }
    }
    scenario::check(p)
}

/// Nodes that share a time-line have one law of it.
fn time_lines(specs: &[Spec]) -> Result<(), String> {
    let mut first: HashMap<&Line, (usize, &Faulty)> = HashMap::new();
    for (i, spec) in specs.iter().enumerate() {
        let Spec::Faulty(law) = spec else { continue };
        if law.line == Line::Own {
            continue;
        }
        let (other, before) = *first.entry(&law.line).or_insert((i, law));
        if let Some((argument, theirs, ours)) = nodes::differs(before, law) {
            return Err(format!(
                "specs[{i}]: it shares the time-line of specs[{other}], and its {argument} is {ours}, not {theirs}"
            ));
        }
    }
    Ok(())
}

fn weights(p: &Point, balance: &Balance, targets: &[NodeId]) -> Result<(), String> {
    let weight = |t: &NodeId| match &p.specs.get(p.nodes[*t as usize].spec as usize) {
        Some(Spec::Weight { weight }) => *weight,
        _ => 1.0,
    };
    if targets.iter().all(|t| weight(t) == 0.0) {
        return Err("all targets weigh 0".to_owned());
    }
    if matches!(balance, Balance::RoundRobin { .. }) {
        if targets.iter().any(|t| weight(t).fract() != 0.0) {
            return Err("`lb.round_robin` needs whole weights".to_owned());
        }
        if is_too_long(&targets.iter().map(weight).collect::<Vec<_>>()) {
            return Err(format!("unequal weights of `lb.round_robin` must add up to at most {GREATEST_SUM}"));
        }
    }
    Ok(())
}
