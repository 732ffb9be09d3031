//! A statistic over what was swept: a parameter, or the number in the scenarios' names (`routers_1`, `routers_2`, ...).

use crate::chart::{Axis, COLOURS, Chart, Series};
use crate::{entry, page};
use std::collections::BTreeMap;
use std::io::{self, Write};
use weir_plan::Value;
use weir_sim::{Results, ScenarioResult};
use weir_stats::Estimate;
use weir_stats::math::ln;

/// What was swept, and the lines over it: scenarios by the index of their value.
struct Sweep {
    name: String,
    /// Value (`None`: it is not a number) and label.
    values: Vec<(Option<f64>, String)>,
    lines: Vec<Line>,
    /// Scenarios beside the sweep, to compare with.
    levels: Vec<usize>,
}

/// A line: what was swept, and nothing else.
struct Line {
    /// Its scenario, and what else distinguishes it.
    scenario: String,
    point: String,
    /// The index of a value, and the scenario there.
    points: Vec<(usize, usize)>,
}

impl Line {
    fn name(&self) -> String {
        if self.point.is_empty() {
            self.scenario.clone()
        } else {
            format!("{} ({})", self.scenario, self.point)
        }
    }
}

/// Lines that share a panel, each with its name there and its colour, under a heading of their own where there are
/// several panels.
struct Panel<'a> {
    heading: String,
    lines: Vec<(String, usize, &'a Line)>,
}

impl Sweep {
    /// One panel where there are colours for all lines, else one for each scenario.
    fn panels(&self) -> Vec<Panel<'_>> {
        if self.lines.len() <= COLOURS {
            let lines = self.lines.iter().enumerate().map(|(c, line)| (line.name(), c, line)).collect();
            return vec![Panel { heading: String::new(), lines }];
        }
        let points = self.distinct();
        let mut panels: Vec<Panel<'_>> = Vec::new();
        for line in &self.lines {
            let colour = points.iter().position(|point| *point == line.point).unwrap_or_default();
            let named = (line.point.clone(), colour, line);
            match panels.iter_mut().find(|panel| panel.heading == line.scenario) {
                Some(panel) => panel.lines.push(named),
                None => panels.push(Panel { heading: line.scenario.clone(), lines: vec![named] }),
            }
        }
        panels
    }

    /// What else distinguishes lines, each once.
    fn distinct(&self) -> Vec<&str> {
        let mut points: Vec<&str> = Vec::new();
        for line in &self.lines {
            if !points.contains(&&line.point[..]) {
                points.push(&line.point);
            }
        }
        points
    }
}

pub(super) fn write(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let all = &results.scenarios;
    let Some(sweep) = by_parameter(results).or_else(|| by_number(all)) else { return Ok(()) };
    let panels = sweep.panels();
    let heading = format!("Over {}", sweep.name);
    let scale = if is_log(&sweep.values) { " The horizontal axis is logarithmic." } else { "" };
    page::section(&heading, &format!("Bars are 95 % intervals.{scale}"), out)?;
    keys(&sweep, all, panels.len() > 1, out)?;
    writeln!(out, "<div class=\"grid2\">")?;
    let statistics: [(&str, Figure); 4] = [
        ("p50", |s| s.latency_all.p50),
        ("p99", |s| s.latency_all.p99),
        ("mean", |s| s.latency_all.mean),
        ("p95", |s| s.latency_all.p95),
    ];
    let several = panels.len() > 1;
    for panel in panels.iter().take(PANELS) {
        for (name, of) in statistics.into_iter().take(if several { 2 } else { statistics.len() }) {
            out.write_all(drawn(&sweep, panel, all, name, "ms", &of).as_bytes())?;
        }
        if !several && all.iter().any(|s| s.requests.failed > 0) {
            out.write_all(drawn(&sweep, panel, all, "success", "%", &success).as_bytes())?;
        }
    }
    writeln!(out, "</div>")?;
    if panels.len() > PANELS {
        writeln!(out, "<p class=\"note\">{} more scenarios are in the table.</p>", panels.len() - PANELS)?;
    }
    writeln!(out, "</section>")
}

/// A statistic of a scenario.
type Figure = fn(&ScenarioResult) -> Estimate;

/// The most scenarios with their own panels.
const PANELS: usize = 12;

fn success(s: &ScenarioResult) -> Estimate {
    let percent = |x: Option<f64>| x.map(|x| x * 100.0);
    Estimate { value: percent(s.success.value), low: percent(s.success.low), high: percent(s.success.high) }
}

