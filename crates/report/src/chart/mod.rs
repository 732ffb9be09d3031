//! Charts as SVG: lines with their intervals over an axis. All positions are shares of the available room, so a chart
//! is as wide as its page allows, and its text keeps its size.
//!
//! The values under a pointer are in the chart as data (`page.js` shows it); without scripts the titles of lines say
//! the same.

mod axis;
mod histogram;

pub(crate) use axis::{Axis, nines};
pub(crate) use histogram::{LatencyCount, histogram};

use crate::number;
use crate::table::escaped;
use std::fmt::Write as _;
use weir_stats::Estimate;

/// The number of colours that distinguish lines.
pub(crate) const COLOURS: usize = 12;
/// Bands of more lines than this would hide each other.
const CLEAR: usize = 6;

/// A chart without its lines.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// A description for screen readers.
    pub label: String,
    /// Positions of values from left to right, each with its text.
    pub xs: Vec<(f64, String)>,
    /// Ticks from left to right.
    pub ticks: Vec<(f64, String)>,
    pub y: Axis,
    /// The unit of values.
    pub unit: &'static str,
    /// What is shaded.
    pub shades: Vec<Shade>,
}

/// A part of the horizontal axis in which something happened.
#[derive(Clone, Debug)]
pub(crate) struct Shade {
    pub from: f64,
    pub to: f64,
    /// How strong it is: the share of what could have happened, up to 1.
    pub strength: f64,
    /// A letter at its beginning, or nothing.
    pub sign: String,
    pub title: String,
}

/// A line.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Which of the page's scenarios it is, or which line of the chart.
    pub number: usize,
    pub name: String,
    /// Without one it is shown when it is chosen.
    pub colour: Option<usize>,
    pub dashed: bool,
    /// By the index of its place.
    pub points: Vec<(usize, Estimate)>,
    /// Places that have a dot.
    pub dots: Vec<usize>,
    /// Whether intervals are bars at the dots, and not a band.
    pub bars: bool,
    /// Whether the line ends where a place has no value, and begins anew behind it.
    pub breaks: bool,
}

/// The coordinates inside: a thousand each way.
const SIDE: f64 = 1000.0;

impl Shade {
    fn draw(&self, svg: &mut String) {
        let (x, width) = (self.from * 100.0, (self.to - self.from) * 100.0);
        let opacity = 0.03 + 0.11 * self.strength;
        let _ = writeln!(
            svg,
            "<rect class=\"shade\" x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"100%\" opacity=\"{opacity:.2}\"><title>{}</title></rect>",
            escaped(&self.title)
        );
        if !self.sign.is_empty() {
            let _ = writeln!(
                svg,
                "<text class=\"sign\" x=\"{x:.2}%\" dx=\"3\" y=\"0\" dy=\"12\">{}</text>",
                escaped(&self.sign)
            );
        }
    }
}

