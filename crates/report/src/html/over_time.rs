//! How the first replication went over time: rates, requests in flight and waiting, and what was up.

use super::shown::Selection;
use crate::chart::{Axis, COLOURS, Chart, Series};
use crate::explained::rates;
use crate::number::plain;
use crate::sites::Names;
use crate::{escaped, page};
use std::io::{self, Write};
use weir_sim::{Results, ScenarioResult};
use weir_stats::Estimate;

/// The number of scenarios with open charts; the next ones are folded, and a note names the place of the rest.
const OPEN: usize = 2;
const FOLDED: usize = 12;
/// Lines of a chart at most.
const LINES: usize = 6;

pub(super) fn write(results: &Results, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
    let all = results.scenarios.iter().zip(&shown.labels);
    let of = |(s, label)| {
        let s: &ScenarioResult = s;
        Some((&s.explained.as_ref()?.series, Names::of_sites(&s.nodes), label))
    };
    let known: Vec<(&weir_sim::Series, Names<'_>, &String)> = all.filter_map(of).collect();
    if known.iter().all(|(series, _, _)| series.end_ns == 0) {
        return Ok(());
    }
    page::section(
        "Over time",
        "The first replication, all of its requests, from its start to its end.",
        out,
    )?;
    for (at, (series, names, label)) in known.iter().enumerate().take(FOLDED) {
        let (one, label) = (known.len() == 1, escaped(label));
        match at {
            _ if one => {}
            ..OPEN => writeln!(out, "<h3>{label}</h3>")?,
            _ => writeln!(out, "<details><summary>{label}</summary>")?,
        }
        charts(series, names, out)?;
        if !one && at >= OPEN {
            writeln!(out, "</details>")?;
        }
    }
    if known.len() > FOLDED {
        let more = known.len() - FOLDED;
        writeln!(
            out,
            "<p class=\"note\">{more} more scenarios: <code>--explain --output json</code> has them.</p>"
        )?;
    }
    writeln!(out, "</section>")
}

/// A line of a chart.
struct Line {
    name: String,
    values: Vec<f64>,
}

impl Line {
    fn new(name: impl Into<String>, values: Vec<f64>) -> Line {
        Line { name: name.into(), values }
    }
}

fn charts(s: &weir_sim::Series, names: &Names<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (arrivals, responses) = (rates(s, &s.arrivals), rates(s, &s.responses));
    let mut charts: Vec<(&str, Vec<Line>)> = vec![
        ("Per second", vec![Line::new("arrivals", arrivals), Line::new("responses", responses)]),
        ("Requests in flight", vec![Line::new("in flight", s.in_flight.clone())]),
    ];
    let many = |place: &str, count: u64| {
        let name = names.name(place);
        if count > 1 { format!("{name} ×{count}") } else { name.to_owned() }
    };
    let mut lines: Vec<Line> =
        s.queues.iter().map(|q| Line::new(many(&q.place, q.count), q.waiting.clone())).collect();
    let longest = |line: &Line| line.values.iter().copied().fold(0.0, f64::max);
    lines.retain(|line| longest(line) > 0.0);
    lines.sort_by(|a, b| longest(b).total_cmp(&longest(a)));
    charts.push(("Requests waiting, by site", lines));
    let up = |of: &weir_sim::UpOverTime| {
        let share = of.up.iter().map(|n| *n as f64 / of.count.max(1) as f64 * 100.0);
        Line::new(many(&of.place, of.count), share.collect())
    };
    charts.push(("Up, %", s.up.iter().map(up).collect()));
    charts.push(("Targets that balancers left out", left_out(s, &many)));
    writeln!(out, "<div class=\"grid2\">")?;
    for (heading, mut lines) in charts.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        lines.truncate(LINES);
        writeln!(out, "<div>")?;
        drawn(s, heading, &lines, out)?;
        writeln!(out, "</div>")?;
    }
    writeln!(out, "</div>")
}

/// Targets that were down by checks, or ejected, by balancer; what never happened has no line.
fn left_out(s: &weir_sim::Series, many: &dyn Fn(&str, u64) -> String) -> Vec<Line> {
    let both = |pool: &weir_sim::PoolOverTime| {
        [("down", &pool.down), ("ejected", &pool.ejected)].map(|(word, counts)| {
            let counts: Vec<f64> = counts.iter().map(|n| *n as f64).collect();
            Line::new(format!("{word}, of {}", many(&pool.place, pool.count)), counts)
        })
    };
    s.pools.iter().flat_map(both).filter(|line| line.values.iter().any(|n| *n > 0.0)).collect()
}

fn drawn(s: &weir_sim::Series, heading: &str, lines: &[Line], out: &mut dyn Write) -> io::Result<()> {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let x = Axis::from_zero(seconds(s.end_ns));
    let ends = (1..=s.arrivals.len() as u64).map(|n| (n * s.part_ns).min(s.end_ns));
    let most = lines.iter().flat_map(|line| &line.values).copied().fold(0.0, f64::max);
    let chart = Chart {
        label: format!("{heading}, over time"),
        xs: ends
            .map(|ns| (x.position(seconds(ns)), format!("until {} s", plain(Some(seconds(ns))))))
            .collect(),
        ticks: x.ticks.iter().map(|(at, label)| (*at, format!("{label} s"))).collect(),
        y: Axis::from_zero(most),
        unit: "",
    };
    let series: Vec<Series> = lines
        .iter()
        .enumerate()
        .map(|(number, line)| Series {
            number,
            name: line.name.clone(),
            colour: Some(number % COLOURS),
            dashed: false,
            points: line
                .values
                .iter()
                .map(|v| Estimate { value: Some(*v), ..Estimate::default() })
                .enumerate()
                .collect(),
            dots: Vec::new(),
            bars: false,
        })
        .collect();
    out.write_all(chart.figure(heading, true, &series).as_bytes())?;
    if lines.len() > 1 || lines.iter().any(|line| line.name.contains('/')) {
        writeln!(out, "<div class=\"keys\">")?;
        for (c, line) in lines.iter().enumerate() {
            super::bars::key(&format!("var(--c{c})"), &line.name, out)?;
        }
        writeln!(out, "</div>")?;
    }
    Ok(())
}
