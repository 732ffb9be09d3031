//! `weir man DIR`: a man page for weir and one for each of its commands, made from the same definition as the help.

use super::cli::Cli;
use crate::failure::Failure;
use clap::{Args, CommandFactory};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// `weir man`.
#[derive(Args, Debug)]
pub(crate) struct ManPages {
    /// The folder, created if it is missing
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

pub(crate) fn run(args: &ManPages) -> Result<(), Failure> {
    let dir = &args.dir;
    fs::create_dir_all(dir).map_err(|e| Failure::from_io(dir, "make", &e))?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(|e| Failure::from_io(dir, "write to", &e))?;
    let _ = writeln!(std::io::stderr(), "wrote the man pages to {}; try `man -l {0}/weir.1`", dir.display());
    Ok(())
}
