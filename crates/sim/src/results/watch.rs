//! The members that a scenario's changes move: which they are, and what a result over time tells of them.

use crate::account::members::MemberSlice;
use crate::code::Code;
use crate::code::changes::{Attendance, ChangeTables};
use crate::code::watch::{MOST_WATCHED, Role, WatchTables, WatchedSite};
use crate::results::balancers::balancers;
use crate::results::over_time::{Act, OthersOverTime, OverTime, WatchedOverTime};
use crate::state::acts::{self, ActKind, Subject};
use crate::state::dry_run::dry_run;
use std::collections::BTreeSet;
use weir_plan::fleets::Member;
use weir_plan::{NodeId, Point, Scenario};
use weir_stats::Key;

/// The share of the others' rate from which on a member has its own again.
const REGAINED: f64 = 0.9;

/// The members of a scenario with results over time: those that its changes move in the replication with that key, which needs
/// no run to be known. `number` is that of a node in the file's plan.
pub(crate) fn tables(
    point: &Point,
    scenario: &Scenario,
    code: &Code,
    key: Key,
    number: impl Fn(NodeId) -> NodeId,
) -> Option<Box<WatchTables>> {
    let (_, changes, fleets) = (code.every_ns?, code.changes.as_deref()?, point.fleets.as_deref()?);
    let dry = dry_run(code, key);
    let Attendance { spans, absent } = &dry.attendance;
    let moved: BTreeSet<Member> = spans.keys().chain(absent.keys()).chain(&dry.concerned).copied().collect();
    let number = &number;
    let site = |member: &Member| {
        let members = fleets.all.get(member.fleet as usize)?;
        let nodes = members.nodes.get(member.number as usize)?;
        let named = nodes.clone().filter_map(|id| point.nodes.get(id as usize)?.name.clone());
        let names: BTreeSet<String> = named.chain([members.fleet.label.clone()]).collect();
        // The node that balancers pick is made last.
        let root = nodes.clone().rev().find(|id| point.nodes[*id as usize].name.is_some());
        let root = root.or_else(|| nodes.clone().last())?;
        let node = format!("{} #{}", weir_plan::label(point, root), number(root));
        Some(WatchedSite { member: *member, node, names, runs: member.number < members.fleet.size })
    };
    let sites: Vec<WatchedSite> = moved.iter().take(MOST_WATCHED).filter_map(site).collect();
    let of_fleets: BTreeSet<u32> = moved.iter().map(|member| member.fleet).collect();
    let stays = |member: &Member| !moved.contains(member);
    let all = of_fleets.iter().flat_map(|&fleet| {
        (0..fleets.all[fleet as usize].fleet.size).map(move |number| Member { fleet, number })
    });
    let others: Vec<Member> = all.filter(stays).collect();
    let role = |member: &Option<Member>| match member {
        Some(member) if let Some(at) = sites.iter().position(|site| site.member == *member) => {
            Role::Watched(at as u32)
        }
        Some(member) if others.contains(member) => Role::Other,
        _ => Role::Neither,
    };
    let roles = changes.views.iter().map(|view| view.members.iter().map(role).collect()).collect();
    let viewers = viewers(point, scenario, code, changes, number);
    Some(Box::new(WatchTables { sites, roles, others, viewers }))
}

/// The names of the balancers over fleets, by view: with their numbers, where several have the same.
fn viewers(
    point: &Point,
    scenario: &Scenario,
    code: &Code,
    changes: &ChangeTables,
    number: impl Fn(NodeId) -> NodeId,
) -> Vec<String> {
    let all = balancers(point, scenario, code);
    let nodes = changes.views.iter().map(|view| all.get(view.instance as usize).copied());
    let nodes: Vec<NodeId> = nodes.map(|node| node.unwrap_or(NodeId::MAX)).collect();
    let names: Vec<String> = nodes.iter().map(|id| weir_plan::label(point, *id)).collect();
    let is_shared = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let named = |(name, id): (&String, &NodeId)| match is_shared(name) {
        true => format!("{name} #{}", number(*id)),
        false => name.clone(),
    };
    names.iter().zip(&nodes).map(named).collect()
}

/// By watched member, how long after it runs (anew) it has its share again, s; `None`: it does not begin in that replication, or
/// never has.
pub(crate) fn regained_s(
    tables: &WatchTables,
    acts: &[acts::Act],
    slices: &[MemberSlice],
    every_ns: u64,
) -> Vec<Option<f64>> {
    let regained = |(index, site): (usize, &WatchedSite)| {
        let runs_ns = runs_ns(site.member, acts)?;
        let first = (runs_ns / every_ns) as usize;
        let has_share = |slice: &MemberSlice| {
            let others = slice.per_s(&slice.others) / tables.others.len().max(1) as f64;
            let own = slice.sites.get(index).map_or(0.0, |of| slice.per_s(of));
            others > 0.0 && own >= REGAINED * others
        };
        let rest = slices.get(first..)?;
        let at = rest.windows(2).position(|two| two.iter().all(has_share))?;
        let ends_ns: u64 = slices.iter().take(first + at + 1).map(|slice| slice.length_ns).sum();
        Some((ends_ns - runs_ns) as f64 / 1e9)
    };
    tables.sites.iter().enumerate().map(regained).collect()
}

