//! `weir plan FILE`: the plan as JSON on standard output. Given a plan, it prints that plan.

use crate::args::File;
use crate::failure::Failure;
use crate::{input, output};
use std::io;

pub(crate) fn run(args: &File) -> Result<(), Failure> {
    let plan = input::load(args)?;
    output::to_stdout(|out| {
        serde_json::to_writer_pretty(&mut *out, &plan).map_err(io::Error::from)?;
        out.write_all(b"\n")
    })
}
