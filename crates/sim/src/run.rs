//! Running the scenarios of a plan: replications spread over threads, results in order.

use crate::blocks::Layout;
use crate::bounds::{Cut, MOST_AT_ONCE};
use crate::code::Code;
use crate::compile::compile;
use crate::engine::Engine;
use crate::latency::Pooled;
use crate::ledger::Ledger;
use crate::order::RANKS;
#[cfg(test)]
use crate::reference::{Reference, Tables};
use crate::result::{Results, ScenarioResult};
use crate::summary::{self, Replication, Row};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use weir_stats::{Histogram, Key};
use weir_topology::Plan;
use weir_topology::plan::{Point, Scenario};
use weir_workload::{Load, load_unless};

#[cfg(test)]
pub(crate) use crate::source::load;

/// What `weir sim` is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of all draws.
    pub seed: u64,
    /// The first replication, by its number: 0, where no single one is asked for.
    pub first: u32,
    /// Independent replications; at least 1.
    pub replications: u32,
    /// Overrides the number of requests of every scenario.
    pub requests: Option<u64>,
    /// Threads to spread replications over; at least 1. Changes no byte of the result.
    pub threads: usize,
    /// One entry for every member of a site rather than one per site.
    pub members: bool,
    /// The scenarios to run; all if empty. An unknown name is an error.
    pub scenarios: Vec<String>,
}

/// Why a simulation could not be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// No scenario of that name; the second field lists those that exist.
    UnknownScenario(String, Vec<String>),
    /// The plan asks for what cannot be simulated: a sentence with place and remedy.
    Plan(String),
    /// A self-check failed: weir is at fault (exit code 4). Sentences that name scenario, replication and check.
    SelfCheck(Vec<String>),
}

/// One scenario at one sweep point, with its code once a thread has compiled it.
struct Job<'a> {
    point: &'a Point,
    scenario: &'a Scenario,
    requests: Option<u64>,
    compiled: OnceLock<Result<Program, String>>,
}

/// How many requests were asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub requests: Option<u64>,
    /// On the command line.
    pub overridden: bool,
}

/// A scenario made ready to run.
pub(crate) struct Program {
    pub code: Code,
    /// What its stages do, where a test asks the reference.
    #[cfg(test)]
    pub tables: Option<Tables>,
    pub rows: Vec<Row>,
}

/// What a thread reports: job, replication, outcome (`None`: stopped).
type Report = (usize, u32, Result<Option<Done>, String>);

/// A replication summed up, and its latencies: of successes, and of failures.
struct Done {
    run: Replication,
    ok: Histogram,
    failed: Histogram,
}

/// The replications of a job that have come in.
struct Gathered {
    runs: Vec<Option<Replication>>,
    missing: u32,
    pooled: Pooled,
}

impl Gathered {
    fn new(replications: u32) -> Gathered {
        let runs = (0..replications).map(|_| None).collect();
        Gathered { runs, missing: replications, pooled: Pooled::default() }
    }

    /// Takes one in; whether it was the last.
    fn take_in(&mut self, replication: u32, done: Done) -> bool {
        self.runs[replication as usize] = Some(done.run);
        self.pooled.add(done.ok, done.failed);
        self.missing -= 1;
        self.missing == 0
    }
}

/// Runs the scenarios of a plan. `progress` hears (replications done, replications in all) from any thread; when `stop`
/// becomes true, what is finished comes back with [`Results::interrupted`] set.
///
/// # Errors
/// An unknown scenario, a plan that cannot be simulated, or a failed self-check.
pub fn run(
    plan: &Plan,
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
    stop: &AtomicBool,
) -> Result<Results, Error> {
    run_with(plan, options, progress, stop, true)
}

