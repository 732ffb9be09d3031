//! Replications that ended in two ways: a dot for each, in the colour of its group, for a mean of both is the figure of
//! neither.

use super::shown::Selection;
use crate::chart::Axis;
use crate::number::plain;
use crate::{escaped, page};
use std::fmt::Write as _;
use std::io::{self, Write};
use weir_sim::{Results, ScenarioResult};

/// How the warning of it begins.
const WARNING: &str = "two outcomes:";

const NOTE: &str = "A dot for each replication, the first on top, by its share of requests that succeeded.";

pub(super) fn write(results: &Results, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
    let of_scenario = |(s, label)| Some((label, strip(&shares(s)?)));
    let all: Vec<(&String, String)> =
        results.scenarios.iter().zip(&shown.labels).filter_map(of_scenario).collect();
    if all.is_empty() {
        return Ok(());
    }
    page::section("Two outcomes", NOTE, out)?;
    for (label, figure) in all {
        writeln!(out, "<h3>{}</h3>\n{figure}", escaped(label))?;
    }
    writeln!(out, "</section>")
}

/// The shares of success of a scenario's replications, per cent, if they fall into two groups.
fn shares(s: &ScenarioResult) -> Option<Vec<f64>> {
    s.warnings.iter().any(|w| w.starts_with(WARNING)).then_some(())?;
    let each = s.each.get("success").filter(|each| each.len() > 1)?;
    Some(each.iter().map(|share| share * 100.0).collect())
}

/// The dots, with a key that names the groups.
fn strip(shares: &[f64]) -> String {
    let cut = middle_of_gap(shares);
    let (low, high): (Vec<f64>, Vec<f64>) = shares.iter().partition(|share| **share < cut);
    let ends = |of: fn(f64, f64) -> f64, from: f64| shares.iter().copied().fold(from, of);
    let x = Axis::around(ends(f64::min, f64::INFINITY), ends(f64::max, 0.0));
    let mut html = "<div class=\"keys\">".to_owned();
    for (colour, group) in [(1, &low), (0, &high)] {
        let mean = group.iter().sum::<f64>() / group.len().max(1) as f64;
        let _ = write!(
            html,
            "<span class=\"key\" style=\"--c:var(--c{colour})\"><span class=\"swatch\"></span>{} of {} replications: {} % on average</span>",
            group.len(),
            shares.len(),
            plain(Some(mean))
        );
    }
    html.push_str("</div>\n<figure class=\"chart small\">\n<figcaption>Succeeded, %</figcaption>\n<svg class=\"plot strip\" role=\"img\" aria-label=\"Replications by their share of success\">\n");
    for (at, label) in &x.ticks {
        let at = at * 100.0;
        let _ = writeln!(
            html,
            "<line class=\"grid\" x1=\"{at:.2}%\" x2=\"{at:.2}%\" y1=\"0\" y2=\"100%\"/><text class=\"tick\" x=\"{at:.2}%\" y=\"100%\" dy=\"21\" text-anchor=\"middle\">{label}</text>"
        );
    }
    for (number, share) in shares.iter().enumerate() {
        let y = (number as f64 + 0.5) / shares.len() as f64 * 100.0;
        let _ = writeln!(
            html,
            "<circle cx=\"{:.2}%\" cy=\"{y:.2}%\" r=\"4\" style=\"fill:var(--c{})\"><title>replication {number}: {} %</title></circle>",
            x.position(*share) * 100.0,
            u8::from(*share < cut),
            plain(Some(*share))
        );
    }
    html + "</svg>\n</figure>"
}

/// The middle of the widest gap between neighbours.
fn middle_of_gap(shares: &[f64]) -> f64 {
    let mut sorted = shares.to_vec();
    sorted.sort_by(f64::total_cmp);
    let gaps = sorted.windows(2).max_by(|a, b| (a[1] - a[0]).total_cmp(&(b[1] - b[0])));
    gaps.map_or(0.0, |gap| (gap[0] + gap[1]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_are_named() {
        let html = strip(&[93.0, 48.0, 92.0, 94.0, 50.0]);
        assert!(html.contains("2 of 5 replications: 49 % on average"), "{html}");
        assert!(html.contains("3 of 5 replications: 93 % on average"), "{html}");
        assert_eq!(html.matches("<circle").count(), 5);
        assert!(html.contains("style=\"fill:var(--c1)\"><title>replication 1: 48 %</title>"), "{html}");
    }
}
