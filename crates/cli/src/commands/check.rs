//! `weir check FILE`: its errors on standard error (2), or what it offers to each pool on standard output (0). Starts nothing.

use super::later;
use crate::args::Check;
use crate::failure::Failure;
use crate::{input, output};

pub(crate) fn run(args: &Check) -> Result<(), Failure> {
    if args.serve {
        later::option("--serve")?;
    }
    let plan = input::load(&args.file)?;
    output::to_stdout(|out| weir_report::offered(&plan, out))
}
