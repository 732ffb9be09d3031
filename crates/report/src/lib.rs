//! The results of a simulation, for people and for programs: text, JSON, CSV and one HTML page.
//!
//! Every form is a function from [`Results`] to bytes: the same results give the same bytes, in any environment. JSON
//! and CSV carry every number as it is; text and HTML round each to what its interval can bear.
#![forbid(unsafe_code)]

mod chart;
mod column;
mod compare;
mod compare_page;
mod comparison;
mod connections;
mod csv;
mod entry;
mod expected;
mod expected_page;
mod explained;
mod find;
pub mod graph;
mod html;
mod json;
mod load;
mod load_page;
mod number;
mod offered;
mod over_time;
mod page;
mod parquet;
mod saved;
mod scheduled;
mod sites;
mod table;
mod text;
mod trace;
mod unknown;
mod verify;
mod verify_page;
mod verify_summary;
mod wrap;

pub use column::Column;
pub use compare::{Comparison, Pairing, Verdict};
pub use find::ListedFleet;
pub use number::{duration, group_digits};
pub use saved::{Design, NotAResult, SavedResult};
pub use table::escaped;
pub use text::{Sites, View};
pub use trace::TraceForm;
pub use wrap::{NARROWEST, WIDTH};

use std::io::{self, Write};
use weir_discovery::Member;
use weir_load::Outcome;
use weir_plan::Plan;
use weir_sim::{Recording, Results};
use weir_verify::{Calibration, Replay, Verification};

/// Writes the JSON of `docs/spec/language.md#sim-json` (`weir.sim/1`), ending with a new line.
///
/// # Errors
/// An error of `out`.
pub fn json(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    json::write(results, false, out)
}

/// The same, every estimate with its values by replication.
///
/// # Errors
/// An error of `out`.
pub fn json_with_each(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    json::write(results, true, out)
}

/// Writes tidy CSV: one row per scenario, node (or none) and metric; see the header in the file.
///
/// # Errors
/// An error of `out`.
pub fn csv(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    csv::write(results, out)
}

/// Says what was finished of a run that was interrupted: "interrupted after 60 of 100 replications of main".
pub fn interrupted(results: &Results) -> String {
    text::interrupted(results)
}

/// Writes the rows of the CSV as Parquet, with typed columns.
///
/// # Errors
/// An error of `out`.
pub fn parquet(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    parquet::write(results, out)
}

/// Writes tables of at most this width ([`NARROWEST`] or more), unless names need more.
///
/// # Errors
/// An error of `out`.
pub fn text(results: &Results, view: &View, width: usize, out: &mut dyn Write) -> io::Result<()> {
    text::write(results, view, width, out)
}

/// Writes the histories of requests. `selection`: which they are, as the user wrote it.
///
/// # Errors
/// An error of `out`.
pub fn trace(
    results: &Results,
    recordings: &[Recording<'_>],
    selection: &str,
    form: TraceForm,
    out: &mut dyn Write,
) -> io::Result<()> {
    trace::write(&trace::Histories { results, recordings, selection }, form, out)
}

/// Writes one self-contained HTML page. `plan`: what was simulated, for the pictures; `baseline`: the scenario that the
/// others are compared with, or else the first; `columns`: those of the table of scenarios, as in [`View`].
///
/// # Errors
/// An error of `out`.
pub fn html(
    results: &Results,
    plan: &Plan,
    baseline: Option<&str>,
    columns: &[Column],
    out: &mut dyn Write,
) -> io::Result<()> {
    html::write(results, plan, baseline, columns, out)
}

/// Writes the JSON of a load run (`docs/spec/language.md#load`, `weir.load/1`), ending with a new line.
///
/// # Errors
/// An error of `out`.
pub fn load_json(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    load::json(outcome, out)
}

/// What a load run's scenario is expected to do and does not, or cannot be decided: one sentence each.
pub fn load_unmet(outcome: &Outcome) -> Vec<String> {
    load::unmet(outcome)
}

/// Writes a load run's figures as a table.
///
/// # Errors
/// An error of `out`.
pub fn load_text(outcome: &Outcome, width: usize, out: &mut dyn Write) -> io::Result<()> {
    load::table(outcome, width, out)
}

/// Writes the JSON of a verification (`docs/spec/language.md#verify`, `weir.verify/1`), ending with a new line.
///
/// # Errors
/// An error of `out`.
pub fn verify_json(found: &Verification, out: &mut dyn Write) -> io::Result<()> {
    verify::json(found, out)
}

/// Writes a verification as tables: both worlds side by side.
///
/// # Errors
/// An error of `out`.
pub fn verify_text(found: &Verification, width: usize, out: &mut dyn Write) -> io::Result<()> {
    verify::tables(found, width, out)
}

/// Says what was finished of a verification that was interrupted: "interrupted after 12 of 75 runs", and what was not.
pub fn verify_interrupted(found: &Verification) -> String {
    verify_summary::interrupted(found)
}

/// Says which figures of a verification have that verdict: "1 of 18 figures: p99 of one".
pub fn verify_figures(found: &Verification, verdict: weir_verify::Verdict) -> String {
    verify_summary::count_figures(found, verdict)
}

/// Says how many runs decide what is undecided: "12 runs would decide: --runs 12".
pub fn verify_advice(found: &Verification) -> String {
    verify_summary::advise_runs(found)
}

/// Writes a verification as one self-contained page.
///
/// # Errors
/// An error of `out`.
pub fn verify_html(found: &Verification, out: &mut dyn Write) -> io::Result<()> {
    verify_page::write(found, out)
}

/// Writes what a machine adds, in words.
///
/// # Errors
/// An error of `out`.
pub fn calibration_text(found: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    verify::calibration_text(found, out)
}

/// Writes what a machine adds as JSON.
///
/// # Errors
/// An error of `out`.
pub fn calibration_json(found: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &verify::calibration(found))?;
    out.write_all(b"\n")
}