/// When a member began to run, for the last time.
fn runs_ns(member: Member, acts: &[acts::Act]) -> Option<u64> {
    let began = |act: &&acts::Act| act.what == ActKind::Runs && act.subject == Subject::Member(member);
    acts.iter().filter(began).map(|act| act.at_ns).next_back()
}

/// Whether a member begins to run in a replication.
pub(crate) fn begins(member: Member, acts: &[acts::Act]) -> bool {
    runs_ns(member, acts).is_some()
}

/// Adds what was counted of members, and what happened to them in the first replication.
pub(crate) fn add_members(
    found: &mut OverTime,
    tables: &WatchTables,
    code: &Code,
    point: &Point,
    slices: &[MemberSlice],
    acts: &[acts::Act],
) {
    let (is_connected, parts) = (code.connections.is_some(), found.arrivals_per_s.len());
    for (index, site) in tables.sites.iter().enumerate() {
        let each = |of: &dyn Fn(&MemberSlice) -> f64| filled(slices, parts, of);
        found.watched.push(WatchedOverTime {
            node: site.node.clone(),
            process: processes(site, acts, found.every_ns, parts),
            requests_per_s: each(&|slice| slice.per_s(&slice.sites[index])),
            in_flight: each(&|slice| slice.in_flight(&slice.sites[index])),
            connections: is_connected.then(|| each(&|slice| slice.connections(&slice.sites[index]))),
            share: each(&|slice| slice.share(&slice.sites[index])),
        });
    }
    let number = tables.others.len() as f64;
    if number > 0.0 {
        let each = |of: &dyn Fn(&MemberSlice) -> f64| filled(slices, parts, &|slice| of(slice) / number);
        found.others = OthersOverTime {
            requests_per_s: each(&|slice| slice.per_s(&slice.others)),
            in_flight: each(&|slice| slice.in_flight(&slice.others)),
            connections: is_connected.then(|| each(&|slice| slice.connections(&slice.others))),
        };
    }
    found.acts = acts.iter().map(|act| named(act, tables, code, point)).collect();
}

/// A number for each part: 0 after the last arrival, where nothing is counted.
fn filled(slices: &[MemberSlice], parts: usize, of: &dyn Fn(&MemberSlice) -> f64) -> Vec<f64> {
    let counted = slices.iter().map(of);
    counted.chain(std::iter::repeat(0.0)).take(parts).collect()
}

/// The state of a member's process at the end of each part.
fn processes(site: &WatchedSite, acts: &[acts::Act], every_ns: u64, parts: usize) -> Vec<&'static str> {
    let mut own = acts.iter().filter(|act| act.subject == Subject::Member(site.member)).peekable();
    let mut state = if site.runs { "runs" } else { "none" };
    let at_end = |part: u64| {
        while let Some(act) = own.next_if(|act| act.at_ns < (part + 1) * every_ns) {
            state = match act.what {
                ActKind::Stops => "stops",
                ActKind::Stopped | ActKind::Down => "stopped",
                ActKind::Boots => "boots",
                ActKind::Runs | ActKind::Up => "runs",
                _ => state,
            };
        }
        state
    };
    (0..parts as u64).map(at_end).collect()
}

/// An act with the names of what it concerns.
fn named(act: &acts::Act, tables: &WatchTables, code: &Code, point: &Point) -> Act {
    let label = |member: Member| {
        let fleet = code.changes.as_deref().and_then(|changes| changes.fleets.get(member.fleet as usize));
        format!("{} #{}", fleet.map_or("", |fleet| &fleet.label), member.number)
    };
    let node = match act.subject {
        Subject::Member(member) => {
            let watched = tables.sites.iter().find(|site| site.member == member);
            watched.map_or_else(|| label(member), |site| site.node.clone())
        }
        Subject::Node(id) => weir_plan::label(point, id),
        Subject::Fleet(fleet) => code
            .changes
            .as_deref()
            .and_then(|changes| changes.fleets.get(fleet as usize))
            .map_or_else(String::new, |fleet| fleet.label.clone()),
    };
    let by = act.by.and_then(|view| tables.viewers.get(view as usize).cloned());
    Act {
        at_ns: act.at_ns,
        change: act.change.unwrap_or(0),
        node,
        what: act.what.word(),
        by,
        value: act.value,
    }
}
