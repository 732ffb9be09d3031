//! What a simulation found out, for people and for programs: text, JSON, CSV and one HTML page.
//!
//! Every form is a function from [`Results`] to bytes: the same results give the same bytes, in any environment. JSON and
//! CSV carry every number as it is; text and HTML round each to what its interval can bear.
#![forbid(unsafe_code)]

mod comparison;
mod csv;
mod entry;
pub mod graph;
mod html;
mod json;
mod load;
mod number;
mod offered;
mod sites;
mod table;
mod text;
mod verify;
mod verify_page;

pub use number::duration;
pub use table::escaped;
pub use text::Sites;

use std::io::{self, Write};
use weir_load::Outcome;
use weir_sim::Results;
use weir_topology::Plan;
use weir_verify::{Calibration, Replay, Verification};

/// How wide a table for a terminal may grow.
const WIDTH: usize = 100;

/// Writes the contract's JSON (`weir.sim/1`), ending with a new line.
///
/// # Errors
/// What `out` says.
pub fn json(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    json::write(results, out)
}

/// Writes tidy CSV: one row per scenario, node (or none) and metric; see the header in the file.
///
/// # Errors
/// What `out` says.
pub fn csv(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    csv::write(results, out)
}

/// Writes tables for a terminal, at most 100 columns wide unless names need more.
///
/// # Errors
/// What `out` says.
pub fn text(results: &Results, sites: Sites, out: &mut dyn Write) -> io::Result<()> {
    text::write(results, sites, out)
}

/// Writes one self-contained HTML page.
///
/// # Errors
/// What `out` says.
pub fn html(results: &Results, out: &mut dyn Write) -> io::Result<()> {
    html::write(results, out)
}

/// Writes the contract's JSON of a load run (`weir.load/1`), ending with a new line.
///
/// # Errors
/// What `out` says.
pub fn load_json(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    load::json(outcome, out)
}

/// Writes a load run's figures as a table.
///
/// # Errors
/// What `out` says.
pub fn load_text(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    load::table(outcome, out)
}

/// Writes the contract's JSON of a verification (`weir.verify/1`), ending with a new line.
///
/// # Errors
/// What `out` says.
pub fn verify_json(found: &Verification, out: &mut dyn Write) -> io::Result<()> {
    verify::json(found, out)
}

/// Writes a verification as tables: both worlds side by side.
///
/// # Errors
/// What `out` says.
pub fn verify_text(found: &Verification, out: &mut dyn Write) -> io::Result<()> {
    verify::tables(found, out)
}

/// Writes a verification as one self-contained page.
///
/// # Errors
/// What `out` says.
pub fn verify_html(found: &Verification, out: &mut dyn Write) -> io::Result<()> {
    verify_page::write(found, out)
}

/// Writes what a machine adds, in words.
///
/// # Errors
/// What `out` says.
pub fn calibration_text(found: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    verify::calibration_text(found, out)
}

/// Writes what a machine adds as JSON.
///
/// # Errors
/// What `out` says.
pub fn calibration_json(found: &Calibration, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &verify::calibration(found))?;
    out.write_all(b"\n")
}

/// Writes what came of acting a record again: a sentence, or JSON.
///
/// # Errors
/// What `out` says.
pub fn replay(replay: &Replay, as_json: bool, out: &mut dyn Write) -> io::Result<()> {
    verify::replay(replay, as_json, out)
}

/// Writes each request of a load run as a row of CSV.
///
/// # Errors
/// What `out` says.
pub fn load_rows(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    load::rows(outcome, out)
}

/// Writes what a plan offers to its queues, for `weir check`.
///
/// # Errors
/// What `out` says.
pub fn offered(plan: &Plan, out: &mut dyn Write) -> io::Result<()> {
    offered::write(plan, out)
}

/// The line every result ends with.
fn signature(results: &Results) -> String {
    format!("weir {} · seed {} · plan {}", results.version, results.seed, results.plan)
}
