//! Running the scenarios of a plan: replications spread over threads, results in order.

use crate::results::gather::{JobReplications, Run, Sink};
use crate::results::job::{Job, JobOptions, jobs};
use crate::results::precision;
use crate::results::precision::Precision;
use crate::results::result::{Results, ScenarioResult, Shortfall};
use crate::results::summary;
use crate::results::threads::Observer;
use std::sync::atomic::AtomicBool;
use weir_plan::Plan;

/// The options of `weir sim`.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of all draws.
    pub seed: u64,
    /// The number of the first replication: 0, unless a single one is requested.
    pub first: u32,
    /// Independent replications; at least 1.
    pub replications: u32,
    /// How many of them show where a scenario with `window="auto"` settles; `None`: all. A replication that is run
    /// again needs the number that the run had.
    pub settled_over: Option<u32>,
    /// Overrides the number of requests of every scenario.
    pub requests: Option<u64>,
    /// The number of requests of a scenario is multiplied by this where its traffic goes on alike (at least 1). See
    /// [`Results::stretch`].
    pub stretch: u64,
    /// Threads to spread replications over; at least 1. Changes no byte of the result.
    pub threads: usize,
    /// List every member of a site rather than one entry per site.
    pub members: bool,
    /// Simulate connections to all servers, not only to those whose openings take time.
    pub connections: bool,
    /// The scenarios to run; empty: all. An unknown name is an error.
    pub scenarios: Vec<String>,
}

/// Why a simulation failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// No scenario of that name; the second field lists those that exist.
    UnknownScenario(String, Vec<String>),
    /// The plan contains something that cannot be simulated: a sentence with place and remedy.
    Plan(String),
    /// A self-check failed: weir is at fault (exit code 4). Sentences that name scenario, replication and check.
    SelfCheck(Vec<String>),
}

/// What to compute beside the figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extras {
    /// Each estimate's values by replication.
    pub each: bool,
    /// Run further replications until the figures are this precise.
    pub precision: Option<Precision>,
}

/// Runs the scenarios of a plan. `progress` receives (replications done, replications in all) from any thread; once
/// `stop` is true, what is finished is returned with [`Results::interrupted`] set.
///
/// # Errors
/// An unknown scenario, a plan that cannot be simulated, or a failed self-check.
pub fn run(
    plan: &Plan,
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
    stop: &AtomicBool,
) -> Result<Results, Error> {
    run_with_extras(plan, options, &Extras::default(), progress, stop)
}

/// Like [`run`], with more than the figures.
///
/// # Errors
/// As [`run`].
pub fn run_with_extras(
    plan: &Plan,
    options: &Options,
    wants: &Extras,
    progress: &(dyn Fn(u64, u64) + Sync),
    stop: &AtomicBool,
) -> Result<Results, Error> {
    run_observed(plan, options, wants, Observer::new(progress, stop))
}

/// The same for an observer.
///
/// # Errors
/// As [`run`].
pub fn run_observed(
    plan: &Plan,
    options: &Options,
    wants: &Extras,
    observer: Observer<'_>,
) -> Result<Results, Error> {
    match &wants.precision {
        None => run_all(plan, &Run { jobs: jobs(plan, options)?, options, observer, fast: true }, wants),
        Some(precision) => precision::run(plan, options, observer, wants, precision),
    }
}

/// Like [`run`]; without `fast` the reference runs everything, which changes nothing but the time it takes.
#[cfg(test)]
pub(crate) fn run_with(
    plan: &Plan,
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
    stop: &AtomicBool,
    fast: bool,
) -> Result<Results, Error> {
    let run = Run { jobs: jobs(plan, options)?, options, observer: Observer::new(progress, stop), fast };
    run_all(plan, &run, &Extras::default())
}

/// Runs the given number of replications. A job is summed up once its last one has finished, so that no more is kept.
fn run_all(plan: &Plan, run: &Run<'_>, wants: &Extras) -> Result<Results, Error> {
    let numbers: Vec<u32> = (0..run.options.replications.max(1)).collect();
    let scenarios = run.jobs.iter().map(|_| None).collect();
    let mut sums = Sums { plan, run, wants, replications: numbers.len() as u32, scenarios, events: 0 };
    run.replicate(&numbers, &mut sums)?;
    Ok(sums.results())
}

/// The jobs of a run that are summed up so far.
struct Sums<'a> {
    plan: &'a Plan,
    run: &'a Run<'a>,
    wants: &'a Extras,
    replications: u32,
    scenarios: Vec<Option<ScenarioResult>>,
    events: u64,
}

impl Sums<'_> {
    fn results(&mut self) -> Results {
        let scenarios = std::mem::take(&mut self.scenarios);
        results_of(self.plan, self.run.options, self.replications, scenarios, self.events, Vec::new())
    }
}

impl Sink for Sums<'_> {
    fn take(&mut self, job: usize, all: JobReplications) -> Result<(), Error> {
        self.events += all.runs.iter().map(|r| r.events).sum::<u64>();
        let mut result = finish(&self.run.jobs[job], self.run, self.wants.each, &all)?;
        result.finished = all.fewer_than(self.replications);
        self.run.jobs[job].forget_program();
        self.scenarios[job] = Some(result);
        Ok(())
    }

    fn tell_overdue(&mut self) {
        let scenarios = self.scenarios.clone();
        (self.run.observer.overdue)(Some(&self.results()));
        self.scenarios = scenarios;
    }
}

/// The results of all jobs that finished.
pub(crate) fn results_of(
    plan: &Plan,
    options: &Options,
    replications: u32,
    scenarios: Vec<Option<ScenarioResult>>,
    events: u64,
    shortfalls: Vec<Shortfall>,
) -> Results {
    let interrupted = scenarios.iter().any(|s| s.as_ref().is_none_or(|s| s.finished.is_some()));
    Results {
        version: env!("CARGO_PKG_VERSION").to_string(),
        file: plan.file.clone(),
        plan: plan.hash.clone(),
        seed: options.seed,
        replications,
        requests: options.requests,
        stretch: options.stretch,
        scenarios: scenarios.into_iter().flatten().collect(),
        events,
        shortfalls,
        interrupted,
    }
}

/// The result of a job from its replications, in their order.
pub(crate) fn finish(
    job: &Job<'_>,
    run: &Run<'_>,
    each: bool,
    all: &JobReplications,
) -> Result<ScenarioResult, Error> {
    let JobReplications { runs, pooled, slices, overload } = all;
    let broken: Vec<String> = runs
        .iter()
        .enumerate()
        .flat_map(|(i, r)| {
            r.violations.iter().map(move |v| format!("{}, replication {i}: {v}", job.scenario.name))
        })
        .collect();
    if !broken.is_empty() {
        return Err(Error::SelfCheck(broken));
    }
    let program = &*job.program(run.options.members, run.fast).map_err(Error::Plan)?;
    let asked = JobOptions {
        requests: job.requests,
        overridden: run.options.requests.is_some(),
        stretch: job.stretch,
        seed: run.options.seed,
    };
    let pooled = summary::PooledRuns { latencies: pooled.clone(), slices: slices.as_ref() };
    let mut result = summary::scenario(job.point, job.scenario, program, runs, pooled, asked, each);
    if let Some(why) = overload {
        let known = job.point.warnings_of(job.scenario).into_iter().map(str::to_owned);
        result.warnings = std::iter::once(why.clone()).chain(known).collect();
    }
    Ok(result)
}
