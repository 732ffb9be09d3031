//! The command line as plain data: one definition gives the options, their help and their types.

use crate::failure::Failure;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

mod invalid;
mod laboratory;

use invalid::InvalidValue;
pub(crate) use laboratory::{Compare, Laboratory, Merge};

/// Simulate a load-balancing topology from one file.
#[derive(Parser, Debug)]
#[command(
    name = "weir",
    version,
    disable_help_subcommand = true,
    after_help = "Not built yet: fit, profile.",
    after_long_help = "\
Examples:
  weir new quickstart -o my.star                   an example to begin with
  weir help queue                                  what a function means, with its arguments
  weir check bamboo.star                           what is wrong with a file
  weir sim bamboo.star                             simulate all of its scenarios
  weir sim bamboo.star --sweep routers=1,2,4,8     once for each number of routers
  weir compare bamboo.star --scenarios a,b         whether two of them differ
  weir serve edge.star                             run it as a load balancer
  weir load bamboo.star --to http://127.0.0.1:8080 send its requests there
  weir verify bamboo.star                          whether the predictions hold

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
    /// Report the errors of a file and what it offers to each pool; starts nothing
    Check(Check),
    /// Print the plan of a file as JSON
    ///
    /// Every default is written out; `fixed` holds the limits and times of serving that no file can set.
    Plan(File),
    /// Simulate the scenarios of a file
    Sim(Sim),
    /// Draw a topology: SVG, Graphviz or Mermaid
    Graph(Graph),
    /// What differs between two results, files or scenarios
    Compare(Compare),
    /// Put the parts of `sim --shard` together
    Merge(Merge),
    /// Run a topology as a load balancer
    Serve(Serve),
    /// Look at a running weir, and change what it serves
    Admin(Admin),
    /// Send a scenario's requests to a URL, open loop
    Load(Load),
    /// Simulate scenarios, run them for real on this machine, and compare
    Verify(Verify),
    /// Measure what this machine adds to a request, and how much it can send
    Calibrate(Calibrate),
    /// Explain a function, an argument, a kind of error or a command
    Help(Help),
    /// Write one of the examples to begin with, or list them
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

/// The arguments of a command that is not built yet.
#[derive(Args, Debug)]
pub(crate) struct NotBuilt {
    /// Any arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) rest: Vec<OsString>,
}

/// A file with its parameters.
#[derive(Args, Debug)]
pub(crate) struct File {
    /// Topology file, or its plan (JSON); `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Set a parameter of the file (also switches its sweep off)
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) params: Vec<(String, String)>,
    /// Run once for each of these values
    #[arg(long = "sweep", value_name = "NAME=A,B,...", value_parser = list)]
    pub(crate) sweeps: Vec<(String, Vec<String>)>,
    /// Print only results and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// `weir check`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir check bamboo.star
  weir check bamboo.star -p servers=10
  weir check edge.star --serve                     whether it can be served; binds nothing

Errors go to standard error with file, line and remedy (exit code 2).")]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) file: File,
    /// Also check that it can be served
    #[arg(long)]
    pub(crate) serve: bool,
}

/// `weir graph`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir graph bamboo.star > bamboo.svg              a picture for each scenario
  weir graph bamboo.star random_ties_16 -o 16.svg  of one of them
  weir graph edge.star -o edge.dot                 for Graphviz; .mmd for Mermaid

Nodes made by one line of the file are one box with their number, and a chain of nodes is one box.
Lines that cross lead to shared nodes.")]
pub(crate) struct Graph {
    #[command(flatten)]
    pub(crate) file: File,
    /// Only these scenarios
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,
    /// Write it here: .svg, .dot or .mmd [default: SVG to standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `weir serve`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir serve edge.star                             all listeners, on all cores
  weir serve edge.star public --loops 2            one of them, on two event loops
  weir serve quickstart.star -p apps=8 --inject    models act before real servers too
  weir serve edge.star --admin 127.0.0.1:9901 --control /run/weir.sock

Prints `listening NAME ADDRESS` for each listener once it accepts, then `admin ADDRESS` and
`control ADDRESS` (on standard error where an access log goes to standard output).
SIGTERM and SIGINT drain and exit with 0; a second one ends at once. SIGHUP reads the file again,
SIGUSR1 opens log files anew.

Standard error reports target state changes, DNS problems and failed requests (at most ten lines per second
each); with --quiet only failed requests.")]
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
    /// Let models (delays, cables, faults) act before real servers
    #[arg(long)]
    pub(crate) inject: bool,
    /// Set a parameter of the file (also switches its sweep off)
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) params: Vec<(String, String)>,
    /// Print only results and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Status page, metrics and health there: 127.0.0.1:9901, unix:/path
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// Also answer to this host name at the admin address
    #[arg(long, value_name = "NAME", requires = "admin")]
    pub(crate) admin_host: Vec<String>,
    /// Allow changes at the admin address with the token in this file
    #[arg(long, value_name = "FILE", requires = "admin")]
    pub(crate) admin_token: Option<PathBuf>,
    /// Unix socket for this user: status and changes
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    /// Take the place of the process at that socket, which drains
    #[arg(long, requires = "control")]
    pub(crate) replace: bool,
}

