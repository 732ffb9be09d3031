//! `weir graph FILE`: its topology as a picture.

use crate::args::{File, written};
use crate::failure::Failure;
use crate::output::Outputs;
use crate::{input, interrupt, output};
use clap::Args;
use std::path::{Path, PathBuf};
use weir_plan::Plan;
use weir_report::graph::{Form, pictures, write};

/// `weir graph`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir graph bamboo.star > bamboo.svg              a picture for each scenario
  weir graph bamboo.star random_ties_16 -o 16.svg  of one of them
  weir graph edge.star -o edge.dot                 for Graphviz; .mmd for Mermaid

Nodes made by one line of the file are one box with their number; a chain of nodes is one box too.
Lines that cross lead to shared nodes.")]
pub(crate) struct Graph {
    #[command(flatten)]
    pub(crate) file: File,
    /// Only these scenarios
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,
    /// Write the drawing here: .svg, .dot or .mmd [default: SVG to standard output]
    #[arg(short, long, value_name = "FILE", value_parser = written())]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn run(args: &Graph) -> Result<(), Failure> {
    interrupt::at_once();
    let form = args.output.as_deref().map_or(Ok(Form::Svg), format_of)?;
    let (plan, read) = input::load_with_files(&args.file)?;
    let target = Outputs::new(&read).open("-o", args.output.as_deref())?;
    require(&plan, &args.scenarios)?;
    let pictures = pictures(&plan, &args.scenarios);
    match target {
        Some(target) => target.write(|out| write(&pictures, &plan.file, form, out)),
        None => output::to_stdout(|out| write(&pictures, &plan.file, form, out)),
    }
}

/// The form that a file's ending names.
fn format_of(path: &Path) -> Result<Form, Failure> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("svg") => Ok(Form::Svg),
        Some("dot") => Ok(Form::Dot),
        Some("mmd") => Ok(Form::Mermaid),
        _ => Err(Failure::Usage(format!(
            "-o `{}`: the file's extension chooses the format; use .svg, .dot (Graphviz) or .mmd (Mermaid)",
            path.display()
        ))),
    }
}

/// Checks that there is something to draw, and that the named scenarios exist.
fn require(plan: &Plan, wanted: &[String]) -> Result<(), Failure> {
    if plan.points.iter().all(|point| point.nodes.is_empty()) {
        return Err(Failure::Usage(format!("{} has no node to draw", plan.file)));
    }
    let mut known: Vec<&str> = Vec::new();
    for scenario in plan.points.iter().flat_map(|point| &point.scenarios) {
        if !known.contains(&&scenario.name[..]) {
            known.push(&scenario.name);
        }
    }
    match wanted.iter().find(|name| !known.contains(&&name[..])) {
        None => Ok(()),
        Some(name) if known.is_empty() => {
            Err(Failure::Usage(format!("{} has no scenario `{name}`, and no others", plan.file)))
        }
        Some(name) => Err(Failure::Usage(format!(
            "{} has no scenario `{name}`; it has {}",
            plan.file,
            known.join(", ")
        ))),
    }
}
