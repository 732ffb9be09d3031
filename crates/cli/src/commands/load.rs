//! `weir load FILE --to URL`: sends a scenario's requests and says how they were answered.

use crate::args::{File, ReportFormat, Settings, Verbosity, positive, seed, written};
use crate::failure::Failure;
use crate::output::{self, Outputs, Written};
use crate::{input, interrupt};
use clap::Args;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use weir_load::{CannotReach, Error, Options, Outcome, Protocol, Second};
use weir_plan::duration::show_ns;
use weir_plan::over_time::Unfit;
use weir_plan::{Plan, Point, Scenario};

/// `weir load`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  weir load bamboo.star --to http://127.0.0.1:8080
  weir load bamboo.star random --to https://[::1]:8443 --h2 --insecure
  weir load quickstart.star --to http://10.0.0.7 --duration 60s --speed 2 --hgrm run.hgrm

The requests are those of the simulation with the same seed: the same times, kinds, keys and bodies.
Each is sent at its time, whether or not earlier ones were answered; latency counts from that time.
A run whose requests were sent too late is void (exit code 1). What the file expects of the scenario
is judged by what was measured (exit code 1 unless all holds).")]
pub(crate) struct Load {
    /// Topology file, or its plan (JSON); `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Which of the file's scenarios to send [default: the only one]
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,
    /// Destination: http://HOST:PORT or https://HOST:PORT
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Number of requests, overriding the file
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// Length of the run, overriding the file: 30s, 5m
    #[arg(long, value_name = "D", value_parser = weir_plan::duration::positive_duration_ns)]
    pub(crate) duration: Option<u64>,
    /// Send this many times as fast
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = positive)]
    pub(crate) speed: f64,
    /// Also give figures over time, in parts of 1s, 100ms
    #[arg(long, value_name = "D", value_parser = weir_plan::duration::positive_duration_ns, long_help = EVERY)]
    pub(crate) every: Option<u64>,
    /// At most this many connections at once [default: as many as requests need]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections: Option<u32>,
    /// Use HTTP/2 (over TLS by ALPN, otherwise with prior knowledge)
    #[arg(long)]
    pub(crate) h2: bool,
    /// Accept any certificate
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Format of the result on standard output
    #[arg(long, value_name = "text|json", default_value = "text", hide_possible_values = true)]
    pub(crate) output: ReportFormat,
    /// Also write each request as a row of CSV
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) save: Option<PathBuf>,
    /// Also write the latencies for HdrHistogram's plotter
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) hgrm: Option<PathBuf>,
    /// Also write an HTML page: charts, tables
    #[arg(long, value_name = "FILE", value_parser = written())]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
}

/// Its long help, in lines of a narrow terminal.
const EVERY: &str = "\
Also give figures over time, in parts of 1s, 100ms

10ms or more, and 10,000 parts at most. Without it the scenario's
`every` holds. JSON has `over_time`, text a line `worst part`. A
request counts in the part in which it was due, in the time of this
run: not the file's, where --speed is given.";

impl Load {
    /// The file with its parameters.
    pub(crate) fn file(&self) -> File {
        File::unswept(&self.file, &self.settings, self.verbosity)
    }
}

