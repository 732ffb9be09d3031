//! The arguments of `weir compare`.

use crate::args::{File, ReportFormat, Settings, Verbosity, list, seed, setting, written};
use clap::Args;
use std::path::{Path, PathBuf};

/// `weir compare`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir compare old.json new.json                   two results of `weir sim --save`
  weir compare old.star new.star                   two files, simulated with the same seed
  weir compare lb.star --scenarios random,p2c      two scenarios of one file

Where both have the same requests (equal traffic, one seed) their replications are compared in pairs, which
shows differences up to a hundred times smaller; otherwise by Welch's test. A verdict is `less` or `more` (the
second against the first), or `no significant difference`; all of them hold jointly at 95 % (Holm).")]
pub(crate) struct Compare {
    /// A saved result, a topology file or its plan
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// Another of these, to compare A with
    #[arg(value_name = "B")]
    pub(crate) b: Option<PathBuf>,
    /// Accepted so that an error can say how scenarios are named.
    #[arg(hide = true)]
    pub(crate) more: Vec<String>,
    /// In one file: compare the first of these with the others
    #[arg(long, value_name = "X,Y", value_delimiter = ',', conflicts_with = "b")]
    pub(crate) scenarios: Vec<String>,
    /// Set a parameter of the files (also turns its sweep off)
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = setting)]
    params: Vec<(String, String)>,
    /// Compare at each of these values
    #[arg(long = "sweep", value_name = "NAME=A,B,...", value_parser = list)]
    sweeps: Vec<(String, Vec<String>)>,
    /// Seed of all random draws [default: 1]
    #[arg(long, value_name = "N", value_parser = seed)]
    pub(crate) seed: Option<u64>,
    /// Independent replications of each scenario [default: 10]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) replications: Option<u32>,
    /// Requests per replication, overriding the files
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Format of the result on standard output
    #[arg(long, value_name = "text|json", default_value = "text", hide_possible_values = true)]
    pub(crate) output: ReportFormat,
    /// Also write an HTML page: verdicts, differences, tables
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

impl Compare {
    /// A topology with the parameters.
    pub(crate) fn file(&self, path: &Path) -> File {
        File {
            file: path.to_owned(),
            settings: Settings { params: self.params.clone() },
            sweeps: self.sweeps.clone(),
            verbosity: self.verbosity,
        }
    }

    /// An option about simulating, if one is given; saved results are simulated already.
    pub(crate) fn how(&self) -> Option<&'static str> {
        let given = [
            (!self.params.is_empty(), "--param"),
            (!self.sweeps.is_empty(), "--sweep"),
            (self.requests.is_some(), "--requests"),
            (self.seed.is_some(), "--seed"),
            (self.replications.is_some(), "--replications"),
            (self.threads.is_some(), "--threads"),
        ];
        given.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }
}
