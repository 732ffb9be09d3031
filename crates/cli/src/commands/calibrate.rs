//! `weir calibrate`: what this machine adds to a request.

use crate::args::written;
use crate::failure::Failure;
use crate::output::{Outputs, Written};
use crate::{commands::verify, interrupt};
use clap::Args;
use std::path::{Path, PathBuf};

/// `weir calibrate`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
This takes five seconds. `weir verify` does the same before it begins, and adds what it measured to the \
simulation.")]
pub(crate) struct Calibrate {
    /// Write the result here, as JSON [default: as text to standard output]
    #[arg(short, long, value_name = "FILE", value_parser = written())]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn run(args: &Calibrate) -> Result<(), Failure> {
    let at_once = interrupt::at_once();
    let target = Outputs::new::<&Path>(&[]).open("-o", args.output.as_deref())?;
    let exe = verify::exe()?;
    let stop = interrupt::stop_flag(&at_once);
    let found = weir_verify::calibrate(&exe, &stop).map_err(verify::not_run)?;
    let written = target.map(|target| target.write(|out| weir_report::calibration_json(&found, out)));
    if let Some(Ok(())) = written {
        return Ok(());
    }
    // Where the file cannot be written, the measurement is not lost with it.
    let mut all = Written::result(|out| weir_report::calibration_text(&found, out));
    written.into_iter().for_each(|written| all.add(written));
    all.end(Ok(()))
}
