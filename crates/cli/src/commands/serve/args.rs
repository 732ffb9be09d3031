//! The arguments of `weir serve`.

use crate::args::{File, Settings, Verbosity};
use clap::Args;
use std::path::PathBuf;

/// `weir serve`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir serve edge.star                             all listeners, on all cores
  weir serve edge.star public --loops 2            one of them, on two event loops
  weir serve quickstart.star -p apps=8 --inject    models act in front of real servers too
  weir serve edge.star --admin 127.0.0.1:9901 --control /run/weir.sock

Prints `listening NAME ADDRESS` for each listener once it accepts, then `admin ADDRESS` and
`control ADDRESS` (on standard error where an access log goes to standard output).
SIGTERM and SIGINT drain and exit with 0; a second one stops weir at once. SIGHUP reads the file again,
SIGUSR1 reopens the log files, SIGUSR2 starts the program anew in place of this process (with --control).

Standard error reports changes of targets (many at once in sums), names that do not resolve, and failed
requests, at most ten lines a second each; --quiet leaves out the first two. Reloads, upgrades and limits
are always reported.")]
pub(crate) struct Serve {
    /// Topology file, or its plan (JSON); `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Only these listeners
    #[arg(value_name = "LISTENER")]
    pub(crate) listeners: Vec<String>,
    /// Event loops [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) loops: Option<u16>,
    /// Let models (delays, cables, faults) act in front of real servers
    #[arg(long)]
    pub(crate) inject: bool,
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,

    /// Status page, metrics and health at this address: 127.0.0.1:9901, unix:/path
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// Also accept this host name at the admin address
    #[arg(long, value_name = "NAME", requires = "admin")]
    pub(crate) admin_host: Vec<String>,
    /// Allow changes at the admin address with the token in this file
    #[arg(long, value_name = "FILE", requires = "admin")]
    pub(crate) admin_token: Option<PathBuf>,
    /// Unix socket for this user: status and changes
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Replace the process at the --control socket, which then drains
    #[arg(long, requires = "control")]
    pub(crate) replace: bool,
}

impl Serve {
    /// The file with its parameters.
    pub(crate) fn file(&self) -> File {
        File::unswept(&self.file, &self.settings, self.verbosity)
    }
}