impl Serve {
    /// The file with its parameters.
    pub(crate) fn file(&self) -> File {
        File { file: self.file.clone(), params: self.params.clone(), sweeps: Vec::new(), quiet: self.quiet }
    }
}

/// `weir admin`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir admin status                                what is running, and any problems
  weir admin targets --control /run/weir.sock      every target with its state, and why
  weir admin set apps 10.0.0.1:80 --state drain --for 10m --control /run/weir.sock
  weir admin reload --url http://127.0.0.1:9901 --token admin.token

POOL is the name of a balancer, TARGET that of a target as `targets` shows it; a site means all its members.
What is set by hand holds until `--state file` takes it back. Exit code 1: weir said no.")]
pub(crate) struct Admin {
    /// What to do
    #[command(subcommand)]
    pub(crate) deed: AdminCommand,
    /// The socket of `weir serve --control`
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "url")]
    pub(crate) control: Option<PathBuf>,
    /// The address of `weir serve --admin` [default: http://127.0.0.1:9901]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// File with the token, for changes at an address
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,
    /// Format of the result on standard output
    #[arg(
        long,
        global = true,
        value_name = "text|json",
        default_value = "text",
        hide_possible_values = true
    )]
    pub(crate) output: ReportFormat,
}

/// What `weir admin` does.
#[derive(Subcommand, Debug)]
pub(crate) enum AdminCommand {
    /// What is running, and any problems
    Status,
    /// Every target with its state, and why
    Targets,
    /// Read the file again, and serve it if nothing is wrong with it
    Reload,
    /// Drain and stop, as SIGTERM does
    Drain,
    /// Set a target's state or weight by hand
    Set(SetTarget),
}

/// `weir admin set`.
#[derive(Args, Debug)]
#[command(group(clap::ArgGroup::new("what").required(true).multiple(true).args(["state", "weight"])))]
pub(crate) struct SetTarget {
    /// The balancer
    #[arg(value_name = "POOL")]
    pub(crate) pool: String,
    /// Its target
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Whether it gets requests; `file`: as the file has it
    #[arg(long, value_name = "up|drain|eject|file", value_parser = ["up", "drain", "eject", "file"], hide_possible_values = true)]
    pub(crate) state: Option<String>,
    /// Another weight
    #[arg(long, value_name = "WEIGHT")]
    pub(crate) weight: Option<f64>,
    /// For how long: 30s, 5m [default: until it is taken back]
    #[arg(long = "for", value_name = "D")]
    pub(crate) lasts: Option<String>,
}

/// `weir sim`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir sim bamboo.star                             all scenarios, 10 replications, a table
  weir sim bamboo.star one_router -p servers=500   one of them, with a parameter set
  weir sim bamboo.star --sweep routers=1,2,4,8,16  the product of all sweeps, point by point
  weir sim bamboo.star --output json | jq .        every number with its 95 % interval
  weir sim bamboo.star --save run.csv --html run.html
  weir sim bamboo.star --precision p99=1%          as many replications as that takes
  weir sim bamboo.star --trace slowest.jsonl       where the slowest requests spent their time

