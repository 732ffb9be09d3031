//! The options of a verification, and its errors.

use crate::prepare::CannotVerify;
use crate::router::Router;
use crate::tolerances::Tolerances;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use weir_plan::Plan;

/// The options of a verification.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all draws.
    pub seed: u64,
    /// Runs of each scenario that count, at least 1; with one nothing can be decided. As many more are made for those
    /// that are void.
    pub runs: u32,
    /// Requests of each run, instead of what the file says.
    pub requests: Option<u64>,
    /// The scenarios to run; all if empty.
    pub scenarios: Vec<String>,
    /// What may differ.
    pub tolerances: Tolerances,
    /// The approximate time for all runs, ns: fewer requests are sent if they would take longer.
    pub within_ns: Option<u64>,
    /// The plan to serve, if it is not the simulated one: to check that a difference is reported.
    pub reality: Option<Plan>,
    /// Whether servers that are not weir's own may be loaded.
    pub real: bool,
    /// Whether each `listen` is a process of its own.
    pub processes: bool,
    /// The load balancer that routes in reality.
    pub against: Router,
    /// Whether what happens is recorded.
    pub records: bool,
    /// This program: its copies are the processes of a run.
    pub exe: PathBuf,
}

impl Options {
    /// The most runs of a scenario that can be asked for, and so that are advised.
    pub const MOST_RUNS: u32 = 1000;

    /// The options of one run of everything, in copies of this program.
    pub fn new(exe: &Path) -> Options {
        Options {
            seed: 1,
            runs: 1,
            requests: None,
            scenarios: Vec::new(),
            tolerances: Tolerances::default(),
            within_ns: None,
            reality: None,
            real: false,
            processes: false,
            against: Router::Weir,
            records: false,
            exe: exe.to_owned(),
        }
    }
}

/// Why there is no verification.
#[derive(Debug)]
pub enum Error {
    /// The scenarios cannot be verified, in words.
    Cannot(CannotVerify),
    /// They cannot be simulated.
    Simulated(weir_sim::Error),
    /// The machine failed, in words.
    System(String),
    /// What happened cannot be written.
    Record(io::Error),
    /// It was stopped.
    Interrupted,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Cannot(why) => why.fmt(f),
            Error::Simulated(e) => write!(f, "{e:?}"),
            Error::System(why) => f.write_str(why),
            Error::Record(e) => e.fmt(f),
            Error::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for Error {}
