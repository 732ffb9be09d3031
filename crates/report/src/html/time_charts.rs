//! The charts of one scenario over time, and a chart with time on its horizontal axis.

use super::marks;
use super::places::Places;
use crate::chart::{Axis, COLOURS, Chart, Series, Shade};
use crate::explained::rates;
use crate::number::plain;
use std::io::{self, Write};
use weir_sim::{
    ConnectionsOverTime, FleetOverTime, LatencyOverTime, PoolOverTime, Series as OverTime, SubsetsOverTime,
    UpOverTime,
};
use weir_stats::Estimate;

/// Lines of a chart at most.
const LINES: usize = 6;

/// A line of such a chart: a value for each part of its series.
pub(super) struct TimeLine<'a> {
    pub series: &'a OverTime,
    pub name: String,
    pub colour: usize,
    pub values: Vec<Option<f64>>,
}

/// A chart over the time until `end_ns`.
pub(super) struct TimeChart<'a> {
    pub heading: &'a str,
    pub unit: &'static str,
    pub end_ns: u64,
    pub shades: &'a [Shade],
    pub lines: Vec<TimeLine<'a>>,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Counts of parts as rates.
pub(super) fn per_second(s: &OverTime, counts: &[u64]) -> Vec<Option<f64>> {
    rates(s, counts).into_iter().map(Some).collect()
}

impl TimeChart<'_> {
    /// The horizontal axis.
    pub fn axis(end_ns: u64) -> Axis {
        Axis::until(seconds(end_ns))
    }

    /// The vertical axis, logarithmic if times differ much.
    fn vertical(&self) -> Axis {
        let mut values: Vec<f64> =
            self.lines.iter().flat_map(|line| &line.values).flatten().copied().collect();
        values.sort_by(f64::total_cmp);
        let high = values.last().copied().unwrap_or_default();
        let (low, usual) = (values.iter().find(|v| **v > 0.0), values.get(values.len() / 2));
        match usual {
            Some(usual) if self.unit == "ms" => Axis::of_latencies(low.copied(), *usual, high),
            _ => Axis::from_zero(high),
        }
    }

    /// Each value stands in the middle of its part.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let x = TimeChart::axis(self.end_ns);
        // Lines of several runs may have other parts: the places of all, each once.
        let mut spans: Vec<(u64, u64)> = self.lines.iter().flat_map(|line| spans(line.series)).collect();
        spans.sort_unstable_by_key(|(from, to)| (from + to, *from));
        spans.dedup();
        let place = |of: &(u64, u64)| {
            spans
                .binary_search_by_key(&(of.0 + of.1, of.0), |(from, to)| (from + to, *from))
                .unwrap_or_default()
        };
        let label = |from: u64, to: u64| {
            format!("{} s to {} s", plain(Some(seconds(from))), plain(Some(seconds(to))))
        };
        let y = self.vertical();
        let scale = if y.is_log() { ", logarithmic" } else { "" };
        let chart = Chart {
            label: format!("{}, over time", self.heading),
            xs: spans
                .iter()
                .map(|(from, to)| (x.position(seconds(from + to) / 2.0), label(*from, *to)))
                .collect(),
            ticks: x.ticks.iter().map(|(at, label)| (*at, format!("{label} s"))).collect(),
            y,
            unit: self.unit,
            shades: self.shades.to_vec(),
        };
        let line = |(number, line): (usize, &TimeLine<'_>)| Series {
            number,
            name: line.name.clone(),
            colour: Some(line.colour % COLOURS),
            dashed: false,
            points: spans_with(line).map(|(span, value)| (place(&span), estimate(value))).collect(),
            dots: Vec::new(),
            bars: false,
            breaks: true,
        };
        let series: Vec<Series> = self.lines.iter().enumerate().map(line).collect();
        writeln!(out, "<div>")?;
        out.write_all(chart.figure(&format!("{}{scale}", self.heading), true, &series).as_bytes())?;
        writeln!(out, "</div>")
    }

    /// The chart with the key of its lines.
    fn write_with_key(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<div>")?;
        self.write(out)?;
        writeln!(out, "<div class=\"keys\">")?;
        for line in &self.lines {
            super::bars::key(&format!("var(--c{})", line.colour % COLOURS), &line.name, out)?;
        }
        writeln!(out, "</div>\n</div>")
    }
}

fn estimate(value: Option<f64>) -> Estimate {
    Estimate { value, ..Estimate::default() }
}

/// The parts of a series: from where to where.
fn spans(series: &OverTime) -> impl Iterator<Item = (u64, u64)> {
    let mut from = 0;
    series.ends_ns().map(move |to| (std::mem::replace(&mut from, to), to))
}

