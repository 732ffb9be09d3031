//! `weir calibrate`: what this machine adds to a request.

use crate::failure::Failure;
use crate::output::{self, Target};
use crate::{commands::verify, interrupt};
use clap::Args;
use std::path::PathBuf;

/// `weir calibrate`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
This takes five seconds. `weir verify` does the same before it begins, and adds what it measured to the \
simulation.")]
pub(crate) struct Calibrate {
    /// Write the result here, as JSON [default: as text to standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn run(args: &Calibrate) -> Result<(), Failure> {
    let at_once = interrupt::at_once();
    let target = args.output.as_deref().map(Target::open).transpose()?;
    let exe = verify::exe()?;
    let stop = interrupt::stop_flag(&at_once);
    let found = weir_verify::calibrate(&exe, &stop).map_err(verify::not_run)?;
    match target {
        Some(target) => target.write(|out| weir_report::calibration_json(&found, out)),
        None => output::to_stdout(|out| weir_report::calibration_text(&found, out)),
    }
}