/// Writes the result of a replay: a sentence, or JSON.
///
/// # Errors
/// An error of `out`.
pub fn replay(replay: &Replay, as_json: bool, out: &mut dyn Write) -> io::Result<()> {
    verify::replay(replay, as_json, out)
}

/// Writes a load run as one self-contained page.
///
/// # Errors
/// An error of `out`.
pub fn load_html(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    load_page::write(outcome, out)
}

/// Writes each request of a load run as a row of CSV.
///
/// # Errors
/// An error of `out`.
pub fn load_rows(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    load::rows(outcome, out)
}

/// Writes what a plan offers to its queues, for `weir check`.
///
/// # Errors
/// An error of `out`.
pub fn offered(plan: &Plan, width: usize, out: &mut dyn Write) -> io::Result<()> {
    offered::write(plan, width, out)
}

/// Writes what sources list: a heading for each fleet, a line for each member.
///
/// # Errors
/// An error of `out`.
pub fn find_text(fleets: &[ListedFleet<'_>], out: &mut dyn Write) -> io::Result<()> {
    find::text(fleets, out)
}

/// Writes the same as the JSON of `docs/spec/serving.md#find` (`weir.find/1`), ending with a new line.
///
/// # Errors
/// An error of `out`.
pub fn find_json(fleets: &[ListedFleet<'_>], out: &mut dyn Write) -> io::Result<()> {
    find::json(fleets, out)
}

/// Writes that JSON on one line.
///
/// # Errors
/// An error of `out`.
pub fn find_json_line(fleets: &[ListedFleet<'_>], out: &mut dyn Write) -> io::Result<()> {
    find::json_line(fleets, out)
}

/// What differs between two lists of a source, in words: `+ 10.0.0.3:80  - 10.0.0.1:80  ~ 10.0.0.2:80 drain`.
/// `None`: nothing.
pub fn find_changes(before: &[Member], now: &[Member]) -> Option<String> {
    find::changes(before, now)
}

/// Writes a comparison as the JSON of `docs/spec/language.md#compare` (`weir.compare/1`), ending with a new line.
///
/// # Errors
/// An error of `out`.
pub fn compare_json(comparison: &Comparison<'_>, out: &mut dyn Write) -> io::Result<()> {
    compare::json(comparison, out)
}

/// Writes a comparison as one self-contained page.
///
/// # Errors
/// An error of `out`.
pub fn compare_html(comparison: &Comparison<'_>, out: &mut dyn Write) -> io::Result<()> {
    compare_page::write(comparison, out)
}

/// Writes a comparison as tables.
///
/// # Errors
/// An error of `out`.
pub fn compare_text(comparison: &Comparison<'_>, width: usize, out: &mut dyn Write) -> io::Result<()> {
    compare::tables(comparison, width, out)
}

/// Expectations that do not hold or cannot be decided, and figures that are less precise than requested: a sentence
/// each.
pub fn unmet(results: &Results) -> Vec<String> {
    expected::unmet(results).into_iter().chain(expected::shortfalls(results)).collect()
}

/// Writes what the file expects as JUnit's XML.
///
/// # Errors
/// An error of `out`.
pub fn junit(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    expected::junit(results, out)
}

/// Writes expectations that do not hold as GitHub's annotations.
///
/// # Errors
/// An error of `out`.
pub fn annotations(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    expected::annotations(results, out)
}