fn spans_with<'l>(line: &'l TimeLine<'_>) -> impl Iterator<Item = ((u64, u64), Option<f64>)> + 'l {
    spans(line.series).zip(line.values.iter().copied())
}

/// The charts of one scenario.
struct ScenarioCharts<'a> {
    series: &'a OverTime,
    places: &'a Places<'a>,
    shades: Vec<Shade>,
}

pub(super) fn chart_scenario(series: &OverTime, places: &Places<'_>, out: &mut dyn Write) -> io::Result<()> {
    let shades = marks::shades(series.marks.iter(), places, &TimeChart::axis(series.end_ns));
    marks::legend(&shades, out)?;
    let charts = ScenarioCharts { series, places, shades };
    writeln!(out, "<div class=\"grid2\">")?;
    charts.write("Latency of all requests, ms", "ms", charts.latency(&series.latency_all), out)?;
    if !series.failures.is_empty() {
        charts.write("Latency of the successes, ms", "ms", charts.latency(&series.latency_ok), out)?;
        charts.write("Failed per second, by kind", "", charts.failures(), out)?;
    }
    charts.write("Per second", "", charts.throughput(), out)?;
    let in_flight = series.in_flight.iter().copied().map(Some).collect();
    charts.write("Requests in flight", "", vec![charts.line("in flight", 0, in_flight)], out)?;
    charts.write("Requests waiting, by site", "", charts.waiting(), out)?;
    charts.write("Members that are up, % of each site", "%", charts.up(), out)?;
    charts.write("Targets that balancers left out", "", charts.left_out(), out)?;
    charts.write("Members of fleets", "", charts.members(), out)?;
    charts.write("Connections, by site", "", charts.connections(|of| &of.open), out)?;
    charts.write(
        "Connections opened per second, by site",
        "",
        charts.connections(|of| &of.opened_per_s),
        out,
    )?;
    charts.write("Subsets of targets, by site", "", charts.subsets(), out)?;
    for fleet in &series.fleets {
        let heading = format!("Requests per second to a member of {}", fleet.fleet);
        charts.write(&heading, "", charts.band(fleet), out)?;
    }
    writeln!(out, "</div>")
}

impl<'a> ScenarioCharts<'a> {
    fn write(
        &self,
        heading: &str,
        unit: &'static str,
        mut lines: Vec<TimeLine<'_>>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        lines.truncate(LINES);
        lines.retain(|line| line.values.iter().any(Option::is_some));
        if lines.is_empty() {
            return Ok(());
        }
        TimeChart { heading, unit, end_ns: self.series.end_ns, shades: &self.shades, lines }
            .write_with_key(out)
    }

