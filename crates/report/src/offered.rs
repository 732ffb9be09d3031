//! The load that a plan offers to its queues, before anything is run: the answer of `weir check`.

use crate::number::count;
use crate::table::{Side, Table};
use crate::{entry, scheduled};
use std::io::{self, Write};
use weir_plan::{Effort, SiteLoad, effort, offered_load};
use weir_plan::{Plan, Point, Value};

pub(crate) fn write(plan: &Plan, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let swept = swept(plan);
    for point in &plan.points {
        writeln!(out, "{}: {}", title(plan, point, &swept), contents(point))?;
    }
    let mut t = Table::new();
    t.column("site", Side::Left);
    t.column("scenario", Side::Left);
    for p in &swept {
        t.column(p, Side::Right);
    }
    for heading in ["queues", "requests/s", "utilisation"] {
        t.column(heading, Side::Right);
    }
    let mut rows = 0;
    for point in &plan.points {
        for (i, scenario) in point.scenarios.iter().enumerate() {
            for load in offered_load(point, i) {
                let label = point.sites.get(load.site as usize).map(|s| s.label.clone()).unwrap_or_default();
                let mut cells = vec![label, scenario.name.clone()];
                cells.extend(swept.iter().map(|p| param(point, p).map(entry::value).unwrap_or_default()));
                cells.extend([count(load.count), figure(load.rate_per_s), utilisation(&load)]);
                t.row(cells);
                rows += 1;
            }
        }
    }
    if rows > 0 {
        writeln!(
            out,
            "\noffered load, by arrivals and means (of the busiest queue of each site):\n\n{}",
            t.text(width)
        )?;
    } else {
        writeln!(out, "\nno offered load: no queue whose arrivals and means are known\n")?;
    }
    scheduled::write(plan, width, out)?;
    for sentence in efforts(plan, &swept) {
        writeln!(out, "{sentence}\n")?;
    }
    writeln!(out, "weir {} · plan {}", plan.version, plan.hash)
}

/// Replications of a simulation, where nothing else is asked for.
const REPLICATIONS: f64 = 10.0;
/// About what a node's visit costs on one core of our days, s.
const VISIT_S: f64 = 1e-7;
/// A simulation that takes longer is announced, s.
const LONG_S: f64 = 60.0;

/// What will take long to simulate, in words.
fn efforts(plan: &Plan, swept: &[&str]) -> Vec<String> {
    let mut said = Vec::new();
    for point in &plan.points {
        for scenario in &point.scenarios {
            let Some(Effort { requests, visits, most_visits }) = effort(point, scenario) else { continue };
            let name = match title(plan, point, swept).split_once(" (") {
                Some((_, at)) => format!("{} ({at}", scenario.name),
                None => scenario.name.clone(),
            };
            let seconds = |visits: f64| requests * visits * REPLICATIONS * VISIT_S;
            let sends = format!(
                "scenario \"{name}\" sends {} requests in each of {REPLICATIONS} replications",
                count(requests.min(1e18) as u64)
            );
            if seconds(visits) > LONG_S {
                said.push(format!("takes long: {sends}: about {} on one core", lasts(seconds(visits))));
            } else if seconds(most_visits) > LONG_S {
                said.push(format!(
                    "may take long: {sends}; if all attempts fail each visits up to {} nodes: up to {} on one core",
                    count(most_visits.min(1e18) as u64),
                    lasts(seconds(most_visits))
                ));
            }
        }
    }
    said
}

/// A time in the unit in which one would say it.
fn lasts(seconds: f64) -> String {
    let units = [("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)];
    let (unit, each) = units.into_iter().find(|(_, each)| seconds >= 2.0 * each).unwrap_or(("minutes", 60.0));
    match seconds / each {
        n if n > 1e6 => format!("more than a million {unit}"),
        n => format!("{:.0} {unit}", n.max(1.0)),
    }
}

fn title(plan: &Plan, point: &Point, swept: &[&str]) -> String {
    let at: Vec<String> =
        swept.iter().filter_map(|p| Some(format!("{p}={}", entry::value(param(point, p)?)))).collect();
    if at.is_empty() { plan.file.clone() } else { format!("{} ({})", plan.file, at.join(", ")) }
}

fn contents(point: &Point) -> String {
    let of = |n: usize, what: &str| format!("{} {what}{}", count(n as u64), if n == 1 { "" } else { "s" });
    let (nodes, sites) = (of(point.nodes.len(), "node"), of(point.sites.len(), "site"));
    format!("{}, {nodes} at {sites}", of(point.scenarios.len(), "scenario"))
}

fn utilisation(load: &SiteLoad) -> String {
    let figure = figure(load.utilisation);
    // A balancer that looks at load sends the excess elsewhere, and a bounded queue turns it away.
    if load.utilisation >= 1.0 && !load.steered && !load.bounded {
        format!("{figure} overloaded")
    } else {
        figure
    }
}

/// Four digits: these are computed, not measured.
fn figure(x: f64) -> String {
    crate::number::plain(Some(x))
}

/// The parameters that differ between points.
fn swept(plan: &Plan) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in plan.points.iter().flat_map(|p| &p.params) {
        let differs = || plan.points.iter().any(|p| param(p, name) != param(&plan.points[0], name));
        if !names.contains(&name.as_str()) && differs() {
            names.push(name);
        }
    }
    names
}

fn param<'a>(point: &'a Point, name: &str) -> Option<&'a Value> {
    point.params.iter().find(|(n, _)| n == name).map(|(_, v)| v)
}