impl Chart {
    /// The chart. `attributes`: of the element, which is as large as they or the page's style say.
    pub(crate) fn svg(&self, attributes: &str, series: &[Series]) -> String {
        let mut svg = format!(
            "<svg class=\"plot\"{attributes} role=\"img\" aria-label=\"{}\">\n",
            escaped(&self.label)
        );
        self.shades.iter().for_each(|shade| shade.draw(&mut svg));
        for (at, label) in &self.y.ticks {
            let y = (1.0 - at) * 100.0;
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{y:.2}%\" y2=\"{y:.2}%\"/><text class=\"tick\" x=\"0\" dx=\"-6\" y=\"{y:.2}%\" dy=\"4\" text-anchor=\"end\">{}</text>",
                escaped(label)
            );
        }
        for (at, label) in &self.ticks {
            let x = at * 100.0;
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"0\" y2=\"100%\"/><text class=\"tick\" x=\"{x:.2}%\" y=\"100%\" dy=\"21\" text-anchor=\"middle\">{}</text>",
                escaped(label)
            );
        }
        svg.push_str(
            "<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" width=\"100%\" height=\"100%\">\n",
        );
        series.iter().for_each(|series| self.line(&mut svg, series));
        svg + "</svg>\n</svg>\n"
    }

    fn line(&self, svg: &mut String, series: &Series) {
        let on =
            series.colour.map_or(String::new(), |c| format!(" on\" style=\"--c:var(--c{})", c % COLOURS));
        let dashed = if series.dashed { " dashed" } else { "" };
        let at: Vec<(usize, usize, f64, &Estimate)> = series
            .points
            .iter()
            .enumerate()
            .filter_map(|(number, (x, e))| Some((number, *x, self.xs.get(*x)?.0 * SIDE, e)))
            .filter(|(.., e)| e.value.is_some())
            .collect();
        let _ = write!(
            svg,
            "<g class=\"s{dashed}{on}\" data-s=\"{}\"><title>{}</title>",
            series.number,
            escaped(&self.title(series))
        );
        if !series.bars && at.iter().any(|(.., e)| e.high.is_some()) {
            let up = at.iter().map(|(_, _, x, e)| (*x, e.high.or(e.value)));
            let down = at.iter().rev().map(|(_, _, x, e)| (*x, e.low.or(e.value)));
            let _ = write!(svg, "<path class=\"band\" d=\"{}Z\"/>", self.path(up.chain(down)));
        }
        let runs = at.chunk_by(|a, b| !series.breaks || a.0 + 1 == b.0);
        let d: String = runs.map(|run| self.path(run.iter().map(|(_, _, x, e)| (*x, e.value)))).collect();
        let _ = write!(svg, "<path class=\"line\" d=\"{d}\"/>");
        let (mut dots, mut bars) = (String::new(), String::new());
        for (_, _, x, e) in at.iter().filter(|(_, place, ..)| series.dots.contains(place)) {
            let _ = write!(dots, "M{x:.1} {:.1}h0", self.y_of(e.value.unwrap_or_default()));
            if let (Some(low), Some(high), true) = (e.low, e.high, series.bars) {
                let _ = write!(bars, "M{x:.1} {:.1}V{:.1}", self.y_of(low), self.y_of(high));
            }
        }
        if !bars.is_empty() {
            let _ = write!(svg, "<path class=\"bars\" d=\"{bars}\"/>");
        }
        if !dots.is_empty() {
            let _ = write!(svg, "<path class=\"dots\" d=\"{dots}\"/>");
        }
        svg.push_str("</g>\n");
    }

    fn path(&self, points: impl Iterator<Item = (f64, Option<f64>)>) -> String {
        let (mut d, mut number) = (String::new(), 0);
        for (x, value) in points {
            let begin = if number == 0 { 'M' } else { 'L' };
            let _ = write!(d, "{begin}{x:.1} {:.1}", self.y_of(value.unwrap_or_default()));
            number += 1;
        }
        // A value between two gaps is seen too.
        if number == 1 { d + "h3" } else { d }
    }

    fn y_of(&self, value: f64) -> f64 {
        (1.0 - self.y.position(value)) * SIDE
    }

    /// The title of a line, with its values if it has dots.
    fn title(&self, series: &Series) -> String {
        let said = series.points.iter().filter(|(x, e)| series.dots.contains(x) && e.value.is_some());
        let said: Vec<String> = said.map(|(x, e)| format!("{} {}", self.xs[*x].1, self.words(e))).collect();
        if said.is_empty() { series.name.clone() } else { format!("{}: {}", series.name, said.join(", ")) }
    }

    fn words(&self, e: &Estimate) -> String {
        if self.unit == "%" {
            number::with_interval(e) + " %"
        } else {
            format!("{} {}", number::quantile(e), self.unit)
        }
    }

    /// The values under a pointer.
    pub(crate) fn data(&self, series: &[Series]) -> String {
        let at: Vec<String> = self.xs.iter().map(|(at, _)| format!("{at:.4}")).collect();
        let labels: Vec<&str> = self.xs.iter().map(|(_, label)| &label[..]).collect();
        let lines: Vec<serde_json::Value> = series
            .iter()
            .map(|s| {
                let mut values = vec![None; self.xs.len()];
                for (x, e) in s.points.iter().filter(|(_, e)| e.value.is_some()) {
                    values[*x] = Some((
                        format!("{:.3}", 1.0 - self.y.position(e.value.unwrap_or_default())),
                        self.words(e),
                    ));
                }
                serde_json::json!({"s": s.number, "name": s.name, "values": values})
            })
            .collect();
        let data = serde_json::json!({"at": at, "labels": labels, "lines": lines}).to_string();
        // Nothing in it ends the element.
        format!("<script type=\"application/json\">{}</script>\n", data.replace('<', "\\u003c"))
    }

    /// The chart with its heading and its data.
    pub(crate) fn figure(&self, heading: &str, small: bool, series: &[Series]) -> String {
        let crowded = series.iter().filter(|line| line.colour.is_some()).count() > CLEAR;
        let class =
            format!("chart{}{}", if small { " small" } else { "" }, if crowded { " crowded" } else { "" });
        format!(
            "<figure class=\"{class}\">\n<figcaption>{}</figcaption>\n{}{}</figure>\n",
            escaped(heading),
            self.svg("", series),
            self.data(series)
        )
    }
}
