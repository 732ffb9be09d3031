//! The file of a command, its parameters and sweeps.

use super::value::{list, setting};
use clap::Args;
use std::path::{Path, PathBuf};

/// A file with its parameters.
#[derive(Args, Debug)]
pub(crate) struct File {
    /// Topology file, or its plan (JSON); `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Run once for each of these values
    #[arg(long = "sweep", value_name = "NAME=A,B,...", value_parser = list)]
    pub(crate) sweeps: Vec<(String, Vec<String>)>,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

impl File {
    /// A file of a command that has no `--sweep`.
    pub(crate) fn unswept(file: &Path, settings: &Settings, verbosity: Verbosity) -> File {
        File { file: file.to_owned(), settings: settings.clone(), sweeps: Vec::new(), verbosity }
    }
}

/// Parameters that the command line sets.
#[derive(Args, Clone, Debug)]
pub(crate) struct Settings {
    /// Set a parameter of the file (also turns its sweep off)
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) params: Vec<(String, String)>,
}

/// How much is printed besides results.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Verbosity {
    /// Print only results and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
