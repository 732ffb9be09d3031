//! A plan read from a file is checked as a topology file would be: it may have been edited by hand.

use crate::fleets::check;
use crate::ranges::{self, MOST_NODES, MOST_POINTS};
use crate::{Faulty, Line, Plan, Point, Spec};
use std::collections::{HashMap, HashSet};
use std::fmt;

mod around;
mod asked;
mod listening;
mod node;
mod scenario;
mod serving;
mod source;
mod spec;

/// The first thing that is wrong with a plan, with its place in it. The checks below it each say what is wrong in words
/// and leave the place to their callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidPlan(String);

impl fmt::Display for InvalidPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidPlan {}

/// Checks everything that the evaluation of a file would have made sure of.
///
/// # Errors
/// The first thing that is wrong, with its place in the plan.
pub(crate) fn plan(plan: &Plan) -> Result<(), InvalidPlan> {
    points(plan).map_err(InvalidPlan)
}

fn points(plan: &Plan) -> Result<(), String> {
    if plan.schema != Plan::SCHEMA {
        return Err(format!("schema: \"{}\" is not \"{}\"", plan.schema, Plan::SCHEMA));
    }
    if plan.points.is_empty() || plan.points.len() > MOST_POINTS {
        return Err(format!("points: there must be 1 to {MOST_POINTS}, not {}", plan.points.len()));
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
    for (i, site) in p.sites.iter().enumerate() {
        within(format!("sites[{i}].place"), site.place, p.places.len(), "place")?;
    }
    let mut labels = HashSet::new();
    if let Some(twice) = p.sites.iter().find(|s| !labels.insert(s.label.as_str())) {
        return Err(format!("sites: two sites have the label \"{}\"", twice.label));
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
    node::check(p)?;
    if let Some((id, why)) = check::misplaced(p) {
        return Err(format!("nodes[{id}]: {why}"));
    }
    if let Some(id) = check::doubled(p) {
        return Err(format!("nodes[{id}]: a fleet is twice among its targets"));
    }
    if let Some(why) = check::too_many(p, &[]) {
        return Err(format!("nodes: {why}"));
    }
    scenario::check(p)
}

/// Whether an index of a list of `len` leads anywhere.
fn within(what: String, index: u32, len: usize, of: &str) -> Result<(), String> {
    if (index as usize) < len {
        Ok(())
    } else {
        Err(format!("{what}: there is no {of} {index} (there are {len})"))
    }
}

/// Nodes that share a timeline have one law of it.
fn time_lines(specs: &[Spec]) -> Result<(), String> {
    let mut first: HashMap<&Line, (usize, &Faulty)> = HashMap::new();
    for (i, spec) in specs.iter().enumerate() {
        let Spec::Faulty(law) = spec else { continue };
        if law.line == Line::Own {
            continue;
        }
        let (other, before) = *first.entry(&law.line).or_insert((i, law));
        if let Some((argument, theirs, ours)) = ranges::differs(before, law) {
            return Err(format!(
                "specs[{i}]: it shares the timeline of specs[{other}], but its {argument} is {ours}, not \
                    {theirs}"
            ));
        }
    }
    Ok(())
}