    fn line(&self, name: impl Into<String>, colour: usize, values: Vec<Option<f64>>) -> TimeLine<'a> {
        TimeLine { series: self.series, name: name.into(), colour, values }
    }

    fn latency(&self, of: &LatencyOverTime) -> Vec<TimeLine<'a>> {
        vec![
            self.line("p99", 1, of.p99.clone()),
            self.line("p95", 6, of.p95.clone()),
            self.line("p50", 0, of.p50.clone()),
        ]
    }

    /// Each kind has the same colour in all scenarios.
    fn failures(&self) -> Vec<TimeLine<'a>> {
        let line = |(kind, counts): &(weir_policy::Kind, Vec<u64>)| {
            self.line(kind.name(), *kind as usize, per_second(self.series, counts))
        };
        self.series.failures.iter().map(line).collect()
    }

    fn throughput(&self) -> Vec<TimeLine<'a>> {
        let s = self.series;
        let line = |name: &str, colour, counts: &[u64]| self.line(name, colour, per_second(s, counts));
        let mut lines = vec![line("arrivals", 0, &s.arrivals), line("ends", 1, &s.responses)];
        // Where all are good the line would hide that of the ends.
        if s.good != s.responses {
            lines.push(line("goodput", 2, &s.good));
        }
        lines
    }

    fn named(&self, place: &str, count: u64) -> String {
        let name = self.places.names().name(place);
        if count > 1 { format!("{name} ×{count}") } else { name.to_owned() }
    }

    /// A line for each site, in the colour of its place if no other line of the chart has that.
    fn of_sites(&self, sites: Vec<(&str, String, Vec<f64>)>) -> Vec<TimeLine<'a>> {
        let mut taken: Vec<usize> =
            sites.iter().filter_map(|(place, ..)| self.places.colour(place)).collect();
        let mut lines = Vec::new();
        for (place, name, values) in sites {
            let colour = self.places.colour(place).unwrap_or_else(|| {
                let free = (0..COLOURS).find(|colour| !taken.contains(colour)).unwrap_or_default();
                taken.push(free);
                free
            });
            lines.push(self.line(name, colour, values.into_iter().map(Some).collect()));
        }
        lines
    }

    /// The longest lines.
    fn waiting(&self) -> Vec<TimeLine<'a>> {
        let longest = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let mut queues: Vec<_> = self.series.queues.iter().filter(|q| longest(&q.waiting) > 0.0).collect();
        queues.sort_by(|a, b| longest(&b.waiting).total_cmp(&longest(&a.waiting)));
        queues.truncate(LINES);
        let site = |q: &&'a weir_sim::QueueOverTime| {
            (&q.place[..], self.named(&q.place, q.count), q.waiting.clone())
        };
        self.of_sites(queues.iter().map(site).collect())
    }

    /// How many subsets there are, and how many targets are in the smallest and the largest.
    fn subsets(&self) -> Vec<TimeLine<'a>> {
        let floats = |counts: &[u64]| counts.iter().map(|n| Some(*n as f64)).collect::<Vec<_>>();
        let lines = |of: &'a SubsetsOverTime| {
            [("subsets", &of.count), ("targets of the smallest", &of.least), ("of the largest", &of.most)]
                .map(|(what, counts)| (of.place.as_str(), what, floats(counts)))
        };
        let all = self.series.subsets.iter().flat_map(lines).take(LINES);
        let line = |(colour, (place, what, values)): (usize, (&str, &str, Vec<Option<f64>>))| {
            self.line(format!("{}: {what}", self.places.names().name(place)), colour, values)
        };
        all.enumerate().map(line).collect()
    }

    /// A line for each site of servers, or of listeners, that has connections.
    fn connections(&self, of: impl Fn(&ConnectionsOverTime) -> &Vec<f64>) -> Vec<TimeLine<'a>> {
        let site = |held: &'a ConnectionsOverTime| {
            (&held.place[..], self.places.names().name(&held.place).to_owned(), of(held).clone())
        };
        self.of_sites(self.series.connections.iter().take(LINES).map(site).collect())
    }

    /// How many members each fleet has, and how many of them a registry does not list.
    fn members(&self) -> Vec<TimeLine<'a>> {
        let both = |fleet: &'a FleetOverTime| {
            let unlisted = fleet.unlisted.iter().any(|n| *n > 0).then_some(&fleet.unlisted);
            let named = [
                (fleet.fleet.clone(), Some(&fleet.members)),
                (format!("{}, not listed", fleet.fleet), unlisted),
            ];
            named.into_iter().filter_map(|(name, counts)| Some((name, counts?)))
        };
        let values = |counts: &[u64]| counts.iter().map(|n| Some(*n as f64)).collect();
        let all = self.series.fleets.iter().flat_map(both).enumerate();
        all.map(|(colour, (name, counts))| self.line(name, colour, values(counts))).collect()
    }

    /// How evenly requests come to the members of a fleet.
    fn band(&self, fleet: &FleetOverTime) -> Vec<TimeLine<'a>> {
        let names = ["least", "p5", "median", "p95", "most"];
        let lines = names.iter().zip(&fleet.requests_per_s).enumerate();
        lines.map(|(colour, (name, values))| self.line(*name, colour, values.clone())).collect()
    }

    fn up(&self) -> Vec<TimeLine<'a>> {
        let site = |of: &'a UpOverTime| {
            let share = of.up.iter().map(|n| *n as f64 / of.count.max(1) as f64 * 100.0);
            (&of.place[..], self.named(&of.place, of.count), share.collect())
        };
        self.of_sites(self.series.up.iter().take(LINES).map(site).collect())
    }

    /// Targets that were down by checks, or ejected, by balancer; what never happened has no line.
    fn left_out(&self) -> Vec<TimeLine<'a>> {
        let both = |pool: &'a PoolOverTime| {
            [("down", &pool.down), ("ejected", &pool.ejected)].map(|(word, counts)| {
                let name = format!("{word}, of {}", self.named(&pool.place, pool.count));
                (name, counts.iter().map(|n| Some(*n as f64)).collect::<Vec<_>>())
            })
        };
        let all = self.series.pools.iter().flat_map(both);
        let happened = all.filter(|(_, values)| values.iter().any(|n| n.is_some_and(|n| n > 0.0)));
        happened.enumerate().map(|(colour, (name, values))| self.line(name, colour, values)).collect()
    }
}
