//! Tables for a terminal: first the warnings, then the scenarios side by side, then site by site.

use crate::column::Column;
use crate::number::{self, count, with_interval};
use crate::table::{Side, Table};
use crate::{comparison, connections, entry, expected, explained, over_time, sites, wrap};
use std::io::{self, Write};
use weir_sim::{Results, ScenarioResult};
use weir_stats::{Estimate, Latency};

/// Up to this many scenarios each one's sites are shown without being asked for. The points of a sweep are one table.
const FEW: usize = 3;

/// What is shown of a result.
#[derive(Clone, Debug)]
pub struct View {
    /// Whether each scenario's sites are.
    pub sites: Sites,
    /// The columns of the table of scenarios; the usual ones, if there are none here.
    pub columns: Vec<Column>,
}

/// Whether each scenario's sites are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sites {
    /// Where there are few scenarios, and none is swept.
    Few,
    /// Always.
    Always,
}

pub(crate) fn write(results: &Results, view: &View, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let swept = entry::swept(results);
    let detail = view.sites == Sites::Always || (swept.is_empty() && results.scenarios.len() <= FEW);
    let columns = comparison::chosen(&view.columns, results);
    let shown = if detail { entry::QUANTILES.to_vec() } else { comparison::quantiles(&columns) };
    let warnings = entry::warnings(results, &shown);
    for (text, labels) in &warnings {
        write!(out, "{}", wrap::wrapped_to(&format!("warning: {text} [{}]", entry::listed(labels)), width))?;
    }
    if !warnings.is_empty() {
        writeln!(out)?;
    }
    if results.interrupted {
        let what = interrupted(results).replacen('i', "I", 1);
        let what = format!("{what}: what follows is what was finished.");
        writeln!(out, "{}", wrap::wrapped_to(&what, width))?;
    }
    // Of one scenario the table has nothing that does not follow.
    let tabled = results.scenarios.len() > 1 || !view.columns.is_empty();
    let ok = match tabled && columns.iter().any(|column| column.is_of_successes()) {
        true => " (ok: of successes)",
        false => "",
    };
    let title = format!("{}: latency of all requests{ok} in ms, ± half of the 95 % interval", results.file);
    writeln!(out, "{}", wrap::wrapped_to(&title, width))?;
    if tabled {
        writeln!(out, "{}", comparison::table(results, &columns).text(width))?;
    }
    if detail {
        for s in &results.scenarios {
            scenario(s, &swept, results, width, out)?;
        }
        if results.scenarios.iter().any(|s| !s.nodes.is_empty()) {
            let held = results.scenarios.iter().any(|s| s.connections.is_some());
            let legend = connections::LEGEND.into_iter().filter(|_| held);
            for line in sites::LEGEND.into_iter().chain(legend) {
                write!(out, "{}", wrap::wrapped_to(line, width))?;
            }
            writeln!(out)?;
        }
    } else {
        let connections = connections::of_scenarios(&results.scenarios, |s| entry::label(s, &swept));
        if let Some(connections) = connections {
            writeln!(out, "{}", connections.text(width))?;
        }
        explanations(&results.scenarios, &swept, width, out)?;
        writeln!(out, "{}", wrap::wrapped_to(hint(view), width))?;
    }
    expected::write(results, width, out)?;
    if let Some(settings) = entry::settings(results) {
        write!(out, "{}", wrap::wrapped_to(&settings, width))?;
    }
    writeln!(out, "{}", entry::signature(results))
}

/// What else could be shown.
fn hint(view: &View) -> &'static str {
    match view.columns.is_empty() {
        true => "--nodes sites shows each scenario's sites, --columns p99.9,errors other figures.",
        false => "--nodes sites shows each scenario's sites.",
    }
}

