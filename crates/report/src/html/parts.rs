//! Results over time: the parts of the run of each scenario that has them, all over one axis of time, with what happened in the
//! course of changes as marks.

use super::shown::{Selection, needs_attention};
use crate::chart::{Axis, COLOURS, Chart, Series, Shade};
use crate::number::plain;
use crate::over_time::{seconds, worst};
use crate::{escaped, page};
use std::collections::BTreeSet;
use std::io::{self, Write};
use weir_sim::{FIGURES, OverTime, Results};
use weir_stats::Estimate;

/// Lines of a chart at most.
const LINES: usize = 6;
/// Points of a line at most: of more parts each few are drawn as one.
const POINTS: usize = 400;
/// More kinds of acts than this have no letters.
const SIGNED: usize = 12;
/// The most scenarios that have charts of their own; those that fail or warn are open.
const FOLDED: usize = 24;
const OPEN: usize = 3;

const NOTE_OF_ONE_RUN: &str = "All requests, in parts of the run. Latencies, successes and failures are those of requests \
    that were due in a part; a quantile needs ten requests beyond it.";
const NOTE: &str = "All requests of all replications, in parts of the run. Latencies, successes and failures are those of requests \
    that arrived in a part; a quantile is of all replications together, and needs ten requests beyond it.";

/// A scenario with results over time.
struct ScenarioParts<'a> {
    number: usize,
    of: &'a OverTime,
}

pub(super) fn write(results: &Results, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
    let all = results.scenarios.iter().enumerate();
    let told: Vec<ScenarioParts<'_>> =
        all.filter_map(|(number, s)| Some(ScenarioParts { number, of: s.over_time.as_ref()? })).collect();
    if told.is_empty() {
        return Ok(());
    }
    page::section("Over time, part by part", NOTE, out)?;
    let end_s = told.iter().map(|told| end_s(told.of)).fold(0.0, f64::max);
    if let [one] = &told[..] {
        own_charts(one.of, worst(&results.scenarios[one.number]), end_s, out)?;
        return writeln!(out, "</section>");
    }
    side_by_side(&told, shown, end_s, out)?;
    let mut open = 0;
    for one in told.iter().take(FOLDED) {
        let is_open = needs_attention(&results.scenarios[one.number]) && open < OPEN;
        open += usize::from(is_open);
        let (open, label) = (if is_open { " open" } else { "" }, escaped(&shown.labels[one.number]));
        writeln!(out, "<details{open}><summary>{label}, part by part</summary>")?;
        own_charts(one.of, worst(&results.scenarios[one.number]), end_s, out)?;
        writeln!(out, "</details>")?;
    }
    if told.len() > FOLDED {
        let more = told.len() - FOLDED;
        writeln!(out, "<p class=\"note\">{more} more: <code>--output json</code> has them.</p>")?;
    }
    writeln!(out, "</section>")
}

/// When the last part ends, s.
fn end_s(of: &OverTime) -> f64 {
    seconds(of, of.arrivals_per_s.len())
}

/// A line: a value for each part.
struct Line<'a> {
    of: &'a OverTime,
    name: String,
    colour: usize,
    values: Vec<Option<f64>>,
}

fn known(values: &[f64]) -> Vec<Option<f64>> {
    values.iter().copied().map(Some).collect()
}

/// Failures of all kinds together.
fn failed(of: &OverTime) -> Vec<Option<f64>> {
    let mut sums = vec![0.0; of.ok.len()];
    of.errors.iter().for_each(|(_, values)| sums.iter_mut().zip(values).for_each(|(a, b)| *a += b));
    known(&sums)
}

