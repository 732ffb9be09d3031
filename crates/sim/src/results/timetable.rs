//! What balancers see of the changes of fleets, without a run: which members leave, and how late each balancer sees it, are
//! drawn by keys, so no request is needed for it. A verification plays it in reality. What a list of a source means that may
//! be doubted is decided there, since it depends on targets that fail meanwhile.

use crate::code::changes::{ChangeTables, FleetSite, ViewSite};
use crate::compile::blocks::Layout;
use crate::compile::compile;
use crate::results::balancers::balancers;
use crate::results::run::Error;
use crate::state::changes::Changes;
use crate::state::seer::Move;
use crate::state::sights::{News, SeenNews};
use std::ops::Range;
use weir_plan::fleets::{self, Member, SourceDoubt, TargetList, TargetNews, Timetable};
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
    let view = |view: u32| {
        let site = &tables.views[view as usize];
        let lb = *lbs.get(site.instance as usize)?;
        let Edge::List(list) = point.nodes[lb as usize].to else { return None };
        Some(View { lb, site, list: &point.lists[list as usize] })
    };
    let views: Vec<View<'_>> = (0..tables.views.len() as u32).filter_map(view).collect();
    let sight = |SeenNews { view: number, at_ns, news }: SeenNews| {
        let view = view(number)?;
        let news = news.into_iter().filter_map(|of| view.target_news(of)).collect();
        Some(fleets::Sight { at_ns, lb: view.lb, news })
    };
    Ok(Timetable {
        first: views.iter().map(|view| (view.lb, view.first())).collect(),
        doubts: views.iter().flat_map(|view| view.doubts(tables)).collect(),
        sights: changes.news_in_order().into_iter().filter_map(sight).collect(),
        joins: joins(point, &changes),
    })
}

/// A balancer over fleets, and the list of its targets.
struct View<'a> {
    lb: NodeId,
    site: &'a ViewSite,
    list: &'a [NodeId],
}

impl View<'_> {
    /// Its targets at the start.
    fn first(&self) -> Vec<NodeId> {
        self.list.iter().copied().take(self.site.first as usize).collect()
    }

    /// The target that a member is.
    fn target(&self, member: Member) -> Option<NodeId> {
        self.list.get(*self.site.places.get(&member)? as usize).copied()
    }

    /// The sources that it may doubt.
    fn doubts(&self, tables: &ChangeTables) -> Vec<SourceDoubt> {
        let of_fleet = |(source, fleet): (u32, &FleetSite)| {
            let doubt = fleet.doubt.filter(|_| self.site.has_fleet(source))?;
            let target = |number: u32| self.target(Member { fleet: source, number });
            let first = (0..fleet.size).filter_map(target).collect();
            Some(SourceDoubt { lb: self.lb, source, doubt, first })
        };
        (0..).zip(&tables.fleets).filter_map(of_fleet).collect()
    }

    /// What it sees, of targets.
    fn target_news(&self, of: News) -> Option<TargetNews> {
        match of {
            News::Move(Move::Add(member)) => self.target(member).map(TargetNews::Add),
            News::Move(Move::Remove(member)) => self.target(member).map(TargetNews::Remove),
            News::List { fleet, entries } => {
                let target = |number: u32| self.target(Member { fleet, number });
                let targets = entries.iter().filter_map(|entry| target(entry.key)).collect();
                Some(TargetNews::List(TargetList { source: fleet, targets }))
            }
            // No verification has the operator's word.
            News::Set(_) => None,
        }
    }
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
