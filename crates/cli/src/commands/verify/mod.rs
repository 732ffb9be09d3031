//! `weir verify FILE`: compares scenarios in simulation and in reality.

mod args;
mod progress;

pub(crate) use args::Verify;

use crate::args::ReportFormat;
use crate::failure::Failure;
use crate::output::{Outputs, Target, Written};
use crate::{input, interrupt, output};
use progress::Meter;
use std::fs::File;
use std::io::{self, BufReader, Write};
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
    let (plan, mut read) = input::load_with_files(&file)?;
    let reality = args.reality().map(|file| input::load_with_files(&file)).transpose()?;
    read.extend(reality.iter().flat_map(|(_, read)| read.clone()));
    let mut outputs = Outputs::beside_result(&read);
    let html = outputs.open("--html", args.html.as_deref())?;
    let record = outputs.open("--record", args.record.as_deref())?;
    let stop = interrupt::stop_flag(&at_once);
    let options = make_options(args, reality.map(|(plan, _)| plan))?;
    let meter = Meter::new(args.verbosity.quiet);
    let (found, recorded) = verify(&plan, &options, record.as_ref(), &meter, &stop)?;
    if found.is_interrupted() {
        return end_interrupted(args, &found, [html.as_ref(), record.as_ref()], recorded);
    }
    let mut written = Written::result(|out| render(args, &found, out));
    written.file(html.as_ref(), |out| weir_report::verify_html(&found, out));
    written.add(recorded);
    written.end(judge(&found))
}

fn render(args: &Verify, found: &Verification, out: &mut dyn Write) -> io::Result<()> {
    match args.output {
        ReportFormat::Text => weir_report::verify_text(found, output::width(), out),
        ReportFormat::Json => weir_report::verify_json(found, out),
    }
}

/// Prints what is finished of a verification, and what that means for the files of `--html` and `--record`.
fn end_interrupted(
    args: &Verify,
    found: &Verification,
    [html, record]: [Option<&Target>; 2],
    recorded: Result<(), Failure>,
) -> Result<(), Failure> {
    let mut written = Written::result(|out| render(args, found, out));
    html.into_iter().for_each(|html| output::note_unwritten(html.path()));
    // Where it could not be written, that is said instead.
    match record.filter(|_| recorded.is_ok()) {
        Some(record) if record.is_written_in_place() => {
            let path = record.path().display();
            let _ = writeln!(io::stderr(), "the record in `{path}` is not whole; it cannot be replayed");
        }
        record => record.into_iter().for_each(|record| output::note_unwritten(record.path())),
    }
    written.add(recorded);
    written.end(Err(Failure::InterruptedAfter(weir_report::verify_interrupted(found))))
}

/// `reality`: what is served, if that is another plan.
fn make_options(args: &Verify, reality: Option<Plan>) -> Result<Options, Failure> {
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
        reality,
        exe,
    })
}

/// A record that is written while the runs last. Where it cannot be, the runs go on, and that is said at the end.
struct Record<'a> {
    out: &'a mut dyn Write,
    failed: Option<io::Error>,
}

impl Record<'_> {
    fn unless_failed<T>(
        &mut self,
        done: T,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.failed.is_some() {
            return Ok(done);
        }
        match write(self.out) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                self.failed = Some(e);
                Ok(done)
            }
            written => written,
        }
    }
}

impl Write for Record<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_failed(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_failed((), |out| out.flush())
    }
}

/// Runs all scenarios in both worlds; also whether the record could be written, as far as they went.
fn verify(
    plan: &Plan,
    options: &Options,
    record: Option<&Target>,
    meter: &Meter,
    stop: &Arc<AtomicBool>,
) -> Result<(Verification, Result<(), Failure>), Failure> {
    let tell = |progress: Progress<'_>| meter.tell(progress);
    let (mut found, mut recorded) = (None, Ok(()));
    if let Some(record) = record {
        let mut is_cut = false;
        recorded = record.write(|out| {
            let mut record = Record { out, failed: None };
            let ended = weir_verify::verify(plan, options, Some(&mut record), &tell, stop);
            let is_whole = ended.as_ref().is_ok_and(|found| !found.is_interrupted());
            found = Some(ended);
            match record.failed {
                Some(e) => Err(e),
                None if is_whole => Ok(()),
                // A part of a record cannot be replayed, so it replaces no file.
                None => {
                    is_cut = true;
                    Err(io::ErrorKind::Interrupted.into())
                }
            }
        });
        if is_cut {
            recorded = Ok(());
        }
    }
    // Without a record, or where it could not even be begun.
    let found = found.unwrap_or_else(|| weir_verify::verify(plan, options, None, &tell, stop));
    meter.end();
    found.map(|found| (found, recorded)).map_err(|e| failure(plan, e))
}

/// Success if the worlds agree; otherwise what to do, as far as that can be said.
fn judge(found: &Verification) -> Result<(), Failure> {
    match found.verdict() {
        Verdict::Agrees => Ok(()),
        Verdict::Differs => {
            let figures = weir_report::verify_figures(found, Verdict::Differs);
            Err(Failure::No(format!("simulation and reality differ in {figures}")))
        }
        Verdict::Undecided if found.scenarios.iter().any(|s| s.runs == 0) => {
            let all_void = "undecided: every run of a scenario is void; stop other work on this machine";
            Err(Failure::No(all_void.to_owned()))
        }
        Verdict::Undecided
            if found.scenarios.iter().any(|s| s.statistics.iter().any(|s| s.simulated.value.is_none())) =>
        {
            let unsaid = "undecided: a run does not have the figure of a tolerance that was set; the warnings say \
                          why, and whether longer runs have it";
            Err(Failure::No(unsaid.to_owned()))
        }
        Verdict::Undecided => {
            let figures = weir_report::verify_figures(found, Verdict::Undecided);
            let advice = weir_report::verify_advice(found);
            Err(Failure::No(format!("undecided in {figures}; {advice}")))
        }
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
