//! `weir plan FILE`: the plan as JSON on standard output. Given a plan, it prints that plan.

use crate::args::File;
use crate::failure::Failure;
use crate::{input, interrupt, output};

pub(crate) fn run(args: &File) -> Result<(), Failure> {
    interrupt::at_once();
    let plan = input::load(args)?;
    output::to_stdout(|out| out.write_all(&plan.to_json()))
}
