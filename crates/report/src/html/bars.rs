//! Bars, a row for each scenario or site: where the time goes, how busy queues are, how evenly targets are used.

use super::places::{Places, spent};
use super::shown::Selection;
use crate::number::{alone, percentage, plain, with_interval};
use crate::{entry, escaped, explained, page};
use std::fmt::Write as _;
use std::io::{self, Write};
use weir_sim::{NodeResult, Results, ScenarioResult, TimePart, Typical};

/// Sites of a scenario at most, where each has a row.
const MOST: usize = 6;

/// A row: its scenario, its bar (in shares of the width), and its figure.
struct Row {
    scenario: usize,
    label: String,
    small: String,
    bar: String,
    value: String,
}

fn rows(shown: &Selection, rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<div class=\"rows\">")?;
    for row in rows.iter().filter(|row| shown.is_drawn(row.scenario)) {
        let off = if shown.colours[row.scenario].is_none() { " off" } else { "" };
        let small = if row.small.is_empty() {
            String::new()
        } else {
            format!("<small>{}</small>", escaped(&row.small))
        };
        writeln!(
            out,
            "<div class=\"row{off}\" data-s=\"{}\"><span>{}{small}</span><svg class=\"bar\" role=\"img\" aria-label=\"{2}\">{3}</svg><span class=\"value\">{2}</span></div>",
            row.scenario,
            escaped(&row.label),
            escaped(&row.value),
            row.bar
        )?;
    }
    writeln!(out, "</div>")
}

/// A part of a bar, from one share of it to another.
fn part(from: f64, to: f64, rest: &str, title: &str) -> String {
    let (x, width) = (from.clamp(0.0, 1.0) * 100.0, (to.min(1.0) - from.max(0.0)).max(0.0) * 100.0);
    let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(title)) };
    format!("<rect x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"100%\"{rest}>{title}</rect>")
}

/// The quantiles with a row for their typical requests.
const TYPICAL: [f64; 2] = [0.5, 0.99];

/// Where the time goes: the parts of the mean latency, and of the requests near p50 and p99 where those were looked at.
pub(super) fn parts(
    results: &Results,
    shown: &Selection,
    places: &Places<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let all = &results.scenarios;
    let mean = |s: &ScenarioResult| s.nodes.iter().filter_map(spent).sum::<f64>();
    let longest = |s: &ScenarioResult| select_typical(s).map(|t| t.ms).fold(mean(s), f64::max);
    let most_ms = all.iter().map(longest).fold(0.0, f64::max);
    if most_ms <= 0.0 {
        return Ok(());
    }
    let looked_at = all.iter().any(|s| s.explained.is_some());
    let note = if looked_at {
        "The mean latency of all requests, and of those near p50 and p99 in the first replication, site by site, ms."
    } else {
        "The mean latency of all requests, site by site, ms."
    };
    let style = SiteStyle { most_ms, places };
    page::section("Where the time goes", note, out)?;
    style.write_keys(all, out)?;
    let mut drawn = Vec::new();
    for (scenario, s) in all.iter().enumerate() {
        let mut row = |small: &str, bar: String, value: String| {
            let small = if looked_at { small.to_owned() } else { String::new() };
            drawn.push(Row { scenario, label: shown.labels[scenario].clone(), small, bar, value });
        };
        row("mean", style.draw_mean(s), format!("{} ms", with_interval(&s.latency_all.mean)));
        for of in select_typical(s) {
            row(&explained::name(of.q), style.draw_typical(of, s), format!("{} ms", plain(Some(of.ms))));
        }
    }
    rows(shown, &drawn, out)?;
    writeln!(out, "</section>")
}

/// The typical requests of a scenario that have a row.
fn select_typical(s: &ScenarioResult) -> impl Iterator<Item = &Typical> {
    s.explained.iter().flat_map(|e| &e.typical).filter(|t| TYPICAL.contains(&t.q))
}

/// How bars show the time at sites: alike in all scenarios, so that they can be compared.
struct SiteStyle<'a> {
    /// The latency that is as long as a bar.
    most_ms: f64,
    places: &'a Places<'a>,
}

/// A part of a latency.
struct SitePart<'a> {
    place: &'a str,
    ms: f64,
    title: String,
}

