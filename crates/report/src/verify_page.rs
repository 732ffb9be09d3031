//! A verification as one self-contained page: both percentile curves in one plot, the differences with their bands, the
//! servers' shares.

use crate::chart::{Axis, Chart, Series, nines};
use crate::table::escaped;
use crate::verify::{beside, short, statistics};
use crate::verify_summary::sentence;
use crate::{number, page};
use std::fmt::Write as _;
use std::io::{self, Write};
use weir_stats::Estimate;
use weir_verify::{AtQuantile, Statistic, TargetShares, Unit, Verification};

pub(crate) fn write(found: &Verification, out: &mut dyn Write) -> io::Result<()> {
    let file = &found.file;
    page::begin(&format!("{file} verified"), &format!("{file}, simulated and real"), out)?;
    for s in &found.scenarios {
        for line in s.void.iter().map(|why| format!("a run is void: {why}")).chain(s.warnings.iter().cloned())
        {
            page::warning(&line, &s.name, out)?;
        }
    }
    for (number, s) in found.scenarios.iter().enumerate() {
        let verdict = s.verdict.name();
        writeln!(
            out,
            "<section>\n<h2>{} <span class=\"{verdict}\">{}</span></h2>",
            escaped(&s.name),
            escaped(&sentence(s))
        )?;
        if s.runs > 0 {
            writeln!(out, "{}", curves(number, &s.curve))?;
            writeln!(out, "{}", differences(&s.statistics))?;
            writeln!(out, "<div class=\"wide\" tabindex=\"0\">\n{}</div>", statistics(s).html())?;
            if s.targets.len() > 1 {
                writeln!(out, "{}", shares(&s.targets))?;
            }
            for line in beside(s) {
                writeln!(out, "<p class=\"note\">{}</p>", escaped(&line))?;
            }
        }
        writeln!(out, "</section>")?;
    }
    let (version, plan) = (env!("CARGO_PKG_VERSION"), short(&found.plan));
    page::end(&format!("weir {version} · seed {} · plan {plan}", found.seed), out)
}

/// Latency over the percentile, on an axis that is linear in nines.
fn curves(number: usize, curve: &[AtQuantile]) -> String {
    let known: Vec<&AtQuantile> =
        curve.iter().filter(|at| at.simulated.value.is_some() && at.real.value.is_some()).collect();
    let [first, .., last] = &known[..] else {
        return "<p class=\"note\">Too few requests count for a curve.</p>".to_owned();
    };
    let at = |q: f64| 0.02 + 0.96 * (nines(q) - nines(first.q)) / (nines(last.q) - nines(first.q));
    let ends = known
        .iter()
        .flat_map(|at| [at.simulated.high.or(at.simulated.value), at.real.high.or(at.real.value)]);
    let percent = |q: f64| plain(q * 100.0);
    let chart = Chart {
        label: "Latency by percentile, simulated and real".to_owned(),
        xs: known.iter().map(|point| (at(point.q), format!("p{}", percent(point.q)))).collect(),
        ticks: known.iter().map(|point| (at(point.q), percent(point.q))).collect(),
        y: Axis::from_zero(ends.flatten().fold(0.0, f64::max)),
        unit: "ms",
        shades: Vec::new(),
    };
    let series = |colour: usize, name: &str, of: fn(&AtQuantile) -> Estimate| Series {
        number: 2 * number + colour,
        name: name.to_owned(),
        colour: Some(colour),
        dashed: colour == 1,
        points: known.iter().map(|point| of(point)).enumerate().collect(),
        dots: (0..known.len()).collect(),
        bars: false,
        breaks: false,
    };
    let both = [series(0, "simulated", |at| at.simulated), series(1, "real", |at| at.real)];
    let mut keys = "<div class=\"keys\">".to_owned();
    for (c, name) in ["simulated", "real (dashed)"].iter().enumerate() {
        let _ = write!(
            keys,
            "<span class=\"key\" style=\"--c:var(--c{c})\"><span class=\"swatch\"></span>{name}</span>"
        );
    }
    keys + "</div>\n"
        + &chart.figure("Latency by percentile, ms; bands: 95 % intervals of the runs", false, &both)
}

