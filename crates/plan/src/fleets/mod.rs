//! Fleets: a plan holds the template of each once, and every use of the plan needs its members. [`Plan::expand`] makes
//! them: the members of the start stand where those of a `pool` would, so that a fleet that nothing changes is that
//! pool. A simulation with changes gets a point that also has every member that ever joins ([`Point::grown`]).

mod acts;
pub mod check;
mod driven;
mod expand;
mod members;
mod schedule;
mod timetable;

pub use acts::{FixedAct, fixed_acts};
pub use members::{MemberPlaces, with_members, with_one_member};
pub use schedule::{Departure, Schedule, Step, StepKind, schedule};
pub use timetable::{Sight, SourceDoubt, TargetList, TargetNews, Timetable};

pub use crate::graph::{DrivenNodes, Fleets, ListedMember, Member, Members};

use crate::{NodeId, Plan, Point, Scenario, Spec};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

impl Plan {
    /// Makes the members of all fleets.
    pub fn expand(&mut self) {
        for point in &mut self.points {
            if point.fleets.is_none() && (has_fleets(point) || has_changes(point)) {
                *point = expand::expand(point, &[], &[]);
            }
        }
    }
}

/// The point with the members of the start; the same where it has no fleet.
pub fn expanded(compact: &Point) -> Cow<'_, Point> {
    if has_fleets(compact) { Cow::Owned(expand::expand(compact, &[], &[])) } else { Cow::Borrowed(compact) }
}

/// Whether a point has fleets whose members are not made.
fn has_fleets(point: &Point) -> bool {
    point.specs.iter().any(|spec| matches!(spec, Spec::Fleet(_)))
}

/// Whether any of its scenarios has changes: nodes may fail where no fleet is.
fn has_changes(point: &Point) -> bool {
    point.scenarios.iter().any(|scenario| !scenario.events.is_empty())
}

/// The point as it is written: with the template of each fleet once.
pub(crate) fn compact(point: &Point) -> &Point {
    point.fleets.as_ref().map_or(point, |fleets| &fleets.compact)
}

impl Point {
    /// The point with all members that a scenario's changes let join, and the scenario in it; the same where it changes
    /// nothing, or has them already.
    pub fn grown<'p>(&'p self, scenario: &'p Scenario) -> (&'p Point, &'p Scenario) {
        let grown = || {
            let fleets = self.fleets.as_deref().filter(|f| !f.changes && !scenario.events.is_empty())?;
            let at = self.scenarios.iter().position(|s| s.name == scenario.name)?;
            let point = fleets.grown.get(at)?.get_or_init(|| grow(&fleets.compact, scenario)).as_deref()?;
            Some((point, point.scenarios.get(at)?))
        };
        grown().unwrap_or((self, scenario))
    }
}

fn grow(compact: &Point, scenario: &Scenario) -> Option<Box<Point>> {
    let extra = schedule(compact, &scenario.events).ok()?.newcomers;
    let (mut point, now) = expand::expand_with(compact, &extra, &[]);
    Arc::get_mut(point.fleets.as_mut()?)?.changes = true;
    point = driven::with_driven(point, compact, scenario, &now);
    // Its traffic may be another than the file's.
    let own = point.scenarios.iter_mut().find(|own| own.name == scenario.name)?;
    *own = Scenario { root: own.root, ..scenario.clone() };
    Some(Box::new(point))
}

/// The template of each fleet: its nodes and the fleet's own.
pub(crate) fn templates(point: &Point) -> Vec<(Range<NodeId>, NodeId)> {
    let fleet = |id: NodeId| match point.spec(id) {
        Some(Spec::Fleet(fleet)) => Some((fleet.first..id, id)),
        _ => None,
    };
    (0..point.nodes.len() as NodeId).filter_map(fleet).collect()
}