impl SiteStyle<'_> {
    /// Writes the key of the colours, with grey only if something is.
    fn write_keys(&self, all: &[ScenarioResult], out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<div class=\"keys\">")?;
        for (c, name) in self.places.named().into_iter().enumerate() {
            key(&format!("var(--c{c})"), name, out)?;
        }
        let is_grey = |n: &NodeResult| spent(n).is_some() && self.places.colour(&n.place).is_none();
        if all.iter().flat_map(|s| &s.nodes).any(is_grey) {
            key("var(--grey)", "other sites", out)?;
        }
        writeln!(out, "</div>")
    }

    /// Draws parts one after the other.
    fn draw<'p>(&self, parts: impl Iterator<Item = SitePart<'p>>) -> String {
        let (mut at, mut bar) = (0.0, String::new());
        for SitePart { place, ms, title } in parts {
            let fill = match self.places.colour(place) {
                Some(c) => format!(" style=\"--c:var(--c{c})\""),
                None => " style=\"--c:var(--grey)\"".to_owned(),
            };
            bar += &part(at / self.most_ms, (at + ms) / self.most_ms, &fill, &title);
            at += ms;
        }
        bar
    }

    /// Draws the mean latency of a scenario.
    fn draw_mean(&self, s: &ScenarioResult) -> String {
        let title = |n: &NodeResult| {
            format!("{}: {} ms", self.places.names().name(&n.place), alone(&n.latency_part_ms))
        };
        let parts = s.nodes.iter();
        self.draw(parts.filter_map(|n| Some(SitePart { place: &n.place, ms: spent(n)?, title: title(n) })))
    }

    /// Draws typical requests of a scenario.
    fn draw_typical(&self, of: &Typical, s: &ScenarioResult) -> String {
        let title = |p: &TimePart| {
            let (ms, share) = (plain(Some(p.ms)), plain(Some((p.share * 100.0).round())));
            format!("{}: {ms} ms, {share} %", explained::words(p, self.places.names()))
        };
        // In the order of the mean's, the request's way.
        let mut parts: Vec<&TimePart> = of.parts.iter().collect();
        parts.sort_by_key(|p| s.nodes.iter().position(|n| n.place == p.place));
        self.draw(parts.into_iter().map(|p| SitePart { place: &p.place, ms: p.ms, title: title(p) }))
    }
}

pub(super) fn key(colour: &str, name: &str, out: &mut dyn Write) -> io::Result<()> {
    let name = escaped(name);
    writeln!(out, "<span class=\"key\" style=\"--c:{colour}\"><span class=\"swatch\"></span>{name}</span>")
}

/// How busy queues and servers are.
pub(super) fn utilisation(results: &Results, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
    let mut all = Vec::new();
    for (scenario, s) in results.scenarios.iter().enumerate() {
        let mut busy: Vec<(&NodeResult, f64)> =
            s.nodes.iter().filter_map(|n| Some((n, n.utilisation.value?))).collect();
        busy.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (n, share) in busy.into_iter().take(MOST) {
            let colour = if share > 0.95 { " style=\"--c:var(--warn)\"" } else { "" };
            all.push(Row {
                scenario,
                label: shown.labels[scenario].clone(),
                small: site(n),
                bar: part(0.0, share, colour, ""),
                value: format!("{} busy, {} waiting", percentage(&n.utilisation), alone(&n.queue_mean)),
            });
        }
    }
    if all.is_empty() {
        return Ok(());
    }
    page::section("How busy", "Share of slots or cores in use, and the mean number waiting at each.", out)?;
    rows(shown, &all, out)?;
    writeln!(out, "</section>")
}

/// How many requests the members of a site got.
pub(super) fn spread(results: &Results, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
    let mut found = Vec::new();
    for (scenario, s) in results.scenarios.iter().enumerate() {
        let mut of: Vec<(&NodeResult, f64, f64, f64)> = Vec::new();
        for n in s.nodes.iter().filter(|n| n.count > 1 && n.requests > 0) {
            let (Some(least), Some(most)) = (n.spread_min, n.spread_max) else { continue };
            let mean = n.requests as f64 / (n.count as f64 * f64::from(entry::replications(s, results)));
            // What follows one another has the same; the last of them is shown.
            of.retain(|(other, a, b, _)| (other.count, *a, *b) != (n.count, least, most));
            of.push((n, least, most, mean));
        }
        found.extend(of.into_iter().take(MOST).map(|of| (scenario, of)));
    }
    let widest = found.iter().map(|(_, (.., most, mean))| most / mean).fold(1.0, f64::max);
    let row = |(scenario, (n, least, most, mean)): (usize, (&NodeResult, f64, f64, f64))| {
        let at = |requests: f64| requests / mean / widest;
        let cv = n.spread_cv.value.unwrap_or_default();
        let mut bar = part(at(least), at(most), " class=\"pale\"", "");
        bar += &part(at(mean * (1.0 - cv)), at(mean * (1.0 + cv)), "", "");
        let _ = write!(bar, "<line x1=\"{0:.2}%\" x2=\"{0:.2}%\" y1=\"0\" y2=\"100%\"/>", at(mean) * 100.0);
        let value = format!("{}..{}", plain(Some(least)), plain(Some(most)));
        Row { scenario, label: shown.labels[scenario].clone(), small: site(n), bar, value }
    };
    let all: Vec<Row> = found.into_iter().map(row).collect();
    if all.is_empty() {
        return Ok(());
    }
    let note = "Requests of each member of a site: from the fewest to the most, dark within a standard \
        deviation of the mean (the line).";
    page::section("How evenly", note, out)?;
    rows(shown, &all, out)?;
    writeln!(out, "</section>")
}

fn site(n: &NodeResult) -> String {
    let name = if n.name == n.kind { String::new() } else { format!(" {}", n.name) };
    let many = if n.count > 1 { format!(" ×{}", n.count) } else { String::new() };
    format!("{}{name}{many}", n.place)
}
