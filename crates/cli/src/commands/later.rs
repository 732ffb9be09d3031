//! Commands of `docs/spec/language.md#commands` that are not built yet: known by name, answered with a sentence and
//! exit code 2.

use crate::failure::Failure;
use clap::Args;
use std::ffi::OsString;

/// The arguments of a command that is not built yet.
#[derive(Args, Debug)]
pub(crate) struct NotBuilt {
    /// Any arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}

/// Says that the command is not built yet.
pub(crate) fn run(command: &str, args: &NotBuilt) -> Result<(), Failure> {
    // Its arguments cannot be checked yet.
    let _ = &args.rest;
    Err(Failure::Usage(format!("`weir {command}` is not built yet")))
}
