//! What `weir sim` shows besides figures: histories of requests, what typical ones consist of, how the run went over
//! time.

use super::sim::Sim;
use crate::failure::Failure;
use crate::output::Target;
use crate::progress::Progress;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;
use weir_report::TraceForm;
use weir_sim::{Explanation, Options, RecordOptions, Recording, Results};

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
    pub(crate) fn open(args: &Sim) -> Result<Option<Trace>, Failure> {
        let Some(path) = args.laboratory.trace.as_deref() else { return Ok(None) };
        Ok(Some(Trace { form: format_of(path)?, target: Target::not_over(&[&args.file.file])(path)? }))
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
    // With --precision there were as many as it took.
    let options = Options { replications: results.replications, ..options.clone() };
    let progress = Progress::new(args.file.verbosity.quiet);
    let looks = RecordOptions { trace, explain };
    let outcome = weir_sim::record(plan, &options, &looks, &|done, all| progress.tell(done, all), stop);
    progress.end();
    let Some(mut recordings) = outcome.map_err(|error| super::sim::failure(plan, error))? else {
        results.interrupted = true;
        return Ok(Vec::new());
    };
    for (scenario, of) in results.scenarios.iter_mut().zip(&mut recordings) {
        let series = of.series.take();
        scenario.explained =
            series.map(|series| Explanation { typical: std::mem::take(&mut of.typical), series });
    }
    Ok(recordings)
}
