//! Latency by percentile, on an axis that is linear in nines: a line for each scenario, with the band of its interval.

use super::shown::Selection;
use crate::chart::{Axis, Chart, Series, nines};
use crate::number::plain;
use crate::page;
use std::io::{self, Write};
use weir_sim::{AtQuantile, Results, ScenarioResult};

pub(super) fn write(results: &Results, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
    let Some(chart) = chart(&results.scenarios) else { return Ok(()) };
    let some_failed = results.scenarios.iter().any(|s| s.requests.failed > 0);
    let note = if some_failed {
        "On the horizontal axis 90, 99 and 99.9 % are equally far apart; bands are 95 % intervals; dashed: only the requests that succeeded."
    } else {
        "On the horizontal axis 90, 99 and 99.9 % are equally far apart; bands are 95 % intervals."
    };
    page::section("Latency by percentile", note, out)?;
    let (drawn, known) = (shown.drawn(), shown.labels.len());
    if drawn < known {
        writeln!(
            out,
            "<p class=\"note\">{drawn} of {known} scenarios can be chosen; all are in the tables.</p>"
        )?;
    }
    writeln!(out, "<div class=\"chosen\">")?;
    if shown.labels.len() > 1 {
        keys(shown, out)?;
    }
    let scale = if chart.y.is_log() { ", logarithmic" } else { "" };
    out.write_all(chart.figure(&format!("ms{scale}"), false, &series(&results.scenarios, shown)).as_bytes())?;
    writeln!(out, "</div>\n</section>")
}

/// More than this are looked for by name.
const MANY: usize = 12;

/// The legend of colours; with scripts, a selection.
fn keys(shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
    let many = shown.labels.len() > MANY;
    writeln!(out, "<div class=\"choose\">")?;
    if many {
        writeln!(
            out,
            "<input class=\"find\" type=\"search\" placeholder=\"{} scenarios; find one by its name\" aria-label=\"Find a scenario\">",
            shown.drawn()
        )?;
    }
    writeln!(out, "<div class=\"keys{}\">", if many { " many" } else { "" })?;
    let all = shown.labels.iter().zip(&shown.colours).enumerate();
    for (at, (label, colour)) in all.filter(|(at, _)| shown.is_drawn(*at)) {
        let label = crate::escaped(label);
        let (class, style, checked) = match colour {
            Some(c) => ("key", format!(" style=\"--c:var(--c{c})\""), format!(" checked data-c=\"{c}\"")),
            None => ("key off", String::new(), String::new()),
        };
        writeln!(
            out,
            "<label class=\"{class}\"{style}><input type=\"checkbox\" data-s=\"{at}\"{checked}><span class=\"swatch\"></span>{label}</label>"
        )?;
    }
    writeln!(out, "</div>\n</div>")
}

fn known(curve: &[AtQuantile]) -> impl Iterator<Item = (usize, &AtQuantile)> {
    curve.iter().enumerate().filter(|(_, at)| at.ms.value.is_some())
}

/// The axes: up to the highest quantile that is known of any. `None`: of none are there two.
fn chart(all: &[ScenarioResult]) -> Option<Chart> {
    let longest = all.iter().map(|s| &s.curve_all).max_by_key(|curve| known(curve).count())?;
    let last = known(longest).last().filter(|(at, _)| *at > 0)?.1.q;
    let value = |at: &AtQuantile| at.ms.value.unwrap_or_default();
    let curves = || all.iter().map(|s| &s.curve_all);
    let high = curves().flat_map(|curve| known(curve)).map(|(_, at)| value(at)).fold(0.0, f64::max);
    let low = curves()
        .filter_map(|curve| known(curve).map(|(_, at)| value(at)).find(|ms| *ms > 0.0))
        .fold(f64::INFINITY, f64::min);
    let usual = curves()
        .filter_map(|curve| known(curve).find(|(_, at)| at.q >= 0.5).map(|(_, at)| value(at)))
        .fold(f64::INFINITY, f64::min);
    let y = Axis::of_latencies(Some(low), usual, high);
    let at = |q: f64| nines(q) / nines(last);
    let ticks = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999].into_iter().filter(|q| *q <= last);
    Some(Chart {
        label: "Latency by percentile".to_owned(),
        xs: longest
            .iter()
            .filter(|point| point.q <= last)
            .map(|point| (at(point.q), named(point.q)))
            .collect(),
        ticks: ticks
            .map(|q| (at(q), if q == 0.0 { "min".to_owned() } else { plain(Some(q * 100.0)) }))
            .collect(),
        y,
        unit: "ms",
        shades: Vec::new(),
    })
}

fn named(q: f64) -> String {
    if q == 0.0 { "min".to_owned() } else { format!("p{}", plain(Some(q * 100.0))) }
}

fn series(all: &[ScenarioResult], shown: &Selection) -> Vec<Series> {
    let mut lines = Vec::new();
    for (number, s) in all.iter().enumerate().filter(|(number, _)| shown.is_drawn(*number)) {
        let mut line = |curve: &[AtQuantile], name: String, dashed: bool| {
            let marked = |q: f64| [0.5, 0.9, 0.95, 0.99, 0.999].contains(&q);
            lines.push(Series {
                number,
                name,
                colour: shown.colours[number],
                dashed,
                points: known(curve).map(|(at, point)| (at, point.ms)).collect(),
                dots: known(curve)
                    .filter(|(_, point)| marked(point.q) && !dashed)
                    .map(|(at, _)| at)
                    .collect(),
                bars: false,
                breaks: false,
            });
        };
        let label = &shown.labels[number];
        line(&s.curve_all, label.clone(), false);
        if s.requests.failed > 0 && s.requests.ok > 0 {
            line(&s.curve_ok, format!("{label}, ok"), true);
        }
    }
    // Later elements lie above earlier ones.
    lines.sort_by_key(|line| line.colour.is_some());
    lines
}