The same file, seed and version give the same bytes for any number of threads.
Exit code 1: something that the file expects does not hold or cannot be decided, or a --precision is missed.")]
pub(crate) struct Sim {
    #[command(flatten)]
    pub(crate) file: File,
    /// Only these scenarios
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,
    /// Seed of all draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Independent replications of each scenario
    #[arg(long, value_name = "R", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) replications: u32,
    /// Requests per replication, instead of what the file says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// One row per site, or one for every member of it
    #[arg(long, value_name = "sites|all", hide_possible_values = true)]
    pub(crate) nodes: Option<Nodes>,
    /// Format of the result on standard output
    #[arg(long, value_name = "text|json|csv", default_value = "text", hide_possible_values = true)]
    pub(crate) output: SimFormat,
    /// Also write a page: picture, charts, tables
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also write the result: .json, .csv or .parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) laboratory: Laboratory,
}

/// `weir load`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir load bamboo.star --to http://127.0.0.1:8080
  weir load bamboo.star random --to https://[::1]:8443 --h2 --insecure
  weir load quickstart.star --to http://10.0.0.7 --duration 60s --speed 2 --hgrm run.hgrm

The requests are those of the simulation with the same seed: the same instants, kinds, keys and bodies.
Each is sent at its instant, whether or not earlier ones were answered; latency counts from there.
A run whose requests were sent too late is void (exit code 1).")]
pub(crate) struct Load {
    /// Topology file, or its plan (JSON); `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Which of the file's scenarios [default: its only one]
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Where to: http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Seed of all draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Requests, instead of what the file says
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// For how long, instead of what the file says: 30s, 5m
    #[arg(long, value_name = "D", value_parser = weir_plan::duration::positive_duration_ns)]
    pub(crate) duration: Option<u64>,
    /// Send this many times as fast
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive)]
    pub(crate) speed: f64,
    /// Connections at once, at most [default: as many as requests need]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// Speak HTTP/2 (over TLS by ALPN, else at once)
    #[arg(long)]
    pub(crate) h2: bool,
    /// Take any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Format of the result on standard output
    #[arg(long, value_name = "text|json", default_value = "text", hide_possible_values = true)]
    pub(crate) output: ReportFormat,
    /// Also write each request as a row of CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Also write the latencies for HdrHistogram's plotter
    #[arg(long, value_name = "FILE")]
    pub(crate) hgrm: Option<PathBuf>,
    /// Set a parameter of the file (also switches its sweep off)
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) params: Vec<(String, String)>,
    /// Print only results and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl Load {
    /// The file with its parameters.
    pub(crate) fn file(&self) -> File {
        File { file: self.file.clone(), params: self.params.clone(), sweeps: Vec::new(), quiet: self.quiet }
    }
}

/// `weir verify`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir verify bamboo.star                          every scenario, five runs each
  weir verify bamboo.star one_router --runs 10     one of them, more closely
  weir verify quickstart.star --quick              within half a minute, for CI

Each run is paired with a replication of the simulation: the same requests, the same work, the same choices.
Servers of the file run as a process of their own, on loopback. Simulation and reality agree in a statistic if the
whole 95 % interval of its difference lies within the tolerance. Exit code 0 only if all agree.")]
pub(crate) struct Verify {
    /// Topology file, or its plan (JSON); `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "replay")]
    file: Option<PathBuf>,
    /// Only these scenarios
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenarios: Vec<String>,
    /// Set a parameter of the file (also switches its sweep off)
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) params: Vec<(String, String)>,
    /// Seed of all draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Runs of each scenario [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) runs: Option<u32>,
    /// Requests per run, instead of what the file says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// What may differ: mean, p50, p95, p99 or attempts in %, success or share in points
    #[arg(long = "tolerance", value_name = "NAME=X", value_parser = tolerance)]
    pub(crate) tolerances: Vec<(String, f64)>,
    /// Short runs: all within half a minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Servers with an address may be loaded
    #[arg(long)]
    pub(crate) real: bool,
    /// Each `listen` is a process of its own, so that layers of routers are real hops
    #[arg(long)]
    pub(crate) processes: bool,
    /// Which load balancer routes in reality
    #[arg(long, value_name = "weir|haproxy|nginx", default_value = "weir", hide_possible_values = true)]
    pub(crate) against: RouterArg,
    /// Also write a page with both curves, differences and shares
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also write what happened: requests, picks, ends
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Replay what was recorded: the picks must be the same
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) replay: Option<PathBuf>,
    /// Serve this file instead of the one that is simulated, to check that a difference is reported
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) reality: Option<PathBuf>,
    /// Format of the result on standard output
    #[arg(long, value_name = "text|json", default_value = "text", hide_possible_values = true)]
    pub(crate) output: ReportFormat,
    /// Print only results and errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl Verify {
    /// What is served, if not the file.
    pub(crate) fn reality(&self) -> Option<File> {
        let file = self.reality.clone()?;
        Some(File { file, params: self.params.clone(), sweeps: Vec::new(), quiet: self.quiet })
    }

    /// The file with its parameters.
    pub(crate) fn file(&self) -> Option<File> {
        let file = self.file.clone()?;
        Some(File { file, params: self.params.clone(), sweeps: Vec::new(), quiet: self.quiet })
    }
}

