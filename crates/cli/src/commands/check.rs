//! `weir check FILE`: its errors on standard error (2), or what it holds on standard output (0). Starts nothing.

use super::later;
use crate::args::Check;
use crate::failure::Failure;
use crate::{input, output};

pub(crate) fn run(args: &Check) -> Result<(), Failure> {
    if args.serve {
        later::option("--serve")?;
    }
    let plan = input::load(&args.file)?;
    input::warn(&plan, args.file.quiet);
    output::to_stdout(|out| {
        let points = plan.points.len();
        for (i, point) in plan.points.iter().enumerate() {
            let which = if points > 1 { format!(" (point {} of {points})", i + 1) } else { String::new() };
            writeln!(
                out,
                "{}{which}: {} nodes at {} sites, {} scenarios",
                plan.file,
                point.nodes.len(),
                point.sites.len(),
                point.scenarios.len()
            )?;
        }
        writeln!(out, "weir {} · plan {}", plan.version, plan.hash)
    })
}
