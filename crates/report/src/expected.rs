//! The expectations of a file and their verdicts: a table, JUnit's XML for a CI's list of tests, GitHub's annotations.

use crate::number::{self, with_interval};
use crate::table::{Side, Table, escaped};
use crate::{entry, unknown, wrap};
use std::io::{self, Write};
use weir_sim::{ExpectationResult, Results};

/// An expectation with what is said of it.
struct Expectation<'a> {
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
    let of = move |s| (entry::label(s, &swept), s);
    results.scenarios.iter().map(of).flat_map(move |(label, s)| {
        let replications = entry::replications(s, results);
        s.expectations.iter().map(move |e| {
            let reason = unknown::reason(s, replications, e.metric, &e.value);
            let reason = reason.map(|why| format!("{} {why}", e.metric.name()));
            let figure = reason.as_ref().map_or_else(|| figure(e), |why| format!("{}: {why}", figure(e)));
            Expectation { label: label.clone(), e, figure, reason }
        })
    })
}

/// In a table.
fn figure(e: &ExpectationResult) -> String {
    match e.value.value {
        None => "nothing can be said".to_owned(),
        Some(_) if e.metric.is_share() => number::percentage(&e.value),
        Some(_) if e.metric.is_time() => format!("{} ms", with_interval(&e.value)),
        Some(_) => with_interval(&e.value),
    }
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

/// All of them.
pub(crate) fn rows(results: &Results) -> Vec<Row> {
    all(results).map(|Expectation { label, e, reason, .. }| row(label, e, reason)).collect()
}

/// The same of a run that was measured, by scenario.
pub(crate) fn rows_of(judged: &[(String, ExpectationResult)]) -> Vec<Row> {
    judged.iter().map(|(label, e)| row(label.clone(), e, None)).collect()
}

fn row(label: String, e: &ExpectationResult, reason: Option<String>) -> Row {
    Row { cells: [label, e.expect.clone(), word(e).to_owned(), figure(e)], reason, holds: e.holds }
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
    for heading in ["scenario", "expected", ""] {
        t.column(heading, Side::Left);
    }
    t.column("is", Side::Right);
    rows.into_iter().for_each(|row| t.row(row.cells.into()));
    writeln!(out, "{}", t.text(width))
}

/// What does not hold, or cannot be decided: one sentence each.
pub(crate) fn unmet(results: &Results) -> Vec<String> {
    let unmet = all(results).filter(|told| told.e.holds != Some(true));
    unmet.map(|Expectation { label, e, figure, .. }| sentence(&label, e, &figure)).collect()
}

/// The same of a run that was measured.
pub(crate) fn unmet_of(judged: &[(String, ExpectationResult)]) -> Vec<String> {
    let unmet = judged.iter().filter(|(_, e)| e.holds != Some(true));
    unmet.map(|(label, e)| sentence(label, e, &figure(e))).collect()
}

fn sentence(label: &str, e: &ExpectationResult, figure: &str) -> String {
    match e.holds {
        Some(_) => format!("{label}: {} fails: {figure}", e.expect),
        None => format!("{label}: {} cannot be decided: {figure}", e.expect),
    }
}

/// JUnit's XML: a test case for each expectation.
pub(crate) fn junit(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    let (tests, failures) = (all(results).count(), unmet(results).len());
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
