//! The expectations of a file and their verdicts: a table, JUnit's XML for a CI's list of tests, GitHub's annotations.

use crate::column;
use crate::number;
use crate::table::{Side, Table, escaped};
use crate::{entry, unknown, wrap};
use std::collections::BTreeMap;
use std::io::{self, Write};
use weir_plan::Metric;
use weir_plan::duration::parse_duration;
use weir_sim::{ExpectationResult, Results, ScenarioResult};

/// An expectation with what is said of it.
struct Expectation<'a> {
    scenario: &'a str,
    /// The point of the sweep: `routers=4`.
    point: String,
    label: String,
    e: &'a ExpectationResult,
    /// The figure that the condition is about, with the interval by which it is judged, or why it is unknown.
    figure: String,
    /// Why it is unknown: `p99 needs 1 000 requests a replication, has 977`.
    reason: Option<String>,
}

/// All expectations with their scenario's label.
fn all(results: &Results) -> impl Iterator<Item = Expectation<'_>> {
    let swept = entry::swept(results);
    let of = move |s: &ScenarioResult| (entry::label(s, &swept), entry::point(&s.params, &swept));
    results.scenarios.iter().map(move |s| (of(s), s)).flat_map(move |((label, point), s)| {
        let replications = entry::replications(s, results);
        s.expectations.iter().map(move |e| {
            let reason = unknown::reason(s, replications, e.metric, &e.value);
            let reason = reason.map(|why| format!("{} {why}", e.metric.name()));
            let figure = reason.as_ref().map_or_else(|| figure(e), |why| format!("{}: {why}", figure(e)));
            let (label, point) = (label.clone(), point.clone());
            Expectation { scenario: &s.name, point, label, e, figure, reason }
        })
    })
}

/// The same, those of a scenario along its sweep together: what one line of the file expects.
fn along_sweeps(results: &Results) -> Vec<Vec<Expectation<'_>>> {
    let mut groups: Vec<Vec<Expectation<'_>>> = Vec::new();
    let mut at: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for one in all(results) {
        if one.point.is_empty() {
            groups.push(vec![one]);
            continue;
        }
        let group = *at.entry((one.scenario, &one.e.span, &one.e.expect)).or_insert(groups.len());
        match groups.get_mut(group) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// As the table of scenarios has it, with its unit.
fn figure(e: &ExpectationResult) -> String {
    if e.value.value.is_none() {
        return "nothing can be said".to_owned();
    }
    let told = column::rounding(e.metric)(&column::in_unit(e.metric, &e.value));
    format!("{told}{}", unit(e.metric))
}

/// The unit behind a figure.
fn unit(metric: Metric) -> String {
    match column::unit(metric) {
        "" => String::new(),
        unit => format!(" {unit}"),
    }
}

/// The condition with its bound in the unit of the figure: `p99<1s` is `p99<1000ms`, `success>=0.999` is `success>=99.9%`.
fn condition(e: &ExpectationResult) -> String {
    in_unit(&e.expect, e.metric).unwrap_or_else(|| e.expect.clone())
}

/// `None`: it is not understood.
fn in_unit(expect: &str, metric: Metric) -> Option<String> {
    let at = expect.find(['<', '>'])?;
    let at = at + 1 + usize::from(expect[at + 1..].starts_with('='));
    let (before, rest) = expect.split_at(at);
    let (bound, node) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
    let share = |digits: &str| digits.parse::<f64>().ok();
    let bound = match (metric.is_share(), bound.strip_suffix('%')) {
        (true, Some(digits)) => share(digits)? / 100.0,
        (true, None) => share(bound)?,
        // A bare number of ms.
        _ if metric.is_time() => match bound.parse() {
            Ok(ms) => ms,
            Err(_) => parse_duration(bound).ok()? as f64 / 1e6,
        },
        _ => return None,
    };
    let unit = column::unit(metric);
    let bound = if unit == "%" { bound * 100.0 } else { bound };
    Some(format!("{before}{}{unit}{node}", (bound * 1e9).round() / 1e9))
}

fn word(e: &ExpectationResult) -> &'static str {
    match e.holds {
        Some(true) => "holds",
        Some(false) => "fails",
        None => "undecided",
    }
}

/// An expectation: its scenario, its condition, its verdict in a word, its figure.
pub(crate) struct Row {
    pub cells: [String; 4],
    /// Why the figure is unknown.
    pub reason: Option<String>,
    pub holds: Option<bool>,
}

