//! What a plan offers to its queues, before anything is run: the answer of `weir check`.

use crate::number::count;
use crate::table::{Side, Table};
use crate::{WIDTH, entry};
use std::io::{self, Write};
use weir_topology::plan::{Plan, Point, Value};
use weir_topology::{SiteLoad, offered_load};

pub(crate) fn write(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
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
            t.text(WIDTH)
        )?;
    } else {
        writeln!(out, "\nno offered load: no queue whose arrivals and means are known\n")?;
    }
    writeln!(out, "weir {} · plan {}", plan.version, plan.hash)
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
