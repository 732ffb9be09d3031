//! `weir check FILE`: its errors on standard error (2), or what it offers to each pool on standard output (0). Starts
//! nothing. With `--serve` also whether it can be served, and what would be left out.

use super::serve;
use crate::args::File;
use crate::failure::Failure;
use crate::input::Printed;
use crate::{input, interrupt, output};
use clap::Args;
use std::fmt::Display;
use std::io::Write;
use weir_plan::Plan;
use weir_plan::{Spec, listeners};

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
        let dated = weir_serve::check_certificates(point).map_err(|wrong| Failure::Usage(lines(&wrong)))?;
        if !args.file.verbosity.quiet {
            warn(&dated);
        }
    } else if !args.file.verbosity.quiet {
        tell_certificates(&plan);
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
