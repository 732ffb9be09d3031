//! A verification as one self-contained page: both percentile curves in one plot, the differences with their bands, the servers'
//! shares. No script, no font, no request to anywhere.

use crate::html::STYLE;
use crate::table::escaped;
use crate::verify::{sentence, short, statistics};
use std::fmt::Write as _;
use std::io::{self, Write};
use weir_stats::Estimate;
use weir_verify::{AtQuantile, Statistic, TargetShares, Unit, Verification};

/// What a page has beside the tables' style.
const MORE: &str = "\
:root { --sim: #2b6cb0; --real: #c05621; --good: #2f855a; --bad: #c53030; }
@media (prefers-color-scheme: dark) { :root { --sim: #63b3ed; --real: #f6ad55; --good: #68d391; --bad: #fc8181; } }
svg { width: 100%; max-width: 46rem; height: auto; font: 12px system-ui, sans-serif; } svg text { fill: currentColor; }
.axis { stroke: var(--line); } .sim { stroke: var(--sim); fill: none; stroke-width: 2; } .real { stroke: var(--real); fill: none; stroke-width: 2; stroke-dasharray: 6 4; }
.simband { fill: var(--sim); opacity: .15; } .realband { fill: var(--real); opacity: .15; } .simdot { fill: var(--sim); } .realdot { fill: var(--real); }
.agrees { color: var(--good); fill: var(--good); stroke: var(--good); } .differs { color: var(--bad); fill: var(--bad); stroke: var(--bad); } .undecided { color: var(--warn); fill: var(--warn); stroke: var(--warn); }
.allowed { fill: var(--good); opacity: .12; }
";

pub(crate) fn write(found: &Verification, out: &mut dyn Write) -> io::Result<()> {
    let file = escaped(&found.file);
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{file} verified · weir</title>\n\
         <style>\n{STYLE}{MORE}</style>\n</head>\n<body>\n<h1>{file}, simulated and real</h1>"
    )?;
    for s in &found.scenarios {
        for line in s.void.iter().map(|why| format!("a run is void: {why}")).chain(s.warnings.iter().cloned())
        {
            let name = escaped(&s.name);
            writeln!(out, "<p class=\"warning\">{} <span class=\"note\">{name}</span></p>", escaped(&line))?;
        }
    }
    for s in &found.scenarios {
        let verdict = s.verdict.name();
        writeln!(
            out,
            "<h2>{} <span class=\"{verdict}\">{}</span></h2>",
            escaped(&s.name),
            escaped(&sentence(s))
        )?;
        if s.runs == 0 {
            continue;
        }
        writeln!(out, "{}", curves(&s.curve))?;
        writeln!(out, "{}", differences(&s.statistics))?;
        writeln!(out, "<div class=\"wide\">\n{}</div>", statistics(s).html())?;
        if s.targets.len() > 1 {
            writeln!(out, "{}", shares(&s.targets))?;
        }
    }
    let version = env!("CARGO_PKG_VERSION");
    let plan = short(&found.plan);
    writeln!(out, "<footer>weir {version} · seed {} · plan {plan}</footer>\n</body>\n</html>", found.seed)
}

const WIDTH: f64 = 720.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 16.0;

/// A round number at or above, for the end of an axis.
fn rounded_up(most: f64) -> f64 {
    let unit = 10f64.powf(most.max(1e-9).log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].map(|n| n * unit).into_iter().find(|n| *n >= most).unwrap_or(10.0 * unit)
}

/// Latency over the percentile, on an axis that is linear in nines.
fn curves(curve: &[AtQuantile]) -> String {
    const TOP: f64 = 12.0;
    const BOTTOM: f64 = 250.0;
    let known: Vec<&AtQuantile> =
        curve.iter().filter(|at| at.simulated.value.is_some() && at.real.value.is_some()).collect();
    if known.len() < 2 {
        return "<p class=\"note\">Too few requests count for a curve.</p>".to_owned();
    }
    let nines = |q: f64| -(1.0 - q).log10();
    let (first, last) = (nines(known[0].q), nines(known[known.len() - 1].q));
    let x = |q: f64| LEFT + (nines(q) - first) / (last - first) * (RIGHT - LEFT - 24.0) + 12.0;
    let ends = known
        .iter()
        .flat_map(|at| [at.simulated.high.or(at.simulated.value), at.real.high.or(at.real.value)]);
    let most = rounded_up(ends.flatten().fold(0.0, f64::max));
    let y = |ms: f64| BOTTOM - (ms / most).clamp(0.0, 1.0) * (BOTTOM - TOP);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} 300\" role=\"img\" aria-label=\"Latency by percentile, simulated and real\">\n"
    );
    for fifth in 0..=5 {
        let ms = most * f64::from(fifth) / 5.0;
        let at = y(ms);
        let _ = writeln!(
            svg,
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            plain(ms)
        );
    }
    for at in &known {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">p{}</text>",
            x(at.q),
            BOTTOM + 18.0,
            plain(at.q * 100.0)
        );
    }
    for (class, of) in
        [("sim", (|at: &AtQuantile| at.simulated) as fn(&AtQuantile) -> Estimate), ("real", |at| at.real)]
    {
        let up = known.iter().map(|at| (x(at.q), of(at).high.or(of(at).value)));
        let down = known.iter().rev().map(|at| (x(at.q), of(at).low.or(of(at).value)));
        let _ = writeln!(svg, "<polygon class=\"{class}band\" points=\"{}\"/>", points(up.chain(down), &y));
        let line = known.iter().map(|at| (x(at.q), of(at).value));
        let _ = writeln!(svg, "<polyline class=\"{class}\" points=\"{}\"/>", points(line, &y));
        for at in &known {
            let ms = of(at).value.unwrap_or_default();
            let name = if class == "sim" { "simulated" } else { "real" };
            let _ = writeln!(
                svg,
                "<circle class=\"{class}dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>p{} {name}: {} ms</title></circle>",
                x(at.q),
                y(ms),
                plain(at.q * 100.0),
                plain(ms)
            );
        }
    }
    let _ = writeln!(
        svg,
        "<line class=\"sim\" x1=\"{LEFT}\" x2=\"{}\" y1=\"288\" y2=\"288\"/><text x=\"{}\" y=\"292\">simulated</text>",
        LEFT + 28.0,
        LEFT + 34.0
    );
    let _ = writeln!(
        svg,
        "<line class=\"real\" x1=\"{}\" x2=\"{}\" y1=\"288\" y2=\"288\"/><text x=\"{}\" y=\"292\">real, ms; bands: 95 % interval of the runs</text>",
        LEFT + 110.0,
        LEFT + 138.0,
        LEFT + 144.0
    );
    svg + "</svg>"
}

