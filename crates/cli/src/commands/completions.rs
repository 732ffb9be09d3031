//! `weir completions SHELL`: what a shell needs to complete weir's command line, on standard output.

use super::cli::Cli;
use crate::failure::Failure;
use crate::output;
use clap::{Args, CommandFactory};

/// `weir completions`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir completions bash > ~/.local/share/bash-completion/completions/weir
  weir completions zsh > ~/.zfunc/_weir
  weir completions fish > ~/.config/fish/completions/weir.fish")]
pub(crate) struct Completions {
    /// The shell: bash, zsh, fish, elvish or powershell
    #[arg(value_name = "SHELL", hide_possible_values = true)]
    pub(crate) shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weir", &mut script);
    output::to_stdout(|out| out.write_all(&script))
}