/// What was finished of a run that was interrupted.
pub(crate) fn interrupted(results: &Results) -> String {
    let swept = entry::swept(results);
    let partial = results.scenarios.iter().filter_map(|s| {
        let finished = s.finished?;
        Some(format!(
            "after {finished} of {} replications of {}",
            results.replications,
            entry::label(s, &swept)
        ))
    });
    let partial: Vec<String> = partial.collect();
    if partial.is_empty() { "interrupted".to_owned() } else { format!("interrupted {}", partial.join(", ")) }
}

/// The worst part of a run and what typical requests consist of, where nothing else is shown of each scenario.
fn explanations(
    scenarios: &[ScenarioResult],
    swept: &[&str],
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    for s in scenarios.iter().filter(|s| s.explained.is_some() || s.over_time.is_some()) {
        writeln!(out, "{}", entry::label(s, swept))?;
        for line in over_time::worst(s).into_iter().chain(explanation(s, width)) {
            write!(out, "{}", wrap::indented(&wrap::wrapped_to(&line, width - 2)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn explanation(s: &ScenarioResult, width: usize) -> Vec<String> {
    let names = sites::Names::of_sites(&s.nodes);
    s.explained.iter().flat_map(|e| explained::lines(&e.typical, &names, width)).collect()
}

fn scenario(
    s: &ScenarioResult,
    swept: &[&str],
    results: &Results,
    width: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}", entry::label(s, swept))?;
    for line in summary(s, results, width) {
        write!(out, "{}", wrap::indented(&wrap::wrapped_to(&line, width - 2)))?;
    }
    let latencies = latency(s);
    let latencies = if latencies.is_wider_than(width - 2) { latencies.transposed() } else { latencies };
    writeln!(out, "\n{}", wrap::indented(&latencies.text(width - 2)))?;
    if !s.nodes.is_empty() {
        writeln!(out, "{}", wrap::indented(&sites::table(s).text(width - 2)))?;
    }
    if let Some(connections) = connections::table(s) {
        writeln!(out, "{}", wrap::indented(&connections.text(width - 2)))?;
    }
    Ok(())
}

/// Counts and rates in sentences; the sentence about quantiles fits this width.
pub(crate) fn summary(s: &ScenarioResult, results: &Results, width: usize) -> Vec<String> {
    let r = &s.requests;
    let replications = entry::replications(s, results);
    let times = if replications == 1 { "replication" } else { "replications" };
    // One number would mislead: if none of a few failed, that proves little.
    let few = number::at_least(r.selected).filter(|_| r.failed == 0);
    let few = few.map_or(String::new(), |least| format!(" (95 % sure: at least {least})"));
    let mut lines = vec![format!(
        "{} of {} requests in {} {times} count; {} succeeded{few}",
        count(r.selected),
        count(r.total),
        replications,
        number::percentage(&s.success)
    )];
    if r.failed > 0 {
        lines.push(format!("{} failed: {}", count(r.failed), entry::errors(&r.errors)));
    }
    lines.push(format!(
        "{} requests/s, {} responses/s, goodput {}/s; attempts per request {}",
        with_interval(&s.request_rate_per_s),
        with_interval(&s.response_rate_per_s),
        with_interval(&s.goodput_per_s),
        with_interval(&s.attempts_per_request)
    ));
    lines.extend(over_time::worst(s));
    lines.extend(explanation(s, width));
    lines
}

/// Latencies of all requests and, where some failed, of the successes.
pub(crate) fn latency(s: &ScenarioResult) -> Table {
    let mut t = Table::new();
    t.column("latency ms", Side::Left);
    for heading in ["min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"] {
        t.column(heading, Side::Right);
    }
    t.row(latency_row("all", &s.latency_all));
    if s.requests.failed > 0 {
        t.row(latency_row("ok", &s.latency_ok));
    }
    t
}

fn latency_row(name: &str, l: &Latency) -> Vec<String> {
    let quantiles: [&Estimate; 5] = [&l.p50, &l.p90, &l.p95, &l.p99, &l.p999];
    let mut cells = vec![name.to_owned(), number::plain(l.min), with_interval(&l.mean)];
    cells.extend(quantiles.map(number::quantile));
    cells.push(number::plain(l.max));
    cells
}
