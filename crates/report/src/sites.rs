//! The table of sites: where in the topology requests went, waited and spent their time.

use crate::number::{UNKNOWN, alone, count, plain};
use crate::table::{Side, Table};
use std::collections::{BTreeMap, BTreeSet};
use weir_sim::{NodeResult, ScenarioResult};

/// One row per site (or member) of a scenario. Columns that no site can fill are left out.
pub(crate) fn table(s: &ScenarioResult) -> Table {
    let mut t = Table::new();
    t.column("site", Side::Left);
    for heading in ["requests", "failed", "busy", "waiting", "most", "wait", "service", "part", "spread"] {
        t.column(heading, Side::Right);
    }
    for (name, n) in called(&s.nodes) {
        let failed: u64 = n.errors.iter().map(|(_, k)| k).sum();
        t.row(vec![
            name,
            count(n.requests),
            if failed == 0 { UNKNOWN.into() } else { count(failed) },
            alone(&n.utilisation),
            alone(&n.queue_mean),
            n.queue_max.map_or_else(|| UNKNOWN.into(), count),
            alone(&n.wait_ms),
            alone(&n.service_ms),
            alone(&n.latency_part_ms),
            spread(n),
        ]);
    }
    t.without_empty_columns(UNKNOWN)
}

/// Each of these sites, or members, with what it is called beside the others.
pub(crate) fn called(nodes: &[NodeResult]) -> impl Iterator<Item = (String, &NodeResult)> {
    let mut of_place: BTreeMap<&str, usize> = BTreeMap::new();
    let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for n in nodes {
        *of_place.entry(&n.place).or_default() += 1;
        named.entry(&n.name).or_default().insert(&n.place);
    }
    let called =
        move |n: &NodeResult| name(n, named[n.name.as_str()].len() > 1, of_place[n.place.as_str()] > 1);
    let names: Vec<String> = nodes.iter().map(called).collect();
    let mut rows_of: BTreeMap<String, usize> = BTreeMap::new();
    names.iter().for_each(|name| *rows_of.entry(name.clone()).or_default() += 1);
    names.into_iter().zip(nodes).map(move |(name, n)| {
        // A queue bound to `app` before `server("app")`.
        let name = if rows_of[&name] > 1 { format!("{name} ({})", n.kind) } else { name };
        (name, n)
    })
}

/// The legend of the columns.
pub(crate) const LEGEND: [&str; 4] = [
    "busy: utilisation of its slots · waiting: mean number at a member",
    "most: most that ever waited at one member · wait, service: mean ms per entry",
    "part: ms of the mean latency spent there; the parts add up to it",
    "spread: least and most requests of a member",
];

/// The names of sites outside the table: the given name if only one place has it, otherwise the place.
#[derive(Debug, Default)]
pub(crate) struct Names<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Names<'a> {
    /// Of these sites, or members.
    pub(crate) fn of_sites(nodes: impl IntoIterator<Item = &'a NodeResult>) -> Names<'a> {
        let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for n in nodes.into_iter().filter(|n| n.name != n.kind) {
            named.entry(&n.name).or_default().insert(&n.place);
        }
        let mut given = BTreeMap::new();
        for (name, places) in named.iter().filter(|(_, places)| places.len() == 1) {
            places.iter().for_each(|place| {
                given.entry(*place).and_modify(|many| *many = "").or_insert(*name);
            });
        }
        given.retain(|_, name| !name.is_empty());
        Names(given)
    }

    /// The name of the site at this place.
    pub(crate) fn name<'b>(&self, place: &'b str) -> &'b str
    where
        'a: 'b,
    {
        self.0.get(place).copied().unwrap_or(place)
    }
}

/// A given name is preferred; if several places have it, its place precedes it.
fn name(n: &NodeResult, shared: bool, one_of_many: bool) -> String {
    let s = match (n.name == n.kind, shared) {
        (true, _) => n.place.clone(),
        (false, true) => format!("{} {}", n.place, n.name),
        (false, false) => n.name.clone(),
    };
    match n.id {
        Some(id) if one_of_many => format!("{s} #{id}"),
        _ if n.count > 1 => format!("{s} ×{}", n.count),
        _ => s,
    }
}

fn spread(n: &NodeResult) -> String {
    match (n.spread_min, n.spread_max) {
        (Some(_), Some(_)) if n.count > 1 => format!("{}..{}", plain(n.spread_min), plain(n.spread_max)),
        _ => UNKNOWN.into(),
    }
}