/// All of them: along a sweep one row for all points, and below it those at which it does not hold.
pub(crate) fn rows(results: &Results) -> Vec<Row> {
    let rows = along_sweeps(results).into_iter().flat_map(|group| match group.len() {
        0 | 1 => group.into_iter().map(|one| row(one.label, one.e, one.reason)).collect(),
        _ => rows_along(group),
    });
    rows.collect()
}

fn rows_along(group: Vec<Expectation<'_>>) -> Vec<Row> {
    let Some(first) = group.first() else { return Vec::new() };
    let held = group.iter().filter(|one| one.e.holds == Some(true)).count();
    let words = match group.len() {
        all if group.iter().all(|one| one.e.holds == first.e.holds) => {
            format!("{} at all {all}", word(first.e))
        }
        all => format!("holds at {held} of {all}"),
    };
    let failed = group.iter().any(|one| one.e.holds == Some(false));
    let holds = if held == group.len() { Some(true) } else { failed.then_some(false) };
    let cells = [first.scenario.to_owned(), condition(first.e), words, range(&group)];
    let mut rows = vec![Row { cells, reason: None, holds }];
    for one in group.into_iter().filter(|one| one.e.holds != Some(true)) {
        let at = Row {
            cells: [String::new(), format!("  {}", one.point), word(one.e).to_owned(), figure(one.e)],
            reason: one.reason,
            holds: one.e.holds,
        };
        rows.push(at);
    }
    rows
}

/// From the least to the greatest figure of a sweep.
fn range(group: &[Expectation<'_>]) -> String {
    let mut known: Vec<f64> = group.iter().filter_map(|one| one.e.value.value).collect();
    known.sort_by(f64::total_cmp);
    let (Some(first), Some(least), Some(most)) = (group.first(), known.first(), known.last()) else {
        return "nothing can be said".to_owned();
    };
    let per = if column::unit(first.e.metric) == "%" { 100.0 } else { 1.0 };
    let (low, high) = (number::plain(Some(least * per)), number::plain(Some(most * per)));
    let unit = unit(first.e.metric);
    if low == high { format!("{low}{unit}") } else { format!("{low}..{high}{unit}") }
}

/// The same of a run that was measured, by scenario.
pub(crate) fn rows_of(judged: &[(String, ExpectationResult)]) -> Vec<Row> {
    judged.iter().map(|(label, e)| row(label.clone(), e, None)).collect()
}

fn row(label: String, e: &ExpectationResult, reason: Option<String>) -> Row {
    Row { cells: [label, condition(e), word(e).to_owned(), figure(e)], reason, holds: e.holds }
}

/// As a table, where the file expects anything.
pub(crate) fn write(results: &Results, width: usize, out: &mut dyn Write) -> io::Result<()> {
    write_rows(rows(results), width, out)
}

/// These as a table, if there are any.
pub(crate) fn write_rows(rows: Vec<Row>, width: usize, out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut t = Table::new();
    t.column("scenario", Side::Left);
    t.key_column("expected", Side::Left);
    t.column("", Side::Left);
    t.column("is", Side::Right);
    rows.into_iter().for_each(|row| t.row(row.cells.into()));
    writeln!(out, "{}", t.text(width))
}

/// What does not hold, or cannot be decided: one sentence each, which names the points of a sweep.
pub(crate) fn unmet(results: &Results) -> Vec<String> {
    let verdicts = [Some(false), None];
    let groups = along_sweeps(results);
    groups.iter().flat_map(|group| verdicts.map(|holds| unmet_along(group, holds))).flatten().collect()
}

/// Those of a sweep with this verdict, if there are any.
fn unmet_along(group: &[Expectation<'_>], holds: Option<bool>) -> Option<String> {
    let of: Vec<&Expectation<'_>> = group.iter().filter(|one| one.e.holds == holds).collect();
    let (first, rest) = of.split_first()?;
    if rest.is_empty() {
        return Some(sentence(&first.label, first.e, &first.figure));
    }
    let at: Vec<String> = of.iter().map(|one| format!("{} ({})", one.point, one.figure)).collect();
    let points = format!("at {} of {} points: {}", of.len(), group.len(), entry::listed(&at));
    Some(format!("{}: {} {} {points}", first.scenario, condition(first.e), verdict(first.e)))
}

/// The same of a run that was measured.
pub(crate) fn unmet_of(judged: &[(String, ExpectationResult)]) -> Vec<String> {
    let unmet = judged.iter().filter(|(_, e)| e.holds != Some(true));
    unmet.map(|(label, e)| sentence(label, e, &figure(e))).collect()
}

fn sentence(label: &str, e: &ExpectationResult, figure: &str) -> String {
    format!("{label}: {} {}: {figure}", condition(e), verdict(e))
}

/// What a sentence says of one that does not hold.
fn verdict(e: &ExpectationResult) -> &'static str {
    if e.holds.is_some() { "fails" } else { "cannot be decided" }
}

/// JUnit's XML: a test case for each expectation.
pub(crate) fn junit(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let failures = all(results).filter(|one| one.e.holds != Some(true)).count();
    let tests = all(results).count();
    let file = escaped(&results.file);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(out, "<testsuites tests=\"{tests}\" failures=\"{failures}\">")?;
    writeln!(
        out,
        "  <testsuite name=\"{file}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">"
    )?;
    for Expectation { label, e, figure, .. } in all(results) {
        let (path, line, _) = place(&e.span);
        write!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\" file=\"{}\" line=\"{line}\"",
            escaped(&label),
            escaped(&e.expect),
            escaped(path)
        )?;
        if e.holds == Some(true) {
            writeln!(out, "/>")?;
        } else {
            let message = escaped(&format!("{}: {figure}", word(e)));
            writeln!(
                out,
                ">\n      <failure message=\"{message}\">{}</failure>\n    </testcase>",
                escaped(&e.span)
            )?;
        }
    }
    writeln!(out, "  </testsuite>\n</testsuites>")
}

