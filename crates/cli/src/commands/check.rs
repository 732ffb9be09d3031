//! `weir check FILE`: its errors on standard error (2), or what it offers to each pool on standard output (0). Starts
//! nothing and asks no source. With `--serve` also whether it can be served, and what would be left out.

use super::serve;
use crate::args::File;
use crate::failure::Failure;
use crate::input::Printed;
use crate::{input, interrupt, output};
use clap::Args;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::Write;
use weir_discovery::check_named_files;
use weir_plan::{Diagnostic, Node, Plan, Point, Severity, SourceKind, Spec, listeners};

/// `weir check`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir check bamboo.star
  weir check bamboo.star -p servers=10
  weir check edge.star --serve                     whether it can be served; binds nothing

Errors go to standard error with file, line and remedy (exit code 2).")]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) file: File,
    /// Also check that it can be served
    #[arg(long)]
    pub(crate) serve: bool,
}

pub(crate) fn run(args: &Check) -> Result<(), Failure> {
    interrupt::at_once();
    let plan = input::load_and(&args.file, Printed::Told)?;
    if args.serve {
        let (point, _) = serve::check(&plan, false, &mut |hint| input::tell(&args.file, &hint))?;
        let dated = require_files(&plan, point)?;
        if !args.file.verbosity.quiet {
            warn(&dated);
        }
    } else if !args.file.verbosity.quiet {
        tell_certificates(&plan);
        let unusable = find_unusable(&plan, Severity::Warning);
        unusable.iter().for_each(|one| input::tell(&args.file, &one.to_string()));
    }
    let can = if args.serve { listens(&plan) } else { String::new() };
    output::to_stdout(|out| {
        out.write_all(can.as_bytes())?;
        weir_report::offered(&plan, output::width(), out)
    })
}

/// Prints that it can be served, and where it would listen.
fn listens(plan: &Plan) -> String {
    let mut out = String::from("This file can be served. It would listen as\n");
    for point in &plan.points {
        for id in listeners(point) {
            let node = &point.nodes[id as usize];
            if let Some(Spec::Listen(listen)) = point.specs.get(node.spec as usize) {
                out.push_str(&format!("  {} {}\n", node.name.as_deref().unwrap_or("listen"), listen.addr));
            }
        }
    }
    out.push('\n');
    out
}

/// Returns a sentence for each certificate that has expired or is not valid yet.
///
/// # Errors
/// Each file that cannot be served with, or with which a source cannot be asked.
fn require_files(plan: &Plan, point: &Point) -> Result<Vec<String>, Failure> {
    let (dated, mut wrong) = match weir_serve::check_certificates(point) {
        Ok(dated) => (dated, Vec::new()),
        Err(wrong) => (Vec::new(), vec![format!("error: {}", lines(&wrong))]),
    };
    wrong.extend(find_unusable(plan, Severity::Error).iter().map(ToString::to_string));
    if wrong.is_empty() { Ok(dated) } else { Err(Failure::Worded(wrong.join("\n\n"))) }
}

/// What is wrong with the files that each `find.*` names. Equal fleets at one place count once.
fn find_unusable(plan: &Plan, severity: Severity) -> Vec<Diagnostic> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for NamedSource { span, fleet, kind } in plan.points.iter().flat_map(sources) {
        if known.insert((span, fleet, kind)) {
            found.extend(check_named_files(kind).into_iter().map(|defect| {
                let problem = format!("fleet {fleet}: {}", defect.problem);
                let finding = Diagnostic { severity, ..Diagnostic::error(problem) };
                finding.help(defect.remedy).at_span(span)
            }));
        }
    }
    found
}

/// What lists the members of a fleet.
struct NamedSource<'a> {
    /// The location of the call.
    span: &'a str,
    fleet: &'a str,
    kind: &'a SourceKind,
}

/// What lists the members of fleets.
fn sources(point: &Point) -> Vec<NamedSource<'_>> {
    let written = point.written();
    let named = |node: &'_ Node| {
        let Some(Spec::Fleet(fleet)) = written.specs.get(node.spec as usize) else { return None };
        Some(NamedSource { span: &fleet.span, fleet: &fleet.label, kind: &fleet.source.as_ref()?.from })
    };
    written.nodes.iter().filter_map(named).collect()
}

/// Warns of certificates that cannot be served with here: a file may be simulated on a machine that has none.
fn tell_certificates(plan: &Plan) {
    match plan.points.first().map(weir_serve::check_certificates) {
        Some(Ok(dated)) => warn(&dated),
        Some(Err(wrong)) => warn(&wrong),
        None => {}
    }
}

fn warn(about: &[impl Display]) {
    for one in about {
        let _ = writeln!(std::io::stderr(), "warning: {one}");
    }
}

fn lines(wrong: &[weir_serve::CannotUse]) -> String {
    wrong.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
