//! `weir sim FILE`: simulates its scenarios and writes what came out.

mod args;

pub(crate) use args::Sim;

use super::{explain, watch};
use crate::args::{Nodes, SimFormat};
use crate::failure::Failure;
use crate::output::{self, Outputs, Target, Written};
use crate::progress::Progress;
use crate::{input, interrupt};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use weir_plan::Plan;
use weir_report::{View, group_digits};
use weir_sim::{Error, Explanation, Extras, Observer, Options, Results, SETTLED_OVER, Shard};

pub(crate) fn run(args: &Sim) -> Result<(), Failure> {
    explain::check(args)?;
    let save_format = args.save.as_deref().map(format_of).transpose()?;
    if args.laboratory.shard.is_some() && save_format != Some(SimFormat::Json) {
        return Err(Failure::Usage("--shard needs --save FILE.json".to_owned()));
    }
    if args.laboratory.watch {
        return watch::run(args);
    }
    // Scenarios of one file differ in size, and what one leaves would not fit the next: 444 MB instead of 408 for the four
    // of `examples/zuul/fleet.star`.
    weir_memory::keep_large_blocks_outside();
    let at_once = interrupt::at_once();
    let (plan, read) = input::load_with_files(&args.file)?;
    let stop = interrupt::stop_flag(&at_once);
    require_scenario(&plan)?;
    let baseline = args.laboratory.baseline.as_deref();
    require_baseline(&plan, &args.scenarios, baseline)?;
    if let Some(shard) = args.laboratory.shard {
        let save = Outputs::new(&read).open("--save", args.save.as_deref())?;
        return save.map_or(Ok(()), |save| part(&plan, args, shard, &save, &stop));
    }
    let mut outputs = Outputs::beside_result(&read);
    let html = outputs.open("--html", args.html.as_deref())?;
    let junit = outputs.open("--junit", args.laboratory.junit.as_deref())?;
    let save = outputs.open("--save", args.save.as_deref())?;
    let trace = explain::Trace::open(args, &mut outputs)?;

    let overdue = |results: Option<&Results>| match results {
        Some(results) => interrupted(args, results).exit(),
        None => Failure::Interrupted.exit(),
    };
    let mut results = simulate(&plan, args, &stop, &overdue)?;
    let recordings = explain::recordings(&plan, args, &options(args), &mut results, &stop)?;
    if results.interrupted {
        return Err(interrupted(args, &results));
    }
    // Only the page has this without being asked for it.
    let explained = set_aside(args, &mut results);
    let mut written = Written::result(|out| render(args, args.output, &results, out));
    if let Some(form) = save_format {
        written.file(save.as_ref(), |out| formed(form, &args.view.to_view(), true, &results, out));
    }
    written.file(junit.as_ref(), |out| weir_report::junit(&results, out));
    if let Some(trace) = trace {
        written.add(trace.write(args, &results, &recordings));
    }
    for (scenario, explained) in results.scenarios.iter_mut().zip(explained) {
        scenario.explained = explained;
    }
    written.file(html.as_ref(), |out| weir_report::html(&results, &plan, baseline, &args.view.columns, out));
    let traced = explain::check_traced(args, &results, &recordings);
    written.end(verdict(args, &results).and(traced))
}

/// Prints what is finished of a run; files are whole or absent.
pub(crate) fn interrupted(args: &Sim, results: &Results) -> Failure {
    if let Err(failure) = output::to_stdout(|out| render(args, args.output, results, out)) {
        return failure;
    }
    let files = [&args.html, &args.save, &args.laboratory.junit, &args.laboratory.trace];
    for path in files.into_iter().flatten() {
        output::note_unwritten(path);
    }
    Failure::InterruptedAfter(weir_report::interrupted(results))
}

/// Takes what explains the scenarios out of the result, unless `--explain` asks for it there.
fn set_aside(args: &Sim, results: &mut Results) -> Vec<Option<Explanation>> {
    if args.laboratory.explain {
        return Vec::new();
    }
    results.scenarios.iter_mut().map(|s| s.explained.take()).collect()
}

/// Whether all expectations hold, and all figures are as precise as requested.
fn verdict(args: &Sim, results: &Results) -> Result<(), Failure> {
    if args.laboratory.github {
        let _ = weir_report::annotations(results, &mut io::stderr());
    }
    met(results)
}

/// The same, and no more.
pub(crate) fn met(results: &Results) -> Result<(), Failure> {
    let unmet = weir_report::unmet(results);
    if unmet.is_empty() { Ok(()) } else { Err(Failure::No(unmet.join("\n  "))) }
}

/// A part of the run, kept for `weir merge`.
fn part(plan: &Plan, args: &Sim, shard: Shard, save: &Target, stop: &AtomicBool) -> Result<(), Failure> {
    let progress = Progress::new(args.file.verbosity.quiet);
    let observer = Observer {
        progress: &|done, all| progress.tell(done, all),
        stop,
        overdue: &|_| {
            progress.end();
            Failure::Interrupted.exit();
        },
    };
    let outcome = weir_sim::run_shard(plan, &options(args), shard, observer);
    progress.end();
    let Some(part) = outcome.map_err(|error| failure(plan, error))? else { return Err(Failure::Interrupted) };
    let json = part.to_json();
    if let Err(failure) = save.write(|out| out.write_all(&json)) {
        // What took hours is not lost with a full disk.
        if !io::stdout().is_terminal() {
            output::to_stdout(|out| out.write_all(&json))?;
        }
        return Err(failure);
    }
    if !args.file.verbosity.quiet {
        let (Shard { k, n }, own, all) = (shard, part.replications(), args.replications);
        let _ = writeln!(
            io::stderr(),
            "part {k} of {n}: {own} of {all} replications; `weir merge` merges the parts"
        );
    }
    Ok(())
}

