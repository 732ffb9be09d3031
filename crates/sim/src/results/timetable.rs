//! What balancers see of the changes of fleets, without a run: which members leave, and how late each balancer sees it, are
//! drawn by keys, so no request is needed for it. A verification plays it in reality.

use crate::code::changes::ViewSite;
use crate::compile::blocks::Layout;
use crate::compile::compile;
use crate::results::balancers::balancers;
use crate::results::run::Error;
use crate::state::changes::Changes;
use crate::state::seer::Move;
use crate::state::sights::SeenMoves;
use std::ops::Range;
use weir_plan::fleets::{self, TargetMove, Timetable};
use weir_plan::{Edge, NodeId, Point, Scenario};
use weir_stats::Key;

/// The changes of a scenario in the replication with this key; `point`: with every member that ever is
/// ([`Point::grown`]). Empty for a scenario that changes nothing.
///
/// # Errors
/// A scenario that cannot be simulated.
pub fn timetable(point: &Point, scenario: &Scenario, key: Key) -> Result<Timetable, Error> {
    if scenario.events.is_empty() {
        return Ok(Timetable::default());
    }
    let code = compile(Layout::new(point, scenario.root), scenario, false)
        .map_err(|e| Error::Plan(format!("scenario \"{}\": {e}", scenario.name)))?;
    let Some(tables) = code.changes.as_deref() else { return Ok(Timetable::default()) };
    let mut changes = Changes::new(&code, key);
    for (step, of) in (0..).zip(&tables.steps) {
        changes.step(&code, step, of.at_ns);
        changes.effects.clear();
    }
    let lbs = balancers(point, scenario, &code);
    let targets = |view: &ViewSite| {
        let lb = *lbs.get(view.instance as usize)?;
        let Edge::List(list) = point.nodes[lb as usize].to else { return None };
        Some((lb, &point.lists[list as usize][..]))
    };
    let first = tables.views.iter().filter_map(|view| {
        let (lb, list) = targets(view)?;
        Some((lb, list.iter().copied().take(view.first as usize).collect()))
    });
    let first = first.collect();
    let seen = |SeenMoves { view, at_ns, moves }: SeenMoves| {
        let view = &tables.views[view as usize];
        let (lb, list) = targets(view)?;
        let target = |of: Move| Some(list[*view.places.get(&of.member())? as usize]);
        let to = |of: Move| match of {
            Move::Add(_) => target(of).map(TargetMove::Add),
            Move::Remove(_) => target(of).map(TargetMove::Remove),
        };
        Some(fleets::Sight { at_ns, lb, moves: moves.into_iter().filter_map(to).collect() })
    };
    let sights = changes.see_without_failures().into_iter().filter_map(seen).collect();
    Ok(Timetable { first, sights, joins: joins(point, &changes) })
}

/// The nodes of each member that joins during the run.
fn joins(point: &Point, changes: &Changes) -> Vec<(Range<NodeId>, u64)> {
    let Some(fleets) = point.fleets.as_deref() else { return Vec::new() };
    let join = |(fleet, number): (u32, u32), joined_ns: u64| {
        let members = fleets.all.get(fleet as usize)?;
        let nodes = members.nodes.get(number as usize).filter(|_| number >= members.fleet.size)?;
        Some((nodes.clone(), joined_ns))
    };
    let spans = &changes.attendance.spans;
    let mut joins: Vec<_> =
        spans.iter().filter_map(|(of, span)| join((of.fleet, of.number), span.joined_ns)).collect();
    joins.sort_by_key(|(nodes, _)| nodes.start);
    joins
}
