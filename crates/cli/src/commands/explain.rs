//! What `weir sim` shows besides figures: histories of requests, what typical ones consist of, how the run went over
//! time.

use super::sim::Sim;
use crate::failure::Failure;
use crate::output::{Outputs, Target};
use crate::progress::Progress;
use std::io::{Write, stderr};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use weir_plan::Plan;
use weir_report::TraceForm;
use weir_sim::{Explanation, Observer, Options, RecordOptions, Recording, Results, Selection};

/// Checks that the requested outputs are possible.
pub(crate) fn check(args: &Sim) -> Result<(), Failure> {
    args.laboratory.trace.as_deref().map_or(Ok(()), |path| format_of(path).map(|_| ()))
}

/// The form that a file's ending names.
fn format_of(path: &Path) -> Result<TraceForm, Failure> {
    match path.extension().and_then(|e| e.to_str()) {
        Some("jsonl") => Ok(TraceForm::Lines),
        Some("json") => Ok(TraceForm::Events),
        _ => Err(Failure::Usage(format!(
            "--trace `{}`: the file's extension chooses the format; use .jsonl (a line for each request) or \
                .json (for Perfetto)",
            path.display()
        ))),
    }
}

/// A file of histories.
pub(crate) struct Trace {
    target: Target,
    form: TraceForm,
}

impl Trace {
    /// Tries it.
    pub(crate) fn open(args: &Sim, outputs: &mut Outputs) -> Result<Option<Trace>, Failure> {
        let Some(path) = args.laboratory.trace.as_deref() else { return Ok(None) };
        let form = format_of(path)?;
        Ok(outputs.open("--trace", Some(path))?.map(|target| Trace { target, form }))
    }

    pub(crate) fn write(
        &self,
        args: &Sim,
        results: &Results,
        recordings: &[Recording<'_>],
    ) -> Result<(), Failure> {
        let words = args.laboratory.traced().words;
        self.target.write(|out| weir_report::trace(results, recordings, &words, self.form, out))
    }
}

/// Checks that the requests that are traced by number exist.
pub(crate) fn check_traced(
    args: &Sim,
    results: &Results,
    recordings: &[Recording<'_>],
) -> Result<(), Failure> {
    let Selection::These(numbers) = args.laboratory.traced().selection else { return Ok(()) };
    // A request that never ends has no history, and exists.
    let replications = u64::from(results.replications.max(1));
    let most = results.scenarios.iter().map(|s| s.requests.total.div_ceil(replications)).max().unwrap_or(0);
    let is_traced = |n: u64| recordings.iter().flat_map(|r| &r.histories).any(|h| h.request == n);
    let missing: Vec<String> =
        numbers.iter().filter(|n| **n >= most && !is_traced(**n)).map(u64::to_string).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--trace-requests: no replication has a request {}; they are numbered from 0 to {}",
        missing.join(" or "),
        most.saturating_sub(1)
    )))
}

/// Repeats the replications that the requested outputs need, and adds to the result what is part of it.
pub(crate) fn recordings<'p>(
    plan: &'p Plan,
    args: &Sim,
    options: &Options,
    results: &mut Results,
    stop: &AtomicBool,
) -> Result<Vec<Recording<'p>>, Failure> {
    let laboratory = &args.laboratory;
    let explain = laboratory.explain || args.html.is_some();
    let trace = laboratory.trace.as_ref().map(|_| laboratory.traced().selection);
    if results.interrupted || !explain && trace.is_none() {
        return Ok(Vec::new());
    }
    // With --precision there were as many, and as long ones, as it took.
    let options = Options { replications: results.replications, stretch: results.stretch, ..options.clone() };
    let progress = Progress::new(args.file.verbosity.quiet);
    // A trace shows members over time, where they change.
    let changes = || plan.points.iter().flat_map(|point| &point.scenarios).any(|s| !s.events.is_empty());
    let looks = RecordOptions { explain: explain || trace.is_some() && changes(), trace };
    let began = Instant::now();
    let observer = Observer {
        progress: &|done, all| progress.tell(done, all),
        stop,
        // The figures are there, only what explains them is not.
        overdue: &|_| {
            progress.end();
            super::sim::interrupted(args, &Results { interrupted: true, ..results.clone() }).exit();
        },
    };
    let outcome = weir_sim::record(plan, &options, &looks, &observer);
    progress.end();
    if !args.file.verbosity.quiet {
        let what = if looks.trace.is_some() { "all replications" } else { "the first replication" };
        let took = began.elapsed().as_secs_f64();
        let _ = writeln!(stderr(), "{what} of each scenario again, to see what happens in it: {took:.2} s");
    }
    let Some(mut recordings) = outcome.map_err(|error| super::sim::failure(plan, error))? else {
        results.interrupted = true;
        return Ok(Vec::new());
    };
    for (scenario, of) in results.scenarios.iter_mut().zip(&mut recordings).filter(|_| explain) {
        let series = of.series.take();
        scenario.explained =
            series.map(|series| Explanation { typical: std::mem::take(&mut of.typical), series });
    }
    Ok(recordings)
}