/// The scenarios that have a colour, in the same charts.
fn side_by_side(
    told: &[ScenarioParts<'_>],
    shown: &Selection,
    end_s: f64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let coloured: Vec<(&ScenarioParts<'_>, usize)> =
        told.iter().filter_map(|told| Some((told, shown.colours[told.number]?))).collect();
    writeln!(out, "<div class=\"keys\">")?;
    for (told, colour) in &coloured {
        super::bars::key(&format!("var(--c{colour})"), &shown.labels[told.number], out)?;
    }
    writeln!(out, "</div>\n<div class=\"grid2\">")?;
    let write = |heading: &str, unit, values: &dyn Fn(&OverTime) -> Vec<Option<f64>>, out: &mut dyn Write| {
        let lines = coloured.iter().map(|&(told, colour)| Line {
            of: told.of,
            name: shown.labels[told.number].clone(),
            colour,
            values: values(told.of),
        });
        let lines = lines.collect();
        PartChart { heading, unit, end_s, shades: &[], lines }.write(false, out)
    };
    for (figure, name) in FIGURES.iter().enumerate() {
        let heading = format!("{}, ms", in_words(name));
        write(&heading, "ms", &|of| of.latency_ms[figure].clone(), out)?;
    }
    if told.iter().any(|told| !told.of.errors.is_empty()) {
        write("Failed per second", "", &failed, out)?;
    }
    write("Succeeded per second", "", &|of| known(&of.ok), out)?;
    write("Requests in flight", "", &|of| known(&of.in_flight), out)?;
    let connections = |of: &OverTime| of.connections.as_deref().map(known).unwrap_or_default();
    write("Connections to servers", "", &connections, out)?;
    writeln!(out, "</div>")
}

fn in_words(figure: &str) -> String {
    match figure {
        "max" => "Greatest latency".to_owned(),
        "p999" => "p99.9 of all requests".to_owned(),
        name => format!("{name} of all requests"),
    }
}

/// The section of a run that was measured once. `worst`: its worst part in words.
pub(crate) fn write_one_run(of: &OverTime, worst: Option<String>, out: &mut dyn Write) -> io::Result<()> {
    page::section("Over time, part by part", NOTE_OF_ONE_RUN, out)?;
    own_charts(of, worst, end_s(of), out)?;
    writeln!(out, "</section>")
}

/// All charts of one scenario.
fn own_charts(of: &OverTime, worst: Option<String>, end_s: f64, out: &mut dyn Write) -> io::Result<()> {
    if let Some(line) = worst {
        writeln!(out, "<p>{}</p>", escaped(&line))?;
    }
    let shades = shades(of, &Axis::until(end_s));
    legend(&shades, out)?;
    writeln!(out, "<div class=\"grid2\">")?;
    let write = |heading: &str, unit, lines: Vec<Line<'_>>, out: &mut dyn Write| {
        PartChart { heading, unit, end_s, shades: &shades, lines }.write(true, out)
    };
    let line =
        |name: &str, colour, values: Vec<Option<f64>>| Line { of, name: name.to_owned(), colour, values };
    // The greatest first, so that none hides another.
    let latencies = [(4, "max", 4), (3, "p99.9", 2), (2, "p99", 1), (1, "p95", 6), (0, "p50", 0)];
    let latencies = latencies.map(|(figure, name, colour)| line(name, colour, of.latency_ms[figure].clone()));
    write("Latency of all requests, ms", "ms", latencies.into(), out)?;
    let rates = vec![
        line("arrivals", 0, known(&of.arrivals_per_s)),
        line("answers", 1, known(&of.responses_per_s)),
        line("succeeded", 2, known(&of.ok)),
    ];
    write("Per second", "", rates, out)?;
    let failures = of.errors.iter().map(|(kind, values)| line(kind.name(), *kind as usize, known(values)));
    write("Failed per second, by kind", "", failures.collect(), out)?;
    write("Requests in flight", "", vec![line("in flight", 0, known(&of.in_flight))], out)?;
    let connections = |values: &Option<Vec<f64>>| values.as_deref().map(known).unwrap_or_default();
    write("Connections to servers", "", vec![line("open", 0, connections(&of.connections))], out)?;
    write("Connections opened per second", "", vec![line("opened", 1, connections(&of.opened_per_s))], out)?;
    let members = |values: &dyn Fn(&weir_sim::WatchedOverTime) -> Vec<Option<f64>>,
                   others: Vec<Option<f64>>| {
        let own = of.watched.iter().take(LINES - 1).enumerate();
        let mut lines: Vec<Line<'_>> =
            own.map(|(at, member)| line(&member.node, at + 1, values(member))).collect();
        lines.push(line("mean of the others", 0, others));
        lines
    };
    let requests = members(&|member| known(&member.requests_per_s), known(&of.others.requests_per_s));
    write("Requests per second to members that change", "", requests, out)?;
    let inside = members(&|member| known(&member.in_flight), known(&of.others.in_flight));
    write("Requests in flight at them", "", inside, out)?;
    let held = members(&|member| connections(&member.connections), connections(&of.others.connections));
    write("Connections to them", "", held, out)?;
    let percent = |values: &[f64]| values.iter().map(|share| Some(share * 100.0)).collect();
    write("Share of their weight, %", "%", members(&|member| percent(&member.share), Vec::new()), out)?;
    writeln!(out, "</div>")
}

/// The acts as marks: those of one instant that say the same of several members are one.
fn shades(of: &OverTime, x: &Axis) -> Vec<Shade> {
    let mut groups: Vec<(u64, &str, BTreeSet<&str>)> = Vec::new();
    for act in &of.acts {
        match groups.iter_mut().find(|(at, what, _)| (*at, *what) == (act.at_ns, act.what)) {
            Some((.., nodes)) => drop(nodes.insert(&act.node)),
            None => groups.push((act.at_ns, act.what, BTreeSet::from([act.node.as_str()]))),
        }
    }
    let mut shades: Vec<Shade> = groups
        .into_iter()
        .map(|(at_ns, what, nodes)| {
            let at = at_ns as f64 / 1e9;
            let named: Vec<&str> = nodes.iter().copied().take(3).collect();
            let more = if nodes.len() > 3 { format!(" and {} more", nodes.len() - 3) } else { String::new() };
            let title = format!("{} s: {} {what}{more}", plain(Some(at)), named.join(", "));
            let from = x.position(at);
            Shade { from, to: (from + 0.002).min(1.0), strength: 1.0, sign: String::new(), title }
        })
        .collect();
    if shades.len() <= SIGNED {
        shades.iter_mut().zip('A'..='Z').for_each(|(shade, sign)| shade.sign = sign.to_string());
    }
    shades
}

fn legend(shades: &[Shade], out: &mut dyn Write) -> io::Result<()> {
    let Some(first) = shades.first() else { return Ok(()) };
    writeln!(out, "<ul class=\"marks\">")?;
    if shades.len() > SIGNED {
        let (count, first) = (shades.len(), escaped(&first.title));
        writeln!(out, "<li><span class=\"swatch\"></span>{count} acts, of which the first is {first}</li>")?;
    } else {
        for shade in shades {
            let (sign, title) = (escaped(&shade.sign), escaped(&shade.title));
            writeln!(out, "<li><span class=\"swatch\"></span><b>{sign}</b> {title}</li>")?;
        }
    }
    writeln!(out, "</ul>")
}

/// A chart over the time until `end_s`.
struct PartChart<'a> {
    heading: &'a str,
    unit: &'static str,
    end_s: f64,
    shades: &'a [Shade],
    lines: Vec<Line<'a>>,
}

