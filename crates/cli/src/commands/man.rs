//! `weir man DIR`: a man page for weir and one for each of its commands, made from the same definition as the help.

use super::cli::Cli;
use crate::args::written;
use crate::failure::Failure;
use crate::output::FileSet;
use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use std::io::Write;
use std::path::{Path, PathBuf};

/// `weir man`.
#[derive(Args, Debug)]
pub(crate) struct ManPages {
    /// The folder, created if it is missing
    #[arg(value_name = "DIR", value_parser = written())]
    pub(crate) dir: PathBuf,
}

pub(crate) fn run(args: &ManPages) -> Result<(), Failure> {
    let dir = &args.dir;
    let mut command = Cli::command();
    command.build();
    let mut files = FileSet::default();
    files.make_folder(dir)?;
    write_pages(&mut files, dir, command)?;
    files.keep();
    let _ = writeln!(std::io::stderr(), "wrote the man pages to {}; try `man -l {0}/weir.1`", dir.display());
    Ok(())
}

/// The pages of a command and of those below it.
fn write_pages(files: &mut FileSet, dir: &Path, command: Command) -> Result<(), Failure> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()).cloned() {
        write_pages(files, dir, below)?;
    }
    let page = Man::new(command);
    let path = dir.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text).map_err(|e| Failure::from_io(&path, "write", &e))?;
    files.write(&path, &text)
}