/// As [`run`]; without `fast` everything is run by the reference of tests, which changes nothing but the time it takes.
pub(crate) fn run_with(
    plan: &Plan,
    options: &Options,
    progress: &(dyn Fn(u64, u64) + Sync),
    stop: &AtomicBool,
    fast: bool,
) -> Result<Results, Error> {
    let jobs = jobs(plan, options)?;
    let replications = options.replications.max(1);
    let items = jobs.len() * replications as usize;
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel::<Report>();
    let mut gathered: Vec<Gathered> = jobs.iter().map(|_| Gathered::new(replications)).collect();
    let mut results: Vec<Option<ScenarioResult>> = jobs.iter().map(|_| None).collect();
    let mut failure = None;
    let mut events = 0;
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, items.max(1)) {
            let (send, next, jobs) = (send.clone(), &next, &jobs);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let item = next.fetch_add(1, Ordering::Relaxed);
                    if item >= items {
                        break;
                    }
                    let (job, replication) =
                        (item / replications as usize, (item % replications as usize) as u32);
                    let outcome = replicate(&jobs[job], options, replication, stop, fast);
                    if send.send((job, replication, outcome)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut done = 0;
        for (job, replication, outcome) in receive {
            match outcome {
                Ok(Some(replicated)) => {
                    done += 1;
                    progress(done, items as u64);
                    if gathered[job].take_in(replication, replicated) {
                        let all = std::mem::replace(&mut gathered[job], Gathered::new(0));
                        events += all.runs.iter().flatten().map(|r| r.events).sum::<u64>();
                        results[job] = finish(&jobs[job], options, all, &mut failure);
                    }
                }
                Ok(None) => {}
                Err(reason) => {
                    failure.get_or_insert(reason);
                    stop_early(&next, items);
                }
            }
        }
    });
    if let Some(reason) = failure {
        return Err(match reason.strip_prefix(FAULT) {
            Some(fault) => Error::SelfCheck(fault.lines().map(str::to_string).collect()),
            None => Error::Plan(reason),
        });
    }
    let interrupted = results.iter().any(Option::is_none);
    Ok(Results {
        version: env!("CARGO_PKG_VERSION").to_string(),
        file: plan.file.clone(),
        plan: plan.hash.clone(),
        seed: options.seed,
        replications,
        scenarios: results.into_iter().flatten().collect(),
        events,
        interrupted,
    })
}

/// Marks a failure as weir's own among those that threads report.
const FAULT: &str = "\u{0}";

fn stop_early(next: &AtomicUsize, items: usize) {
    next.store(items, Ordering::Relaxed);
}

fn finish(
    job: &Job,
    options: &Options,
    all: Gathered,
    failure: &mut Option<String>,
) -> Option<ScenarioResult> {
    let runs: Vec<Replication> = all.runs.into_iter().flatten().collect();
    let broken: Vec<String> = runs
        .iter()
        .enumerate()
        .flat_map(|(i, r)| {
            r.violations.iter().map(move |v| format!("{}, replication {i}: {v}", job.scenario.name))
        })
        .collect();
    if !broken.is_empty() {
        failure.get_or_insert(format!("{FAULT}{}", broken.join("\n")));
        return None;
    }
    let Some(Ok(program)) = job.compiled.get() else { return None };
    let asked = Asked { requests: job.requests, overridden: options.requests.is_some() };
    Some(summary::scenario(job.point, job.scenario, program, &runs, all.pooled, asked))
}

fn jobs<'a>(plan: &'a Plan, options: &Options) -> Result<Vec<Job<'a>>, Error> {
    let known = |name: &String| plan.points.iter().any(|p| p.scenarios.iter().any(|s| s.name == *name));
    if let Some(unknown) = options.scenarios.iter().find(|n| !known(n)) {
        let mut names: Vec<String> =
            plan.points.iter().flat_map(|p| p.scenarios.iter().map(|s| s.name.clone())).collect();
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|n| seen.insert(n.clone()));
        return Err(Error::UnknownScenario(unknown.clone(), names));
    }
    // In the order of the file, then sweep point.
    let longest = plan.points.iter().map(|p| p.scenarios.len()).max().unwrap_or(0);
    let mut names: Vec<&str> = Vec::new();
    for i in 0..longest {
        for point in &plan.points {
            if let Some(s) = point.scenarios.get(i)
                && !names.contains(&s.name.as_str())
            {
                names.push(&s.name);
            }
        }
    }
    names.retain(|n| options.scenarios.is_empty() || options.scenarios.iter().any(|s| s == n));
    let mut jobs = Vec::new();
    for name in names {
        for point in &plan.points {
            let Some(scenario) = point.scenarios.iter().find(|s| s.name == name) else { continue };
            let requests = options.requests.or(scenario.requests);
            if requests.is_none() && scenario.duration_ns.is_none() {
                return Err(Error::Plan(format!(
                    "scenario \"{name}\" says neither requests= nor duration=: how long should it run?"
                )));
            }
            jobs.push(Job { point, scenario, requests, compiled: OnceLock::new() });
        }
    }
    Ok(jobs)
}