fn points(all: impl Iterator<Item = (f64, Option<f64>)>, y: &impl Fn(f64) -> f64) -> String {
    let all: Vec<String> = all.map(|(x, ms)| format!("{x:.1},{:.1}", y(ms.unwrap_or_default()))).collect();
    all.join(" ")
}

fn plain(x: f64) -> String {
    crate::number::plain(Some(x))
}

/// Each difference with its band, in units of what is allowed.
fn differences(statistics: &[Statistic]) -> String {
    const ROW: f64 = 24.0;
    const SPAN: f64 = 2.0;
    let height = ROW * statistics.len() as f64 + 40.0;
    let left = LEFT + 40.0;
    let x = |tolerances: f64| left + (tolerances.clamp(-SPAN, SPAN) + SPAN) / (2.0 * SPAN) * (RIGHT - left);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"Differences, real less simulated\">\n"
    );
    let _ = writeln!(
        svg,
        "<rect class=\"allowed\" x=\"{:.1}\" y=\"4\" width=\"{:.1}\" height=\"{:.1}\"/>",
        x(-1.0),
        x(1.0) - x(-1.0),
        height - 36.0
    );
    let _ = writeln!(
        svg,
        "<line class=\"axis\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"4\" y2=\"{1:.1}\"/>",
        x(0.0),
        height - 32.0
    );
    for (row, s) in statistics.iter().enumerate() {
        let y = ROW * row as f64 + 18.0;
        let of = match s.unit {
            Unit::Ratio => s.relative,
            Unit::Points => {
                let points = |v: Option<f64>| v.map(|v| v * 100.0);
                Estimate {
                    value: points(s.difference.value),
                    low: points(s.difference.low),
                    high: points(s.difference.high),
                }
            }
        };
        let share = |v: Option<f64>| v.map(|v| v / s.tolerance);
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            y + 4.0,
            escaped(s.name)
        );
        if let (Some(low), Some(high)) = (share(of.low), share(of.high)) {
            let _ = writeln!(
                svg,
                "<line class=\"{}\" stroke-width=\"3\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                s.verdict.name(),
                x(low),
                x(high)
            );
        }
        if let Some(value) = share(of.value) {
            let _ = writeln!(
                svg,
                "<circle class=\"{}\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"/>",
                s.verdict.name(),
                x(value)
            );
        }
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">difference, real less simulated; shaded: what is allowed</text>",
        x(0.0),
        height - 8.0
    );
    svg + "</svg>"
}

/// Each server's share of the requests, in both worlds: what agrees lies on the diagonal.
fn shares(targets: &[TargetShares]) -> String {
    const SIDE: f64 = 260.0;
    let most = targets.iter().flat_map(|t| [t.simulated.value, t.real.value]).flatten().fold(0.0, f64::max);
    let most = rounded_up(most);
    let at = |share: f64| share / most * SIDE;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} 320\" role=\"img\" aria-label=\"Shares of the servers\">\n<g transform=\"translate({LEFT} 10)\">\n"
    );
    let _ = writeln!(
        svg,
        "<line class=\"axis\" x1=\"0\" y1=\"{SIDE}\" x2=\"{SIDE}\" y2=\"0\"/><line class=\"axis\" x1=\"0\" y1=\"{SIDE}\" x2=\"{SIDE}\" y2=\"{SIDE}\"/><line class=\"axis\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"{SIDE}\"/>"
    );
    for t in targets {
        let (Some(simulated), Some(real)) = (t.simulated.value, t.real.value) else { continue };
        let _ = writeln!(
            svg,
            "<circle class=\"realdot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" opacity=\".7\"><title>{}: simulated {} %, real {} %</title></circle>",
            at(simulated),
            SIDE - at(real),
            escaped(&t.name),
            plain(simulated * 100.0),
            plain(real * 100.0)
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"0\" y=\"{:.1}\">0</text><text x=\"{SIDE}\" y=\"{:.1}\" text-anchor=\"end\">{} %</text>",
        SIDE + 16.0,
        SIDE + 16.0,
        plain(most * 100.0)
    );
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">share of a server, simulated</text><text x=\"{:.1}\" y=\"14\">real; one dot a server</text>",
        SIDE / 2.0,
        SIDE + 34.0,
        SIDE + 12.0
    );
    svg + "</g>\n</svg>"
}
