//! `weir verify FILE`: compares scenarios in simulation and in reality.

mod args;

pub(crate) use args::Verify;

use crate::args::ReportFormat;
use crate::failure::Failure;
use crate::output::Target;
use crate::{input, interrupt, output};
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;
use weir_verify::{Error, Options, Progress, Tolerances, Verdict, Verification};

/// The default number of runs of a scenario.
const RUNS: u32 = 5;
/// The same for `--quick`, whose runs are short; those of a low rate run in parallel.
const QUICK_RUNS: u32 = 8;
/// The time for all runs of `--quick`, ns; the rest of its half minute is for everything else.
const QUICK_NS: u64 = 22_000_000_000;

pub(crate) fn run(args: &Verify) -> Result<(), Failure> {
    let at_once = interrupt::at_once();
    let Some(file) = args.file() else { return replay(args) };
    let plan = input::load(&file)?;
    let html = args.html.as_deref().map(Target::not_over(&[&file.file])).transpose()?;
    let record = args.record.as_deref().map(Target::not_over(&[&file.file])).transpose()?;
    let stop = interrupt::stop_flag(&at_once);
    let options = make_options(args)?;
    let shown = !args.verbosity.quiet && io::stderr().is_terminal();
    let found = verify(&plan, &options, record, shown, &stop)?;
    if let Some(html) = html {
        html.write(|out| weir_report::verify_html(&found, out))?;
    }
    output::to_stdout(|out| match args.output {
        ReportFormat::Text => weir_report::verify_text(&found, output::width(), out),
        ReportFormat::Json => weir_report::verify_json(&found, out),
    })?;
    judge(&found)
}

/// Reads the plan of reality too, if that is another.
fn make_options(args: &Verify) -> Result<Options, Failure> {
    let exe = exe()?;
    let mut tolerances = Tolerances::default();
    for (name, tolerance) in &args.tolerances {
        tolerances.set(name, *tolerance);
    }
    Ok(Options {
        seed: args.seed,
        runs: args.runs.unwrap_or(if args.quick { QUICK_RUNS } else { RUNS }),
        requests: args.requests,
        scenarios: args.scenarios.clone(),
        tolerances,
        within_ns: args.quick.then_some(QUICK_NS),
        real: args.real,
        processes: args.processes,
        against: args.against.router(),
        records: args.record.is_some(),
        reality: args.reality().map(|file| input::load(&file)).transpose()?,
        exe,
    })
}

/// Runs all scenarios in both worlds. `shown`: the terminal shows how far they are.
fn verify(
    plan: &Plan,
    options: &Options,
    record: Option<Target>,
    shown: bool,
    stop: &Arc<AtomicBool>,
) -> Result<Verification, Failure> {
    let tell = |progress: Progress<'_>| {
        if shown {
            let Progress { scenario, run, runs } = progress;
            let _ = write!(io::stderr(), "\r\x1b[K{scenario}: run {run} of {runs}");
        }
    };
    let found = match record {
        None => weir_verify::verify(plan, options, None, &tell, stop),
        Some(record) => {
            let mut found = Err(Error::Interrupted);
            record.write(|out| {
                found = weir_verify::verify(plan, options, Some(out), &tell, stop);
                match &mut found {
                    Err(Error::Record(e)) => Err(std::mem::replace(e, io::ErrorKind::Other.into())),
                    _ => Ok(()),
                }
            })?;
            found
        }
    };
    if shown {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
    found.map_err(|e| failure(plan, e))
}

/// Success if the worlds agree; otherwise what to do, as far as that can be said.
fn judge(found: &Verification) -> Result<(), Failure> {
    match found.verdict() {
        Verdict::Agrees => Ok(()),
        Verdict::Differs => Err(Failure::No("simulation and reality differ".to_owned())),
        Verdict::Undecided if found.scenarios.iter().any(|s| s.runs == 0) => {
            let all_void = "undecided: every run of a scenario is void; stop other work on this machine";
            Err(Failure::No(all_void.to_owned()))
        }
        Verdict::Undecided
            if found.scenarios.iter().any(|s| s.statistics.iter().any(|s| s.simulated.value.is_none())) =>
        {
            let unsaid =
                "undecided: a run has too few requests for a tolerance that was set; raise --requests";
            Err(Failure::No(unsaid.to_owned()))
        }
        Verdict::Undecided => Err(Failure::No("undecided; try more runs (--runs)".to_owned())),
    }
}

/// This program, whose copies are the processes of a run.
pub(crate) fn exe() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|e| Failure::Environment(format!("cannot locate the weir executable: {e}")))
}

/// Replays a record.
fn replay(args: &Verify) -> Result<(), Failure> {
    let Some(path) = &args.replay else {
        return Err(Failure::Usage("name a topology file, or a record with --replay".to_owned()));
    };
    let file = File::open(path).map_err(|e| Failure::from_io(path, "read", &e))?;
    let replay = weir_verify::replay(BufReader::new(file))
        .map_err(|why| Failure::Usage(format!("`{}`: {why}", path.display())))?;
    output::to_stdout(|out| weir_report::replay(&replay, args.output == ReportFormat::Json, out))?;
    match replay.first {
        None => Ok(()),
        Some(first) => Err(Failure::No(format!("{} picks differ; first: {first}", replay.others))),
    }
}

fn failure(plan: &Plan, error: Error) -> Failure {
    match error {
        Error::Simulated(e) => super::sim::failure(plan, e),
        error => not_run(error),
    }
}

/// Converts the error of a verification that did not finish.
pub(crate) fn not_run(error: Error) -> Failure {
    match error {
        Error::Cannot(why) => Failure::Usage(why.to_string()),
        Error::Simulated(e) => Failure::Fault(format!("{e:?}")),
        Error::System(why) => Failure::Environment(why),
        Error::Record(e) => Failure::Environment(crate::failure::reason(&e)),
        Error::Interrupted => Failure::Interrupted,
    }
}