/// GitHub's workflow commands, one line for each expectation that does not hold.
pub(crate) fn annotations(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let data = |s: &str| s.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |s: &str| data(s).replace(':', "%3A").replace(',', "%2C");
    for Expectation { label, e, figure, .. } in all(results).filter(|told| told.e.holds != Some(true)) {
        let (path, line, column) = place(&e.span);
        let title = property(&format!("{} {}", e.expect, word(e)));
        let told = data(&format!("{label}: {} {}: {figure}", e.expect, word(e)));
        writeln!(out, "::error file={},line={line},col={column},title={title}::{told}", property(path))?;
    }
    Ok(())
}

/// File, line and column of a place.
fn place(span: &str) -> (&str, u32, u32) {
    let mut parts = span.rsplitn(3, ':');
    let column = parts.next().and_then(|c| c.parse().ok());
    let line = parts.next().and_then(|l| l.parse().ok());
    match (parts.next(), line, column) {
        (Some(file), Some(line), Some(column)) => (file, line, column),
        _ => (span, 1, 1),
    }
}

/// Figures that are less precise than requested: one sentence each.
pub(crate) fn shortfalls(results: &Results) -> Vec<String> {
    let swept = entry::swept(results);
    let label = |name: &str, params: &[_]| {
        let found = results.scenarios.iter().find(|s| s.name == name && s.params == params);
        found.map_or_else(|| name.to_owned(), |s| entry::label(s, &swept))
    };
    let percent = |share: f64| format!("{} %", number::plain(Some(share * 100.0)));
    let sentence = |s: &weir_sim::Shortfall| {
        let (of, metric) = (label(&s.scenario, &s.params), s.goal.metric.name());
        match s.share {
            Some(share) if share.is_finite() => format!(
                "{of}: {metric} is known to ±{}, not to ±{}, after {} replications",
                percent(share),
                percent(s.goal.share),
                results.replications
            ),
            Some(_) => format!(
                "{of}: {metric} is 0, and not in all replications, so its relative precision is undefined"
            ),
            None => format!(
                "{of}: {metric} cannot be estimated at all; run longer (--requests) rather than more often"
            ),
        }
    };
    results
        .shortfalls
        .iter()
        .map(sentence)
        .map(|s| wrap::wrapped_to(&s, wrap::WIDTH).trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_has_the_unit_of_its_figure() {
        for (expect, metric, told) in [
            ("p99<300ms", Metric::P99, "p99<300ms"),
            ("p999<=1s", Metric::P999, "p999<=1000ms"),
            ("wait_ms<12 at desk", Metric::WaitMs, "wait_ms<12ms at desk"),
            ("success>=0.999", Metric::Success, "success>=99.9%"),
            ("success>=99.95%", Metric::Success, "success>=99.95%"),
            ("utilisation<60% at a desk", Metric::Utilisation, "utilisation<0.6 at a desk"),
        ] {
            assert_eq!(in_unit(expect, metric).as_deref(), Some(told));
        }
        assert_eq!(in_unit("goodput_per_s>50", Metric::GoodputPerS), None);
        assert_eq!(in_unit("p99", Metric::P99), None);
    }
}
