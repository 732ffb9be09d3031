//! The arguments of `weir verify`.

use crate::args::{File, InvalidValue, ReportFormat, Settings, Verbosity, positive, seed, setting, written};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use weir_verify::Options;

/// `weir verify`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir verify bamboo.star                          every scenario, five runs each
  weir verify bamboo.star one_router --runs 10     one of them, more closely
  weir verify quickstart.star --quick              within half a minute, for CI

Each run is paired with a replication of the simulation: the same requests, the same work, the same choices.
The file's servers run as a process of their own, on loopback. Simulation and reality agree in a statistic if
the whole 95 % interval of its difference lies within the tolerance. Exit code 0 only if all agree.")]
pub(crate) struct Verify {
    /// Topology file, or its plan (JSON); `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "replay")]
    file: Option<PathBuf>,
    /// Only these scenarios
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Runs of each scenario [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=i64::from(Options::MOST_RUNS)))]
    pub(crate) runs: Option<u32>,
    /// Requests per run, overriding the file
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// Allowed difference: mean, p50, p95, p99 or attempts in %, success or share in points
    #[arg(long = "tolerance", value_name = "NAME=X", value_parser = tolerance)]
    pub(crate) tolerances: Vec<(String, f64)>,
    /// Short runs: everything within half a minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Allow load on servers that have an address
    #[arg(long)]
    pub(crate) real: bool,
    /// Run each `listen` as a process of its own, so that layers of routers are real hops
    #[arg(long)]
    pub(crate) processes: bool,
    /// The load balancer to measure
    #[arg(long, value_name = "weir|haproxy|nginx", default_value = "weir", hide_possible_values = true)]
    pub(crate) against: RouterArg,
    /// Also write a page with both curves, differences and shares
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) html: Option<PathBuf>,
    /// Also record what happened: requests, picks, outcomes
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) record: Option<PathBuf>,
    /// Replay a record: the picks must be the same
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) replay: Option<PathBuf>,
    /// Serve this file instead of the one that is simulated, to check that a difference is reported
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) reality: Option<PathBuf>,
    /// Format of the result on standard output
    #[arg(long, value_name = "text|json", default_value = "text", hide_possible_values = true)]
    pub(crate) output: ReportFormat,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

impl Verify {
    /// What is served, if not the file.
    pub(crate) fn reality(&self) -> Option<File> {
        self.reality.as_deref().map(|file| File::unswept(file, &self.settings, self.verbosity))
    }

    /// The file with its parameters.
    pub(crate) fn file(&self) -> Option<File> {
        self.file.as_deref().map(|file| File::unswept(file, &self.settings, self.verbosity))
    }
}

/// The load balancer that routes in a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RouterArg {
    /// weir.
    Weir,
    /// HAProxy.
    Haproxy,
    /// nginx.
    Nginx,
}

impl RouterArg {
    /// The same as the library has it.
    pub(crate) fn router(self) -> weir_verify::Router {
        match self {
            RouterArg::Weir => weir_verify::Router::Weir,
            RouterArg::Haproxy => weir_verify::Router::Haproxy,
            RouterArg::Nginx => weir_verify::Router::Nginx,
        }
    }
}

/// `p99=5%`, `share=2`: the statistic and what it may differ by, as a share or in points.
fn tolerance(text: &str) -> Result<(String, f64), InvalidValue> {
    let known = weir_verify::Tolerances::default();
    let (name, value) = setting(text).map_err(|_| "write NAME=X, such as p99=5%")?;
    if !known.names().any(|n| n == name) {
        let names: Vec<&str> = known.names().collect();
        return Err(format!("there is no statistic `{name}`; there are {}", names.join(", ")).into());
    }
    let in_points = matches!(&name[..], "success" | "share");
    let number = positive(value.trim_end_matches('%'))?;
    Ok((name, if in_points { number } else { number / 100.0 }))
}
