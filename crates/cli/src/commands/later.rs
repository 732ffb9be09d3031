//! Commands of `docs/spec/language.md#commands` that are not built yet: known by name, answered with a sentence and exit code 2.

use crate::args::NotBuilt;
use crate::failure::Failure;

/// Says that the command is not built yet.
pub(crate) fn run(command: &str, args: &NotBuilt) -> Result<(), Failure> {
    // Whatever its arguments are, they cannot be judged yet.
    let _ = &args.rest;
    Err(Failure::Usage(format!("`weir {command}` is not built yet")))
}