fn replicate(
    job: &Job,
    options: &Options,
    replication: u32,
    stop: &AtomicBool,
    fast: bool,
) -> Result<Option<Done>, String> {
    let compiled = job.compiled.get_or_init(|| {
        program(job.point, job.scenario, options.members, fast)
            .map_err(|e| format!("scenario \"{}\": {e}", job.scenario.name))
    });
    let program = compiled.as_ref().map_err(Clone::clone)?;
    let key = Key::new(options.seed).with(u64::from(options.first) + u64::from(replication));
    let ran = match load_unless(job.scenario, job.requests, key, stop) {
        Some(load) => run_whole(program, load, key, stop),
        None => Err(Cut::Stopped),
    };
    match ran {
        Ok(ran) => {
            let run = summary::replication(program, &ran);
            Ok(Some(Done { run, ok: ran.ledger.ok, failed: ran.ledger.failed }))
        }
        Err(Cut::Stopped) => Ok(None),
        Err(Cut::StandsStill) => Err(format!(
            "scenario \"{}\": users without thinking time get answers that take no time, so they would send requests for ever \
             at one instant: give `traffic.closed` a `think`, or what answers them some work",
            job.scenario.name
        )),
        Err(Cut::TooManyBranches) => Err(format!(
            "scenario \"{}\": one request has more than {RANKS} branches at once, fan-outs and hedges within each other: give \
             them fewer targets, or fewer attempts",
            job.scenario.name
        )),
        Err(Cut::TooMany) => Err(format!(
            "scenario \"{}\" is overloaded beyond what can be simulated: more than {MOST_AT_ONCE} requests in flight at \
             once; give it fewer requests, or more to serve them",
            job.scenario.name
        )),
        Err(Cut::TooLong) => Err(format!(
            "scenario \"{}\" runs for more than 146 years of virtual time: shorten its waits, its gaps, or its number of \
             requests",
            job.scenario.name
        )),
    }
}

/// Makes a scenario ready to run.
pub(crate) fn program(
    point: &Point,
    scenario: &Scenario,
    members: bool,
    fast: bool,
) -> Result<Program, String> {
    let layout = Layout::new(point, scenario.root);
    #[cfg(test)]
    if !fast {
        let (code, tables) = crate::reference::build(layout, scenario, members)?;
        let rows = summary::rows(&code);
        return Ok(Program { code, tables: Some(tables), rows });
    }
    debug_assert!(fast, "the reference is for tests");
    let code = compile(layout, scenario, members)?;
    let rows = summary::rows(&code);
    #[cfg(test)]
    return Ok(Program { code, tables: None, rows });
    #[cfg(not(test))]
    Ok(Program { code, rows })
}

/// A finished replication: what it added up, how long its window was, and which laws it broke.
pub(crate) struct Ran {
    pub ledger: Ledger,
    pub window_ns: u64,
    pub violations: Vec<String>,
}

/// Runs a replication. Where the window turns out to be another than was taken, since requests ran out before the time did or
/// since it has none, the replication is run again with that.
fn run_whole(program: &Program, mut load: Load, key: Key, stop: &AtomicBool) -> Result<Ran, Cut> {
    loop {
        let ran = run_once(program, load.clone(), key, stop)?;
        let Ledger { arrived, last_start, .. } = ran.ledger;
        match load.window_that_was(arrived, last_start, ran.ledger.selected()) {
            Some(window) => load.window = window,
            None => return Ok(ran),
        }
    }
}

fn run_once(program: &Program, load: Load, key: Key, stop: &AtomicBool) -> Result<Ran, Cut> {
    let code = &program.code;
    let (requests, selected) = load.expected();
    #[cfg(test)]
    if let Some(tables) = &program.tables {
        let mut reference = Reference::new(code, tables, load, key, stop);
        reference.run()?;
        let violations = reference.violations(requests, selected);
        return Ok(Ran { violations, window_ns: reference.window_ns(), ledger: reference.ledger });
    }
    let mut engine = Engine::new(code, load, key, stop);
    engine.run()?;
    engine.ledger.add_constant_waits(code);
    let violations = engine.violations(requests, selected);
    Ok(Ran { violations, window_ns: engine.window_ns(), ledger: engine.ledger })
}
