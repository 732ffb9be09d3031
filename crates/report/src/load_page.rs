//! A load run as one self-contained page: its figures, its parts, its latencies by percentile and as a histogram.

use crate::chart::{Axis, Chart, LatencyCount, Series, histogram, nines};
use crate::load::{judged, latencies, lines, parts, success, worst_part};
use crate::number::{count, plain};
use crate::table::escaped;
use crate::{expected, expected_page, html, page};
use std::collections::BTreeMap;
use std::io::{self, Write};
use weir_load::{Latency, Outcome};
use weir_stats::{Estimate, Histogram};

/// The quantiles of the curve; those with fewer than ten requests beyond them are left out.
const CURVE: [f64; 16] =
    [0.0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999];

pub(crate) fn write(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let title = format!("{} to {}", outcome.scenario, outcome.to);
    page::begin(&title, &title, out)?;
    if let Some(why) = &outcome.void {
        page::warning(&format!("This run is void, its figures mean nothing: {why}"), "", out)?;
    }
    outcome.warnings.iter().try_for_each(|warning| page::warning(warning, "", out))?;
    page::section("Summary", "", out)?;
    writeln!(out, "<div class=\"tiles\">")?;
    for (value, what) in tiles(outcome) {
        writeln!(out, "<div class=\"tile\"><b>{}</b><span>{}</span></div>", escaped(&value), escaped(what))?;
    }
    writeln!(out, "</div>")?;
    for line in lines(outcome) {
        writeln!(out, "<p>{}</p>", escaped(&line))?;
    }
    writeln!(out, "<div class=\"wide\" tabindex=\"0\">\n{}</div>\n</section>", latencies(outcome).html())?;
    expected_page::write(expected::rows_of(&judged(outcome)), out)?;
    if let Some(of) = parts(outcome) {
        html::write_one_run(&of, worst_part(&of), out)?;
    }
    curves(outcome, out)?;
    if let Some(figure) = histogram(&counts(outcome)) {
        page::section(
            "How long requests took",
            "Those that count, by latency; red: those that failed.",
            out,
        )?;
        writeln!(out, "{figure}</section>")?;
    }
    page::end(&format!("weir {} · seed {}", env!("CARGO_PKG_VERSION"), outcome.seed), out)
}

fn tiles(outcome: &Outcome) -> Vec<(String, &'static str)> {
    let [p50, _, p95, p99, _] = Latency::new(&outcome.all).quantiles;
    vec![
        (format!("{} %", plain(success(outcome).map(|share| share * 100.0))), "succeeded"),
        (plain(p50), "p50, ms"),
        (plain(p95), "p95, ms"),
        (plain(p99), "p99, ms"),
        (plain(outcome.rate_per_s), "requests per second"),
        (count(outcome.connections), "connections"),
    ]
}

/// Latency by percentile: of all requests, and of the successes where some failed.
fn curves(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let is_known = |q: &f64| outcome.all.quantile(*q).is_some();
    let known: Vec<f64> = CURVE.into_iter().filter(is_known).collect();
    let [_, .., last] = known[..] else { return Ok(()) };
    let ms = |of: &Histogram, q: f64| of.quantile(q).map(|ns| ns / 1e6);
    let named = |q: f64| if q == 0.0 { "min".to_owned() } else { plain(Some(q * 100.0)) };
    let at = |q: f64| nines(q) / nines(last);
    let high = ms(&outcome.all, last).unwrap_or_default();
    let usual = ms(&outcome.all, 0.5).unwrap_or_default();
    let low = ms(&outcome.all, 0.0).filter(|low| *low > 0.0);
    let y = Axis::of_latencies(low, usual, high);
    let ticks = known.iter().filter(|q| [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999].contains(*q));
    let chart = Chart {
        label: "Latency by percentile".to_owned(),
        xs: known.iter().map(|q| (at(*q), named(*q))).collect(),
        ticks: ticks.map(|q| (at(*q), named(*q))).collect(),
        y,
        unit: "ms",
        shades: Vec::new(),
    };
    let line = |number: usize, name: &str, of: &Histogram| Series {
        number,
        name: name.to_owned(),
        colour: Some(number),
        dashed: number > 0,
        points: (known.iter().enumerate())
            .map(|(x, q)| (x, Estimate { value: ms(of, *q), low: None, high: None }))
            .collect(),
        dots: Vec::new(),
        bars: false,
        breaks: false,
    };
    let mut series = vec![line(0, "all requests", &outcome.all)];
    let mut note = "On the horizontal axis 90, 99 and 99.9 % are equally far apart.".to_owned();
    if outcome.requests.failed() > 0 && outcome.ok.count() > 0 {
        series.push(line(1, "successes", &outcome.ok));
        note.push_str(" Dashed: the requests that succeeded.");
    }
    page::section("Latency by percentile", &note, out)?;
    let scale = if chart.y.is_log() { ", logarithmic" } else { "" };
    writeln!(out, "{}</section>", chart.figure(&format!("ms{scale}"), false, &series))
}

/// How many requests took how long.
fn counts(outcome: &Outcome) -> Vec<LatencyCount> {
    let ok: BTreeMap<u64, u64> = outcome.ok.classes().map(|(from, _, n)| (from, n)).collect();
    let ms = |ns: u64| ns as f64 / 1e6;
    let count = |(from, to, n): (u64, u64, u64)| {
        let ok = ok.get(&from).copied().unwrap_or_default();
        LatencyCount { from_ms: ms(from), to_ms: ms(to), ok, failed: n.saturating_sub(ok) }
    };
    outcome.all.classes().map(count).collect()
}
