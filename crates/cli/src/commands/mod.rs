//! The commands, one file each with its arguments; dispatches to them.

mod admin;
mod calibrate;
mod check;
mod cli;
mod compare;
mod completions;
mod explain;
mod find;
mod gate;
mod graph;
pub(crate) mod help;
mod later;
mod load;
mod man;
mod merge;
mod new;
mod plan;
mod serve;
mod sim;
mod verify;
mod watch;

pub(crate) use cli::parse;

use crate::failure::Failure;
use cli::Command;

/// Runs a command; `None` is a command line that has been answered already (help, version).
pub(crate) fn run(command: Option<Command>) -> Result<(), Failure> {
    match command {
        None => Ok(()),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Plan(args)) => plan::run(&args),
        Some(Command::Sim(args)) => sim::run(&args),
        Some(Command::Graph(args)) => graph::run(&args),
        Some(Command::Compare(args)) => compare::run(&args),
        Some(Command::Merge(args)) => merge::run(&args),
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Admin(args)) => admin::run(&args),
        Some(Command::Find(args)) => find::run(&args),
        Some(Command::Gate(args)) => gate::run(&args),
        Some(Command::Load(args)) => load::run(&args),
        Some(Command::Verify(args)) => verify::run(&args),
        Some(Command::Calibrate(args)) => calibrate::run(&args),
        Some(Command::Help(args)) => help::run(&args),
        Some(Command::New(args)) => new::run(&args),
        Some(Command::Completions(args)) => completions::run(&args),
        Some(Command::Man(args)) => man::run(&args),
        Some(Command::Fit(args)) => later::run("fit", &args),
        Some(Command::Profile(args)) => later::run("profile", &args),
    }
}