/// `weir calibrate`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Takes five seconds. `weir verify` does the same before it begins, and simulates what was found.")]
pub(crate) struct Calibrate {
    /// Write it here, as JSON [default: standard output, in words]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// `weir help`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir help                                        all functions, by what they are for
  weir help lb.p2c                                 one of them: arguments, defaults, an example
  weir help overloaded                             a kind of error
  weir help max_in_flight                          an argument, and which functions take it
  weir help p99                                    a figure of a result
  weir help sim                                    a command")]
pub(crate) struct Help {
    /// A function, argument, kind of error, figure, command or option
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
}

/// `weir new`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir new                                         the examples, one line each
  weir new quickstart -o my.star                   a balancer and four servers, to begin with
  weir new bamboo | less                           to read one")]
pub(crate) struct New {
    /// Which example; without it they are listed
    #[arg(value_name = "EXAMPLE")]
    pub(crate) example: Option<String>,
    /// Write it here, unless the file exists [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

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

/// `weir man`.
#[derive(Args, Debug)]
pub(crate) struct ManPages {
    /// The folder, made where it is missing
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
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

/// The form of a load run's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A table.
    Text,
    /// `weir.load/1`.
    Json,
}

/// Which nodes a result lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Nodes {
    /// One entry per site.
    Sites,
    /// One per member.
    All,
}

/// The form of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimFormat {
    /// Tables.
    Text,
    /// `weir.sim/1`.
    Json,
    /// Tidy rows.
    Csv,
    /// The same with typed columns; files only.
    #[value(skip)]
    Parquet,
}

/// What to try first: the answer to `weir` alone.
const FIRST: &str = "\
weir simulates a load-balancing topology from one file, and serves the same file.

Try first:
  weir new                            the examples that come with it
  weir new quickstart -o my.star      write one of them
  weir sim my.star                    simulate it: latency and success, with error bars
  weir serve my.star                  run it as a load balancer
  weir help                           the functions that a file is made of

Usage: weir COMMAND [ARGUMENTS]; weir --help lists the commands.
";

/// The command line of this process. Help and version are printed here.
pub(crate) fn parse() -> Result<Option<Command>, Failure> {
    match Cli::try_parse() {
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

/// `name=value`.
fn setting(text: &str) -> Result<(String, String), InvalidValue> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
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

/// A number above 0.
fn positive(text: &str) -> Result<f64, InvalidValue> {
    let number: f64 = text.parse().map_err(|_| "write a number, such as 2 or 0.5")?;
    if number > 0.0 && number.is_finite() { Ok(number) } else { Err("write a number above 0".into()) }
}

/// `name=a,b,c`.
fn list(text: &str) -> Result<(String, Vec<String>), InvalidValue> {
    let (name, values) = setting(text).map_err(|_| "write NAME=A,B,...")?;
    let values: Vec<String> = values.split(',').map(str::to_owned).collect();
    if values.iter().any(String::is_empty) {
        return Err("a value is empty; write NAME=A,B,...".into());
    }
    Ok((name, values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn settings_and_lists_are_taken_apart_at_the_first_equals_sign() {
        assert_eq!(setting("a=b=c").unwrap(), ("a".into(), "b=c".into()));
        assert_eq!(setting("a=").unwrap(), ("a".into(), String::new()));
        assert!(setting("=b").is_err() && setting("a").is_err());
        assert_eq!(list("a=1,2").unwrap(), ("a".into(), vec!["1".into(), "2".into()]));
        assert!(list("a=1,,2").is_err() && list("a=").is_err());
    }
}
