//! A plan as JSON: one line per node, and back with everything checked.

use crate::fleets::compact;
use crate::hash;
use crate::json;
use crate::validate;
use crate::{Plan, Point, fixed};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};

/// A plan that cannot be read: malformed, or not what an evaluation could have made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(String);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this plan cannot be used: {}", self.0)
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// The name of a plan's schema.
    pub const SCHEMA: &str = "weir.plan/1";

    /// The plan as JSON, UTF-8, one item of each list per line, a line feed at the end. Beside the plan it shows what
    /// no file can set ([`fixed`]).
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to memory does not fail, and plans hold nothing that JSON lacks.
        let written = write_plan(self, &mut out);
        debug_assert!(written.is_ok());
        out
    }

    /// Whether bytes look like a plan rather than a topology file (no topology file starts with a brace, unless it is
    /// one dictionary).
    pub fn is_json(bytes: &[u8]) -> bool {
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let mut rest = text.iter().filter(|b| !b.is_ascii_whitespace());
        rest.next() == Some(&b'{') && rest.next() == Some(&b'"')
    }

    /// Reads a plan. Its hash is recomputed: a plan edited by hand has a different one. What it says is fixed is passed
    /// over: another version may have written it.
    ///
    /// # Errors
    /// JSON that is malformed, indices that lead nowhere, cycles, arguments out of range.
    pub fn from_json(bytes: &[u8]) -> Result<Plan, PlanError> {
        let mut plan: Plan = json::from_slice(bytes).map_err(|e| PlanError(e.to_string()))?;
        validate::plan(&plan).map_err(|e| PlanError(e.to_string()))?;
        plan.hash = hash::plan_hash(&plan);
        plan.expand();
        Ok(plan)
    }
}

fn write_plan(plan: &Plan, out: &mut Vec<u8>) -> io::Result<()> {
    out.write_all(b"{\n")?;
    for (name, text) in
        [("schema", &plan.schema), ("version", &plan.version), ("file", &plan.file), ("hash", &plan.hash)]
    {
        write!(out, "\"{name}\": ")?;
        serde_json::to_writer(&mut *out, text)?;
        out.write_all(b",\n")?;
    }
    write_list("data_files", &plan.data_files, "", out)?;
    write_fixed(out)?;
    out.write_all(b",\n\"points\": [")?;
    for (i, point) in plan.points.iter().map(compact).enumerate() {
        out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        write_point(point, out)?;
    }
    out.write_all(b"\n]\n}\n")
}

/// The constants that no file can set. They belong to this program, not to the plan: reading ignores them.
fn write_fixed(out: &mut Vec<u8>) -> io::Result<()> {
    out.write_all(b",\n\"fixed\": {")?;
    for (i, (name, value)) in fixed::LIMITS.iter().enumerate() {
        write!(out, "{}\n \"{name}\": {value}", if i == 0 { "" } else { "," })?;
    }
    out.write_all(b"\n}")
}

fn write_point(point: &Point, out: &mut Vec<u8>) -> io::Result<()> {
    out.write_all(b" {\n")?;
    write_list("params", &point.params, "  ", out)?;
    out.write_all(b",\n")?;
    write_list("places", &point.places, "  ", out)?;
    out.write_all(b",\n")?;
    write_list("sites", &point.sites, "  ", out)?;
    out.write_all(b",\n")?;
    write_list("specs", &point.specs, "  ", out)?;
    out.write_all(b",\n")?;
    write_list("lists", &point.lists, "  ", out)?;
    out.write_all(b",\n")?;
    write_list("nodes", &point.nodes, "  ", out)?;
    out.write_all(b",\n")?;
    write_list("scenarios", &point.scenarios, "  ", out)?;
    out.write_all(b",\n")?;
    if !point.expectations.is_empty() {
        write_list("expectations", &point.expectations, "  ", out)?;
        out.write_all(b",\n")?;
    }
    write_list("warnings", &point.warnings, "  ", out)?;
    out.write_all(b"\n }")
}

fn write_list<T: Serialize>(name: &str, items: &[T], indent: &str, out: &mut Vec<u8>) -> io::Result<()> {
    write!(out, "{indent}\"{name}\": [")?;
    for (i, item) in items.iter().enumerate() {
        out.write_all(if i == 0 { b"\n" } else { b",\n" })?;
        write!(out, "{indent} ")?;
        serde_json::to_writer(&mut *out, item)?;
    }
    if !items.is_empty() {
        write!(out, "\n{indent}")?;
    }
    out.write_all(b"]")
}
