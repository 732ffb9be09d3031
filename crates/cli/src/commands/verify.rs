//! `weir verify FILE`: scenarios in both worlds, and whether these agree.

use crate::args::{ReportFormat, Verify};
use crate::failure::Failure;
use crate::output::Target;
use crate::{input, interrupt, output};
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Write};
use std::path::PathBuf;
use weir_plan::Plan;
use weir_verify::{Error, Options, Progress, Tolerances, Verdict};

/// Runs of a scenario, where nothing is said.
const RUNS: u32 = 5;
/// The same of `--quick`, whose runs are short; those of a low rate go on beside each other.
const QUICK_RUNS: u32 = 8;
/// What all runs of `--quick` may take together, ns: the rest of its half minute is for all else.
const QUICK_NS: u64 = 22_000_000_000;

pub(crate) fn run(args: &Verify) -> Result<(), Failure> {
    let at_once = interrupt::at_once();
    let Some(file) = args.file() else { return replay(args) };
    let plan = input::load(&file)?;
    let html = args.html.as_deref().map(Target::not_over(&[&file.file])).transpose()?;
    let record = args.record.as_deref().map(Target::not_over(&[&file.file])).transpose()?;
    let stop = interrupt::stop_flag(&at_once);
    let exe = exe()?;
    let mut tolerances = Tolerances::default();
    for (name, tolerance) in &args.tolerances {
        tolerances.set(name, *tolerance);
    }
    let options = Options {
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
    };
    let shown = !args.quiet && io::stderr().is_terminal();
    let tell = |progress: Progress<'_>| {
        if shown {
            let Progress { scenario, run, runs } = progress;
            let _ = write!(io::stderr(), "\r\x1b[K{scenario}: run {run} of {runs}");
        }
    };
    let found = match record {
        None => weir_verify::verify(&plan, &options, None, &tell, &stop),
        Some(record) => {
            let mut found = Err(Error::Interrupted);
            record.write(|out| {
                found = weir_verify::verify(&plan, &options, Some(out), &tell, &stop);
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
    let found = found.map_err(|e| failure(&plan, e))?;
    if let Some(html) = html {
        html.write(|out| weir_report::verify_html(&found, out))?;
    }
    output::to_stdout(|out| match args.output {
        ReportFormat::Text => weir_report::verify_text(&found, output::width(), out),
        ReportFormat::Json => weir_report::verify_json(&found, out),
    })?;
    match found.verdict() {
        Verdict::Agrees => Ok(()),
        Verdict::Differs => Err(Failure::No("the worlds differ".to_owned())),
        Verdict::Undecided if found.scenarios.iter().any(|s| s.runs == 0) => {
            let all_void = "undecided: every run of a scenario is void; free this machine of other work";
            Err(Failure::No(all_void.to_owned()))
        }
        Verdict::Undecided
            if found.scenarios.iter().any(|s| s.statistics.iter().any(|s| s.simulated.value.is_none())) =>
        {
            let unsaid = "undecided: a run has too few requests for what was asked (--requests)";
            Err(Failure::No(unsaid.to_owned()))
        }
        Verdict::Undecided => Err(Failure::No("undecided: more runs would tell (--runs)".to_owned())),
    }
}

/// This program, whose copies are the processes of a run.
pub(crate) fn exe() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|e| Failure::Environment(format!("weir does not find itself: {e}")))
}

/// Acts a record again.
fn replay(args: &Verify) -> Result<(), Failure> {
    let Some(path) = &args.replay else {
        return Err(Failure::Usage("say which topology file, or with --replay which record".to_owned()));
    };
    let file = File::open(path).map_err(|e| Failure::from_io(path, "read", &e))?;
    let replay = weir_verify::replay(BufReader::new(file))
        .map_err(|why| Failure::Usage(format!("`{}`: {why}", path.display())))?;
    output::to_stdout(|out| weir_report::replay(&replay, args.output == ReportFormat::Json, out))?;
    match replay.first {
        None => Ok(()),
        Some(first) => Err(Failure::No(format!("{} picks are others: {first}", replay.others))),
    }
}

fn failure(plan: &Plan, error: Error) -> Failure {
    match error {
        Error::Simulated(e) => super::sim::failure(plan, e),
        error => not_run(error),
    }
}

/// Why nothing was run, or not to its end.
pub(crate) fn not_run(error: Error) -> Failure {
    match error {
        Error::Cannot(why) => Failure::Usage(why.to_string()),
        Error::Simulated(e) => Failure::Fault(format!("{e:?}")),
        Error::System(why) => Failure::Environment(why),
        Error::Record(e) => Failure::Environment(crate::failure::reason(&e)),
        Error::Interrupted => Failure::Interrupted,
    }
}
