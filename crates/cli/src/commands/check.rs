//! `weir check FILE`: its errors on standard error (2), or what it offers to each pool on standard output (0). Starts nothing.
//! With `--serve` also whether it can be served, and what would be left out.

use super::serve;
use crate::args::Check;
use crate::failure::Failure;
use crate::{input, interrupt, output};

pub(crate) fn run(args: &Check) -> Result<(), Failure> {
    interrupt::at_once();
    let plan = input::load(&args.file)?;
    if args.serve {
        serve::check(&plan, false, args.file.quiet)?;
    }
    output::to_stdout(|out| weir_report::offered(&plan, out))
}
