//! How the first replication went over time: all scenarios in one chart each of latency, failures and goodput, then
//! each scenario by itself.

use super::marks;
use super::places::Places;
use super::shown::{Selection, needs_attention};
use super::time_charts::{TimeChart, TimeLine, chart_scenario, per_second};
use crate::{escaped, page};
use std::io::{self, Write};
use weir_sim::{Results, Series};

/// The most scenarios whose charts are open: those that fail or warn. The next ones are folded, and a note names the
/// place of the rest.
const OPEN: usize = 3;
const FOLDED: usize = 12;

const NOTE: &str = "The first replication, all of its requests, from its start to its end. A request counts where it ended, its \
    latency too; a quantile needs 2 (p50), 20 (p95) or 100 (p99) ends in its part of the run.";

/// A scenario that was explained.
struct ExplainedScenario<'a> {
    number: usize,
    series: &'a Series,
    is_open: bool,
}

pub(super) fn write(
    results: &Results,
    shown: &Selection,
    places: &Places<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut open = 0;
    let known: Vec<ExplainedScenario<'_>> = (results.scenarios.iter().enumerate())
        .filter_map(|(number, s)| {
            let series = &s.explained.as_ref()?.series;
            let is_open = needs_attention(s) && open < OPEN;
            open += usize::from(is_open);
            Some(ExplainedScenario { number, series, is_open })
        })
        .collect();
    if known.iter().all(|of| of.series.end_ns == 0) {
        return Ok(());
    }
    page::section("Over time", NOTE, out)?;
    if let [one] = &known[..] {
        chart_scenario(one.series, places, out)?;
        return writeln!(out, "</section>");
    }
    side_by_side(&known, shown, places, out)?;
    let is_shown = |at: usize, of: &ExplainedScenario<'_>| at < FOLDED || of.is_open;
    let mut folded = 0;
    for (at, of) in known.iter().enumerate() {
        if !is_shown(at, of) {
            folded += 1;
            continue;
        }
        let (open, label) = (if of.is_open { " open" } else { "" }, escaped(&shown.labels[of.number]));
        writeln!(out, "<details{open}><summary>{label} over time</summary>")?;
        chart_scenario(of.series, places, out)?;
        writeln!(out, "</details>")?;
    }
    if folded > 0 {
        writeln!(
            out,
            "<p class=\"note\">{folded} more scenarios: <code>--explain --output json</code> has them.</p>"
        )?;
    }
    writeln!(out, "</section>")
}

/// A scenario with its colour.
struct ColouredSeries<'a> {
    series: &'a Series,
    name: &'a str,
    colour: usize,
}

impl<'a> ColouredSeries<'a> {
    fn line(&self, values: Vec<Option<f64>>) -> TimeLine<'a> {
        TimeLine { series: self.series, name: self.name.to_owned(), colour: self.colour, values }
    }
}

/// The scenarios that have a colour, in the same charts.
fn side_by_side<'a>(
    known: &[ExplainedScenario<'a>],
    shown: &'a Selection,
    places: &Places<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let with_colour = |of: &ExplainedScenario<'a>| {
        let colour = shown.colours[of.number]?;
        Some(ColouredSeries { series: of.series, name: &shown.labels[of.number], colour })
    };
    let drawn: Vec<ColouredSeries<'_>> = known.iter().filter_map(with_colour).collect();
    let end_ns = drawn.iter().map(|of| of.series.end_ns).max().unwrap_or_default();
    let marks = drawn.iter().flat_map(|of| &of.series.marks);
    let shades = marks::shades(marks, places, &TimeChart::axis(end_ns));
    marks::legend(&shades, out)?;
    writeln!(out, "<div class=\"keys\">")?;
    for of in &drawn {
        super::bars::key(&format!("var(--c{})", of.colour), of.name, out)?;
    }
    writeln!(out, "</div>\n<div class=\"grid2\">")?;
    let lines =
        |values: fn(&Series) -> Vec<Option<f64>>| drawn.iter().map(|of| of.line(values(of.series))).collect();
    let mut charts = vec![("p99 of all requests, ms", "ms", lines(|s| s.latency_all.p99.clone()))];
    if drawn.iter().any(|of| !of.series.failures.is_empty()) {
        charts.push(("p99 of the successes, ms", "ms", lines(|s| s.latency_ok.p99.clone())));
        charts.push(("Failed per second", "", lines(failed)));
    }
    charts.push(("Goodput per second", "", lines(|s| per_second(s, &s.good))));
    for (heading, unit, lines) in charts {
        TimeChart { heading, unit, end_ns, shades: &shades, lines }.write(out)?;
    }
    writeln!(out, "</div>")
}

/// Failures of all kinds together.
fn failed(s: &Series) -> Vec<Option<f64>> {
    let mut sums = vec![0; s.arrivals.len()];
    s.failures.iter().for_each(|(_, counts)| sums.iter_mut().zip(counts).for_each(|(a, b)| *a += b));
    per_second(s, &sums)
}