fn plain(x: f64) -> String {
    number::plain(Some(x))
}

/// Each difference with its band, in units of what is allowed.
fn differences(statistics: &[Statistic]) -> String {
    const SPAN: f64 = 2.0;
    let x = |tolerances: f64| (tolerances.clamp(-SPAN, SPAN) + SPAN) / (2.0 * SPAN) * 100.0;
    let mut html = "<p class=\"note\">Real less simulated, with its 95 % interval; shaded: what is allowed.</p>\n<div class=\"rows\">\n".to_owned();
    for s in statistics {
        let (of, factor) = match s.unit {
            Unit::Ratio => (s.relative, 1.0),
            Unit::Points => (s.difference, 100.0),
        };
        let share = |v: Option<f64>| v.map(|v| v * factor / s.tolerance);
        let verdict = s.verdict.name();
        let _ = write!(
            html,
            "<div class=\"row\"><span>{}</span><svg class=\"bar {verdict}\" role=\"img\" aria-label=\"{verdict}\"><rect class=\"allowed\" x=\"{:.2}%\" width=\"{:.2}%\" height=\"100%\"/><line x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"100%\" opacity=\".4\"/>",
            escaped(s.name),
            x(-1.0),
            x(1.0) - x(-1.0)
        );
        if let (Some(low), Some(high)) = (share(of.low), share(of.high)) {
            let _ = write!(
                html,
                "<line class=\"whisker\" x1=\"{:.2}%\" x2=\"{:.2}%\" y1=\"50%\" y2=\"50%\"/>",
                x(low),
                x(high)
            );
        }
        if let Some(value) = share(of.value) {
            let _ = write!(html, "<circle cx=\"{:.2}%\" cy=\"50%\" r=\"4\"/>", x(value));
        }
        let _ = writeln!(html, "</svg><span class=\"value {verdict}\">{verdict}</span></div>");
    }
    html + "</div>"
}

/// Each server's share of the requests, in both worlds: what agrees lies on the diagonal.
fn shares(targets: &[TargetShares]) -> String {
    let most = targets.iter().flat_map(|t| [t.simulated.value, t.real.value]).flatten().fold(0.0, f64::max);
    let axis = Axis::from_zero(most * 100.0);
    let mut svg = "<figure class=\"chart\">\n<figcaption>Share of each server, %: real over simulated; one dot a server</figcaption>\n<svg class=\"plot square\" role=\"img\" aria-label=\"Shares of the servers\">\n".to_owned();
    for (at, label) in &axis.ticks {
        let (x, y) = (at * 100.0, (1.0 - at) * 100.0);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{y:.2}%\" y2=\"{y:.2}%\"/><text class=\"tick\" x=\"0\" dx=\"-6\" y=\"{y:.2}%\" dy=\"4\" text-anchor=\"end\">{label}</text><text class=\"tick\" x=\"{x:.2}%\" y=\"100%\" dy=\"21\" text-anchor=\"middle\">{label}</text>"
        );
    }
    svg.push_str("<line class=\"grid\" x1=\"0\" y1=\"100%\" x2=\"100%\" y2=\"0\"/>\n");
    for t in targets {
        let (Some(simulated), Some(real)) = (t.simulated.value, t.real.value) else { continue };
        let _ = writeln!(
            svg,
            "<circle class=\"dot\" cx=\"{:.2}%\" cy=\"{:.2}%\" r=\"3.5\"><title>{}: simulated {} %, real {} %</title></circle>",
            axis.position(simulated * 100.0) * 100.0,
            (1.0 - axis.position(real * 100.0)) * 100.0,
            escaped(&t.name),
            plain(simulated * 100.0),
            plain(real * 100.0)
        );
    }
    svg + "</svg>\n</figure>"
}
