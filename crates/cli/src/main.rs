//! The `weir` binary: arguments in, exit code out. What a command does is in `commands`, one file each.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod examples;
mod failure;
mod fault;
mod input;
mod interrupt;
mod mistaken;
mod output;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The child of an evaluation: before anything else, so that it starts fast and under its limits.
    if std::env::args_os().nth(1).is_some_and(|a| a == input::CHILD) {
        return input::child();
    }
    if std::env::args_os().nth(1).is_some_and(|a| a == weir_verify::CHILD) {
        return weir_verify::child();
    }
    let outcome = fault::caught(|| commands::parse().and_then(commands::run));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::from(failure.code())
        }
    }
}
