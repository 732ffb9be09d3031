//! `weir completions SHELL`: what a shell needs to complete weir's command line, on standard output.

use crate::args::{Cli, Completions};
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory;

pub(crate) fn run(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weir", &mut script);
    output::to_stdout(|out| out.write_all(&script))
}
