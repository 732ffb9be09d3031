//! The command line as plain data: one definition gives the commands, their help and their types.

use super::admin::Admin;
use super::calibrate::Calibrate;
use super::check::Check;
use super::compare::Compare;
use super::completions::Completions;
use super::find::Find;
use super::gate::GateCommand;
use super::graph::Graph;
use super::help::Help;
use super::later::NotBuilt;
use super::load::Load;
use super::man::ManPages;
use super::merge::Merge;
use super::new::New;
use super::serve::Serve;
use super::sim::Sim;
use super::verify::Verify;
use crate::args::File;
use crate::failure::Failure;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::io::Write;

/// Simulate a load-balancing topology from one file.
#[derive(Parser, Debug)]
#[command(
    name = "weir",
    version,
    disable_help_subcommand = true,
    after_help = "Not built yet: fit, profile.",
    after_long_help = "\
Examples:
  weir new quickstart -o my.star                   an example to start from
  weir help queue                                  explain a function and its arguments
  weir check bamboo.star                           report the errors of a file
  weir sim bamboo.star                             simulate all of its scenarios
  weir sim bamboo.star --sweep routers=1,2,4,8     once for each number of routers
  weir compare bamboo.star --scenarios a,b         say whether two of them differ
  weir serve edge.star                             run it as a load balancer
  weir load bamboo.star --to http://127.0.0.1:8080 send its requests there
  weir verify bamboo.star                          check whether the predictions hold

Exit codes: 0 done; 1 the answer is no; 2 wrong usage or a wrong topology; 3 the environment failed;
4 weir found a bug in itself; 130 interrupted.

Not built yet: fit, profile."
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Report a file's errors and the load it offers to each pool; starts nothing
    Check(Check),
    /// Print the plan of a file as JSON
    ///
    /// Every default is written out; `fixed` holds the limits and times of serving that no file can set.
    Plan(File),
    /// Simulate the scenarios of a file
    Sim(Sim),
    /// Draw a topology as SVG, Graphviz or Mermaid
    Graph(Graph),
    /// Compare two results, files or scenarios
    Compare(Compare),
    /// Merge the parts that `sim --shard` saved
    Merge(Merge),
    /// Run a topology as a load balancer
    Serve(Serve),
    /// Inspect a running weir, and change what it serves
    Admin(Admin),
    /// Ask the sources of fleets which members they list now
    Find(Find),
    /// Answer health checks beside an application, which begins cold
    Gate(GateCommand),
    /// Send a scenario's requests to a URL, open loop
    Load(Load),
    /// Simulate scenarios, run them for real on this machine, and compare
    Verify(Verify),
    /// Measure what this machine adds to a request, and how much it can send
    Calibrate(Calibrate),
    /// Explain a function, an argument, a kind of error or a command
    Help(Help),
    /// Write an example to start from, or list the examples
    New(New),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Write man pages into a folder
    Man(ManPages),
    /// From an access log to a model
    #[command(hide = true, disable_help_flag = true)]
    Fit(NotBuilt),
    /// How much each site contributes to latency
    #[command(hide = true, disable_help_flag = true)]
    Profile(NotBuilt),
}

/// What to try first: the answer to `weir` alone.
const FIRST: &str = "\
weir simulates a load-balancing topology from one file, and serves the same file.

Try first:
  weir new                            list the examples
  weir new quickstart -o my.star      write one of them
  weir sim my.star                    simulate it: latency and success, with error bars
  weir serve my.star                  run it as a load balancer
  weir help                           list the functions of the language

Usage: weir COMMAND [ARGUMENTS]; weir --help lists the commands.
";

/// The command line of this process. Help and version are printed here.
pub(crate) fn parse() -> Result<Option<Command>, Failure> {
    let arguments = with_negative_values(Cli::command()).try_get_matches();
    match arguments.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(Cli { command: Some(command) }) => Ok(Some(command)),
        Ok(Cli { command: None }) => Err(Failure::Worded(FIRST.to_owned())),
        Err(e) if e.use_stderr() => {
            // Coloured where standard error is a terminal that wants it.
            let _ = e.print();
            let _ = std::io::stderr().flush();
            Err(Failure::Worded(String::new()))
        }
        Err(e) => crate::output::to_stdout(|out| write!(out, "{}", e.render())).map(|()| None),
    }
}

/// A value such as `-1` belongs to its option, which says what it takes instead; it is no argument of its own.
fn with_negative_values(command: clap::Command) -> clap::Command {
    let takes = |arg: &clap::Arg| !arg.is_positional() && arg.get_action().takes_values();
    let command = command.mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg });
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_negative_values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