/// A point of a line: from where to where it is, s, and its value.
type Point = ((f64, f64), Option<f64>);

impl Line<'_> {
    /// Its points: of too many parts each few together, the greatest of a latency and the mean of all else.
    fn points(&self, takes_greatest: bool) -> Vec<Point> {
        let few = self.values.len().div_ceil(POINTS).max(1);
        let merge = |(at, parts): (usize, &[Option<f64>])| {
            let (from, to) = (at * few, at * few + parts.len());
            let some = || parts.iter().copied().flatten();
            let value = match takes_greatest {
                true => some().reduce(f64::max),
                false => Some(some().sum::<f64>() / some().count() as f64).filter(|mean| mean.is_finite()),
            };
            ((seconds(self.of, from), seconds(self.of, to)), value)
        };
        self.values.chunks(few).enumerate().map(merge).collect()
    }
}

impl PartChart<'_> {
    fn write(mut self, with_key: bool, out: &mut dyn Write) -> io::Result<()> {
        self.lines.retain(|line| line.values.iter().any(Option::is_some));
        if with_key {
            self.lines.truncate(LINES);
        }
        if self.lines.is_empty() {
            return Ok(());
        }
        let all: Vec<Vec<Point>> = self.lines.iter().map(|line| line.points(self.unit == "ms")).collect();
        // Scenarios may have parts of other lengths: the places of all, each once.
        let mut spans: Vec<(f64, f64)> = all.iter().flatten().map(|(span, _)| *span).collect();
        let middle = |(from, to): &(f64, f64)| from + to;
        spans.sort_by(|a, b| middle(a).total_cmp(&middle(b)).then(a.0.total_cmp(&b.0)));
        spans.dedup();
        let place = |span: &(f64, f64)| spans.iter().position(|of| of == span).unwrap_or_default();
        let x = Axis::until(self.end_s);
        let label = |(from, to): &(f64, f64)| format!("{} s to {} s", plain(Some(*from)), plain(Some(*to)));
        let y = self.vertical(&all);
        let scale = if y.is_log() { ", logarithmic" } else { "" };
        let chart = Chart {
            label: format!("{}, part by part", self.heading),
            xs: spans.iter().map(|span| (x.position(middle(span) / 2.0), label(span))).collect(),
            ticks: x.ticks.iter().map(|(at, label)| (*at, format!("{label} s"))).collect(),
            y,
            unit: self.unit,
            shades: self.shades.to_vec(),
        };
        let series: Vec<Series> = self
            .lines
            .iter()
            .zip(all.iter().enumerate())
            .map(|(line, (number, points))| Series {
                number,
                name: line.name.clone(),
                colour: Some(line.colour % COLOURS),
                dashed: false,
                points: points.iter().map(|(span, value)| (place(span), estimate(*value))).collect(),
                dots: Vec::new(),
                bars: false,
                breaks: true,
            })
            .collect();
        writeln!(out, "<div>")?;
        out.write_all(chart.figure(&format!("{}{scale}", self.heading), true, &series).as_bytes())?;
        if with_key {
            writeln!(out, "<div class=\"keys\">")?;
            for line in &self.lines {
                super::bars::key(&format!("var(--c{})", line.colour % COLOURS), &line.name, out)?;
            }
            writeln!(out, "</div>")?;
        }
        writeln!(out, "</div>")
    }

    /// The vertical axis, logarithmic if latencies differ much.
    fn vertical(&self, all: &[Vec<Point>]) -> Axis {
        let mut values: Vec<f64> = all.iter().flatten().filter_map(|(_, value)| *value).collect();
        values.sort_by(f64::total_cmp);
        let high = values.last().copied().unwrap_or_default();
        let (low, usual) = (values.iter().find(|v| **v > 0.0), values.get(values.len() / 2));
        match usual {
            Some(usual) if self.unit == "ms" => Axis::of_latencies(low.copied(), *usual, high),
            _ => Axis::from_zero(high),
        }
    }
}

fn estimate(value: Option<f64>) -> Estimate {
    Estimate { value, ..Estimate::default() }
}
