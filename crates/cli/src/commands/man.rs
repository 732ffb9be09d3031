//! `weir man DIR`: a man page for weir and one for each of its commands, made from the same definition as the help.

use crate::args::{Cli, ManPages};
use crate::failure::Failure;
use clap::CommandFactory;
use std::fs;
use std::io::Write;

pub(crate) fn run(args: &ManPages) -> Result<(), Failure> {
    let dir = &args.dir;
    fs::create_dir_all(dir).map_err(|e| Failure::from_io(dir, "make", &e))?;
    clap_mangen::generate_to(Cli::command(), dir).map_err(|e| Failure::from_io(dir, "write to", &e))?;
    let _ = writeln!(std::io::stderr(), "wrote the man pages to {}; try `man -l {0}/weir.1`", dir.display());
    Ok(())
}