fn options(args: &Sim) -> Options {
    Options {
        seed: args.seed,
        first: 0,
        replications: args.replications,
        settled_over: args.laboratory.precision().map(|_| SETTLED_OVER),
        stretch: 1,
        requests: args.requests,
        threads: args.threads.map_or_else(cores, usize::from),
        members: args.view.nodes == Some(Nodes::All),
        connections: args.laboratory.connections,
        scenarios: args.scenarios.clone(),
    }
}

/// Runs the scenarios; `overdue` as in [`Observer`].
pub(crate) fn simulate(
    plan: &Plan,
    args: &Sim,
    stop: &AtomicBool,
    overdue: &(dyn Fn(Option<&Results>) + Sync),
) -> Result<Results, Failure> {
    // The page compares replications.
    let each = args.save.is_some()
        || args.html.is_some()
        || args.laboratory.watch
        || (args.laboratory.each && args.output == SimFormat::Json);
    let wants = Extras { each, precision: args.laboratory.precision() };
    run_plan(plan, &options(args), &wants, args.file.verbosity.quiet, stop, overdue)
}

/// Simulates; prints the progress, and what the run took.
pub(crate) fn run_plan(
    plan: &Plan,
    options: &Options,
    wants: &Extras,
    quiet: bool,
    stop: &AtomicBool,
    overdue: &(dyn Fn(Option<&Results>) + Sync),
) -> Result<Results, Failure> {
    let progress = Progress::new(quiet);
    let start = Instant::now();
    let observer = Observer {
        progress: &|done, all| progress.tell(done, all),
        stop,
        overdue: &|results| {
            progress.end();
            overdue(results);
        },
    };
    let outcome = weir_sim::run_observed(plan, options, wants, observer);
    progress.end();
    if let (Ok(results), false) = (&outcome, quiet) {
        tell_effort(results, start.elapsed());
    }
    outcome.map_err(|error| failure(plan, error))
}

/// Why there is no result.
pub(crate) fn failure(plan: &Plan, error: Error) -> Failure {
    match error {
        Error::UnknownScenario(name, known) => {
            Failure::Usage(format!("{} has no scenario `{name}`; it has {}", plan.file, known.join(", ")))
        }
        Error::Plan(sentence) => Failure::Usage(sentence),
        Error::SelfCheck(sentences) => Failure::Fault(sentences.join("\n  ")),
    }
}

/// What the run took, on standard error: it differs from run to run, so it is not part of the result.
fn tell_effort(results: &Results, took: Duration) {
    let requests: u64 = results.scenarios.iter().map(|s| s.requests.total).sum();
    let (requests, events) = (group_digits(requests, ' '), group_digits(results.events, ' '));
    let _ = writeln!(io::stderr(), "{requests} requests, {events} events in {:.2} s", took.as_secs_f64());
}

fn render(args: &Sim, form: SimFormat, results: &Results, out: &mut dyn Write) -> io::Result<()> {
    formed(form, &args.view.to_view(), args.laboratory.each, results, out)
}

/// A result in a form.
pub(crate) fn formed(
    form: SimFormat,
    view: &View,
    each: bool,
    results: &Results,
    out: &mut dyn Write,
) -> io::Result<()> {
    match form {
        SimFormat::Text => weir_report::text(results, view, output::width(), out),
        SimFormat::Json if each => weir_report::json_with_each(results, out),
        SimFormat::Json => weir_report::json(results, out),
        SimFormat::Csv => weir_report::csv(results, out),
        SimFormat::Parquet => weir_report::parquet(results, out),
    }
}

/// The form that a saved file's ending names.
pub(crate) fn format_of(path: &Path) -> Result<SimFormat, Failure> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("json") => Ok(SimFormat::Json),
        Some("csv") => Ok(SimFormat::Csv),
        Some("parquet") => Ok(SimFormat::Parquet),
        _ => Err(Failure::Usage(format!(
            "--save `{}`: the file's extension chooses the format; use .json, .csv or .parquet",
            path.display()
        ))),
    }
}

pub(crate) fn require_scenario(plan: &Plan) -> Result<(), Failure> {
    if plan.points.iter().any(|p| !p.scenarios.is_empty()) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} has no scenario; add one: scenario(\"main\", node, traffic.poisson(every = 1*ms), requests = 100000)",
        plan.file
    )))
}

/// Checks that the baseline is among the scenarios that are simulated.
fn require_baseline(plan: &Plan, chosen: &[String], baseline: Option<&str>) -> Result<(), Failure> {
    let Some(name) = baseline else { return Ok(()) };
    let is_simulated = |of: &str| chosen.is_empty() || chosen.iter().any(|c| c == of);
    let mut known: Vec<&str> = Vec::new();
    for s in plan.points.iter().flat_map(|p| &p.scenarios).filter(|s| is_simulated(&s.name)) {
        if !known.contains(&&s.name[..]) {
            known.push(&s.name);
        }
    }
    if known.contains(&name) {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--baseline `{name}`: there is no such scenario in this run; there are {}",
        known.join(", ")
    )))
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