pub(crate) fn run(args: &Load) -> Result<(), Failure> {
    let at_once = interrupt::at_once();
    let (plan, read) = input::load_with_files(&args.file())?;
    let chosen = choose(&plan, args.scenario.as_deref())?;
    let mut outputs = Outputs::beside_result(&read);
    let save = outputs.open("--save", args.save.as_deref())?;
    let hgrm = outputs.open("--hgrm", args.hgrm.as_deref())?;
    let html = outputs.open("--html", args.html.as_deref())?;
    let stop = interrupt::stop_flag(&at_once);
    let options = Options {
        to: args.to.clone(),
        seed: args.seed,
        requests: args.requests,
        duration_ns: args.duration,
        speed: args.speed,
        every_ns: args.every.or(chosen.1.every_ns),
        connections: args.connections.map(|n| n as usize),
        protocol: if args.h2 { Protocol::H2 } else { Protocol::H1 },
        insecure: args.insecure,
        replication: 0,
        paired: None,
        rows: save.is_some() || hgrm.is_some(),
    };
    let shown = !args.verbosity.quiet && io::stderr().is_terminal();
    let tell = move |second: &Second| {
        if shown {
            tell_second(second);
        }
    };
    let outcome = weir_load::run(chosen.0, chosen.1, &options, tell, &stop).map_err(|e| failure(args, e))?;
    if shown {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    let mut written = Written::result(|out| match args.output {
        ReportFormat::Text => weir_report::load_text(&outcome, output::width(), out),
        ReportFormat::Json => weir_report::load_json(&outcome, out),
    });
    written.file(save.as_ref(), |out| weir_report::load_rows(&outcome, out));
    written.file(hgrm.as_ref(), |out| weir_load::hgrm(&outcome.rows, out));
    written.file(html.as_ref(), |out| weir_report::load_html(&outcome, out));
    written.end(answer(&outcome))
}

/// The exit code of a run.
fn answer(outcome: &Outcome) -> Result<(), Failure> {
    match &outcome.void {
        _ if outcome.interrupted => Err(Failure::Interrupted),
        Some(why) => Err(Failure::No(format!(
            "the run is void: {why}; lower the rate, or stop other work on this machine"
        ))),
        None => match weir_report::load_unmet(outcome).as_slice() {
            [] => Ok(()),
            unmet => Err(Failure::No(unmet.join("\n  "))),
        },
    }
}

fn failure(args: &Load, error: Error) -> Failure {
    match error {
        Error::Target(CannotReach::Url(why)) => Failure::Usage(why),
        Error::Scenario(why) => Failure::Usage(why.to_string()),
        Error::Parts(Unfit { why, least_ns }) => {
            let whose = if args.every.is_some() { "--every" } else { "the scenario's `every`" };
            let least = show_ns(i128::from(least_ns));
            Failure::Usage(format!("{whose} {why}; write `--every {least}` or more"))
        }
        Error::Target(why) => Failure::Environment(why.to_string()),
        Error::System(e) => Failure::Environment(format!("cannot send: {}", crate::failure::reason(&e))),
        Error::Connect(why) => {
            let why = why.to_string();
            let why = why.split(" (os error").next().unwrap_or(&why);
            Failure::Environment(format!("cannot connect to {}: {why}", args.to))
        }
        Error::Tls(why) => Failure::Environment(why.to_string()),
        Error::Interrupted => Failure::Interrupted,
    }
}

/// The scenario to send.
fn choose<'a>(plan: &'a Plan, name: Option<&str>) -> Result<(&'a Point, &'a Scenario), Failure> {
    let [point] = plan.points.as_slice() else {
        let n = plan.points.len();
        let what =
            format!("{} makes {n} topologies of its sweeps; set each swept parameter with -p", plan.file);
        return Err(Failure::Usage(what));
    };
    let known = || point.scenarios.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ");
    let found = match (name, point.scenarios.as_slice()) {
        (None, [only]) => Some(only),
        (None, []) => {
            let what = "has no scenario; add one: scenario(\"main\", node, traffic.poisson(rate = 100), requests = 10000)";
            return Err(Failure::Usage(format!("{} {what}", plan.file)));
        }
        (None, _) => {
            return Err(Failure::Usage(format!(
                "{} has several scenarios; name one: {}",
                plan.file,
                known()
            )));
        }
        (Some(name), all) => all.iter().find(|s| s.name == name),
    };
    let unknown =
        || format!("{} has no scenario `{}`; it has {}", plan.file, name.unwrap_or_default(), known());
    found.map(|scenario| (point, scenario)).ok_or_else(|| Failure::Usage(unknown()))
}

/// One line, redrawn each second.
fn tell_second(second: &Second) {
    let ms = |ns: Option<f64>| ns.map_or_else(|| "–".to_owned(), |ns| format!("{:.2}", ns / 1e6));
    let [p50, p99] = second.quantiles_ns.map(ms);
    let Second { at_s, sent, failed, in_flight, .. } = second;
    let _ = write!(
        io::stderr(),
        "\r\x1b[K{at_s} s: {sent}/s, {failed} failed, {in_flight} in flight, p50 {p50} ms, p99 {p99} ms"
    );
}