/// By the parameter with the most values; the others tell lines apart.
fn by_parameter(results: &Results) -> Option<Sweep> {
    let swept = entry::swept(results);
    let all = &results.scenarios;
    let distinct = |name: &str| {
        let mut values: Vec<&Value> = Vec::new();
        for value in all.iter().filter_map(|s| entry::param(s, name)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    // Of equals the first.
    let name = swept.iter().rev().max_by_key(|name| distinct(name).len())?;
    let mut values = distinct(name);
    if values.iter().all(|value| number(value).is_some()) {
        values.sort_by(|a, b| number(a).unwrap_or_default().total_cmp(&number(b).unwrap_or_default()));
    }
    let others: Vec<&str> = swept.iter().copied().filter(|other| other != name).collect();
    let mut lines: Vec<Line> = Vec::new();
    for (at, s) in all.iter().enumerate() {
        let Some(x) = values.iter().position(|value| entry::param(s, name) == Some(value)) else { continue };
        let point = entry::point(&s.params, &others);
        match lines.iter_mut().find(|line| line.scenario == s.name && line.point == point) {
            Some(line) => line.points.push((x, at)),
            None => lines.push(Line { scenario: s.name.clone(), point, points: vec![(x, at)] }),
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_unstable());
    let values = values.iter().map(|value| (number(value), entry::value(value))).collect();
    Some(Sweep { name: (*name).to_owned(), values, lines, levels: Vec::new() })
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(_) | Value::Text(_) => None,
        Value::Int(i) => Some(*i as f64),
        Value::Float(x) => Some(*x),
        Value::Duration { ns } => Some(*ns as f64),
    }
}

/// The least number of scenarios in a line, if they differ only by a number in their names.
const LINE: usize = 3;
/// The most other scenarios that are drawn beside the lines.
const LEVELS: usize = 3;

fn by_number(all: &[ScenarioResult]) -> Option<Sweep> {
    let mut lines: Vec<(String, BTreeMap<u64, usize>)> = Vec::new();
    let mut levels = Vec::new();
    for (at, s) in all.iter().enumerate() {
        let Some((key, n)) = numbered(&s.name) else {
            levels.push(at);
            continue;
        };
        match lines.iter_mut().find(|(known, _)| *known == key) {
            Some((_, points)) => _ = points.insert(n, at),
            None => lines.push((key, BTreeMap::from([(n, at)]))),
        }
    }
    lines.retain(|(_, points)| points.len() >= LINE);
    if lines.is_empty() {
        return None;
    }
    if levels.len() > LEVELS {
        levels.clear();
    }
    let mut values: Vec<u64> = lines.iter().flat_map(|(_, points)| points.keys().copied()).collect();
    values.sort_unstable();
    values.dedup();
    let place = |n: &u64| values.binary_search(n).unwrap_or_default();
    let lines = lines
        .into_iter()
        .map(|(scenario, points)| Line {
            scenario,
            point: String::new(),
            points: points.iter().map(|(n, at)| (place(n), *at)).collect(),
        })
        .collect();
    let name = "N, the number in the scenarios' names".to_owned();
    Some(Sweep {
        name,
        values: values.iter().map(|n| (Some(*n as f64), n.to_string())).collect(),
        lines,
        levels,
    })
}

/// A name's only number, and the name with N in its place.
fn numbered(name: &str) -> Option<(String, u64)> {
    let begin = name.find(|c: char| c.is_ascii_digit())?;
    let rest = &name[begin..];
    let end = begin + rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    if name[end..].contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((format!("{}N{}", &name[..begin], &name[end..]), name[begin..end].parse().ok()?))
}

fn keys(sweep: &Sweep, all: &[ScenarioResult], several: bool, out: &mut dyn Write) -> io::Result<()> {
    let named: Vec<String> = if several {
        sweep.distinct().into_iter().map(str::to_owned).collect()
    } else {
        sweep.lines.iter().map(Line::name).collect()
    };
    let levels = sweep.levels.iter().map(|at| format!("{} (dashed)", all[*at].name));
    writeln!(out, "<div class=\"keys\">")?;
    for (c, name) in named.into_iter().chain(levels).take(2 * COLOURS).enumerate() {
        let (name, c) = (crate::escaped(&name), c % COLOURS);
        writeln!(
            out,
            "<span class=\"key\" style=\"--c:var(--c{c})\"><span class=\"swatch\"></span>{name}</span>"
        )?;
    }
    writeln!(out, "</div>")
}

/// The positions of the values; logarithmic if they grow by factors.
fn places(values: &[(Option<f64>, String)]) -> Vec<f64> {
    let count = values.len();
    let inset = |share: f64| 0.02 + 0.96 * share;
    let evenly = |at: usize| inset(if count > 1 { at as f64 / (count - 1) as f64 } else { 0.5 });
    let numbers: Option<Vec<f64>> = values.iter().map(|(number, _)| *number).collect();
    let Some(numbers) = numbers.filter(|n| n.len() > 1 && n[n.len() - 1] > n[0]) else {
        return (0..count).map(evenly).collect();
    };
    let (low, high) = (numbers[0], numbers[count - 1]);
    let log = is_log(values);
    let share = |x: f64| {
        if log { ln(x / low) / ln(high / low) } else { (x - low) / (high - low) }
    };
    numbers.iter().map(|x| inset(share(*x))).collect()
}

/// Whether the axis is logarithmic: if the largest is many times the least, and they do not grow by equal steps.
fn is_log(values: &[(Option<f64>, String)]) -> bool {
    let numbers: Option<Vec<f64>> = values.iter().map(|(x, _)| *x).collect();
    let Some([low, .., high]) = numbers.as_deref() else { return false };
    let step = (high - low) / (values.len() - 1) as f64;
    let is_even = |w: &[f64]| ((w[1] - w[0]) / step - 1.0).abs() < 0.01;
    *low > 0.0 && high / low >= 8.0 && !numbers.iter().flat_map(|all| all.windows(2)).all(is_even)
}

/// Labels are at least so far apart, as a share of the axis.
const APART: f64 = 0.09;

fn drawn(
    sweep: &Sweep,
    panel: &Panel<'_>,
    all: &[ScenarioResult],
    name: &str,
    unit: &'static str,
    of: &dyn Fn(&ScenarioResult) -> Estimate,
) -> String {
    let places = places(&sweep.values);
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for (at, (_, label)) in places.iter().zip(&sweep.values) {
        if ticks.last().is_none_or(|(last, _)| at - last >= APART) {
            ticks.push((*at, label.clone()));
        }
    }
    let line = |number: usize, name: String, points: Vec<(usize, Estimate)>, level: bool| Series {
        number,
        name,
        colour: Some(number),
        dashed: level,
        dots: if level { Vec::new() } else { points.iter().map(|(x, _)| *x).collect() },
        points,
        bars: true,
        breaks: false,
    };
    let swept = panel.lines.iter().map(|(name, colour, of_panel)| {
        line(
            *colour,
            name.clone(),
            of_panel.points.iter().map(|(x, at)| (*x, of(&all[*at]))).collect(),
            false,
        )
    });
    let levels = sweep.levels.iter().enumerate().map(|(number, at)| {
        let points = (0..sweep.values.len()).map(|x| (x, of(&all[*at]))).collect();
        line(sweep.lines.len() + number, all[*at].name.clone(), points, true)
    });
    let series: Vec<Series> = swept.chain(levels).collect();
    let chart = Chart {
        label: format!("{name} over {}", sweep.name),
        xs: places.iter().zip(&sweep.values).map(|(at, (_, label))| (*at, label.clone())).collect(),
        ticks,
        y: axis(sweep, all, unit, of),
        unit,
        shades: Vec::new(),
    };
    let scale = if chart.y.is_log() { ", logarithmic" } else { "" };
    let whose = if panel.heading.is_empty() { String::new() } else { format!("{}: ", panel.heading) };
    chart.figure(&format!("{whose}{name}, {unit}{scale}"), true, &series)
}

/// The same for all panels, so that they can be compared.
fn axis(sweep: &Sweep, all: &[ScenarioResult], unit: &str, of: &dyn Fn(&ScenarioResult) -> Estimate) -> Axis {
    let swept = sweep.lines.iter().flat_map(|line| line.points.iter().map(|(_, at)| at));
    let known: Vec<Estimate> = swept.chain(&sweep.levels).map(|at| of(&all[*at])).collect();
    let low = known.iter().filter_map(|e| e.value).fold(f64::INFINITY, f64::min);
    // With the ends of the bars.
    let high = known.iter().filter_map(|e| Some(e.high?.max(e.value?)).or(e.value)).fold(0.0, f64::max);
    match unit {
        "%" if low.is_finite() => Axis::around(low, high.max(100.0)),
        _ if low > 0.0 && low.is_finite() && high > 50.0 * low => Axis::log(low, high),
        _ => Axis::from_zero(high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_number_of_a_name_is_found() {
        assert_eq!(numbered("routers_16_first"), Some(("routers_N_first".to_owned(), 16)));
        assert_eq!(numbered("bamboo_4"), Some(("bamboo_N".to_owned(), 4)));
        assert_eq!(numbered("random"), None);
        assert_eq!(numbered("10lbs_2pools"), None);
    }

    #[test]
    fn values_stand_as_they_grow() {
        let of =
            |values: &[f64]| places(&values.iter().map(|v| (Some(*v), String::new())).collect::<Vec<_>>());
        let near = |got: Vec<f64>, want: &[f64]| got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near(of(&[1.0, 2.0, 4.0, 8.0, 16.0]), &[0.02, 0.26, 0.5, 0.74, 0.98]));
        assert!(near(of(&[1.0, 2.0, 3.0]), &[0.02, 0.5, 0.98]));
        assert!(near(of(&[0.0, 1.0, 10.0]), &[0.02, 0.116, 0.98]));
        assert!(near(of(&[5.0]), &[0.5]));
        assert!(near(places(&[(None, "a".into()), (None, "b".into())]), &[0.02, 0.98]));
    }
}
