//! Runs one replication of a scenario: the scenario is compiled once, run by an engine, and summed up.

use crate::account::ledger::Ledger;
use crate::account::settle::{Series, SettlingPoint};
use crate::code::Code;
use crate::code::bounds::{Cut, MOST_AT_ONCE};
use crate::code::order::RANKS;
use crate::compile::blocks::Layout;
use crate::compile::compile;
use crate::engine::Engine;
use crate::reference::Recorder;
use crate::reference::Reference;
use crate::reference::Tables;
use crate::results::job::Job;
use crate::results::run::Options;
use crate::results::summary::{self, Replication, Row};
use std::sync::atomic::AtomicBool;
use weir_plan::{Point, Scenario};
use weir_stats::{Histogram, Key};
use weir_workload::{Load, load_unless};

/// A scenario that is ready to run.
pub(crate) struct Program {
    pub code: Code,
    /// What its stages do, where the reference runs it.
    pub tables: Option<Tables>,
    pub rows: Vec<Row>,
}

/// The summary of a replication, and its latencies: of successes, and of failures.
pub(crate) struct Summary {
    pub run: Replication,
    pub ok: Histogram,
    pub failed: Histogram,
}

/// Runs a replication; `None`: it was stopped.
pub(crate) fn replicate(
    job: &Job,
    options: &Options,
    replication: u32,
    stop: &AtomicBool,
    fast: bool,
) -> Result<Option<Summary>, String> {
    let program = job.program(options.members, fast)?;
    let key = Key::new(options.seed).with(u64::from(options.first) + u64::from(replication));
    let ran = match load_unless(job.scenario, job.requests, key, stop) {
        Some(load) => run_whole(program, load, key, stop),
        None => Err(Cut::Stopped),
    };
    match ran {
        Ok(ran) => {
            let run = summary::replication(program, &ran);
            Ok(Some(Summary { run, ok: ran.ledger.ok, failed: ran.ledger.failed }))
        }
        Err(cut) => none_or_why(&job.scenario.name, cut),
    }
}

/// `None` for a replication that was stopped; otherwise why it has no result.
pub(crate) fn none_or_why<T>(name: &str, cut: Cut) -> Result<Option<T>, String> {
    let why = match cut {
        Cut::Stopped => return Ok(None),
        Cut::StandsStill => "users without thinking time get answers that take no time, so they would send requests for ever at \
             one instant: give `traffic.closed` a `think`, or give work to what answers them"
            .to_owned(),
        Cut::TooManyBranches => format!(
            "one request has more than {RANKS} branches at once, fan-outs and hedges within each other: give them fewer targets, \
             or fewer attempts"
        ),
        // The rest of the sentence differs.
        Cut::TooMany => {
            return Err(format!(
                "scenario \"{name}\" is overloaded beyond what can be simulated: more than {MOST_AT_ONCE} requests in flight \
                 at once; give it fewer requests, or more servers"
            ));
        }
        Cut::TooLong => {
            return Err(format!(
                "scenario \"{name}\" runs for more than 146 years of virtual time: shorten its waits, its gaps, or its number \
                 of requests"
            ));
        }
    };
    Err(format!("scenario \"{name}\": {why}"))
}

/// Prepares a scenario to be run.
pub(crate) fn program(
    point: &Point,
    scenario: &Scenario,
    members: bool,
    fast: bool,
) -> Result<Program, String> {
    let layout = Layout::new(point, scenario.root);
    if !fast {
        let (code, tables) = crate::reference::build(layout, scenario, members)?;
        let rows = summary::rows(&code);
        return Ok(Program { code, tables: Some(tables), rows });
    }
    let code = compile(layout, scenario, members)?;
    let rows = summary::rows(&code);
    Ok(Program { code, tables: None, rows })
}

/// A finished replication: its sums, the length of its window, and the laws that it broke.
pub(crate) struct FinishedRun {
    pub ledger: Ledger,
    pub window_ns: u64,
    pub violations: Vec<String>,
    /// Where it settled, with `window="auto"`.
    pub settled: Option<SettlingPoint>,
}

/// Runs a replication. If the window turns out to differ from the assumed one, because requests ran out before the
/// time did or because there is none, the replication is repeated with the actual one.
fn run_whole(program: &Program, mut load: Load, key: Key, stop: &AtomicBool) -> Result<FinishedRun, Cut> {
    let settled = if load.auto { Some(settle(program, &mut load, key, stop)?) } else { None };
    let ran = run_until_windowed(load, |load| {
        let ran = run_once(program, load, key, stop, None)?;
        let Ledger { arrived, last_start, .. } = ran.ledger;
        Ok(((arrived, last_start, ran.ledger.selected()), ran))
    })?;
    Ok(FinishedRun { settled, ..ran })
}

/// Repeats `run` (which returns the arrivals, the time of the last one, and the number selected) until the window it
/// used is the actual one.
fn run_until_windowed<T>(
    mut load: Load,
    mut run: impl FnMut(Load) -> Result<((u64, u64, u64), T), Cut>,
) -> Result<T, Cut> {
    loop {
        let ((arrived, last_start, selected), ran) = run(load.clone())?;
        match load.window_that_was(arrived, last_start, selected) {
            Some(window) => load.window = window,
            None => return Ok(ran),
        }
    }
}

/// Runs a replication by the reference, with a recorder of requests. `fast`: the same scenario for the engine, which
/// finds where it settles.
pub(crate) fn run_recorded(
    program: &Program,
    fast: Option<&Program>,
    mut load: Load,
    key: Key,
    stop: &AtomicBool,
    recorder: impl Fn() -> Recorder,
) -> Result<Option<Box<Recorder>>, Cut> {
    if let (true, Some(fast)) = (load.auto, fast) {
        settle(fast, &mut load, key, stop)?;
    }
    let Some(tables) = &program.tables else { return Ok(None) };
    run_until_windowed(load, |load| {
        let mut reference = Reference::new(&program.code, tables, load, key, stop);
        reference.note_by(recorder());
        reference.run()?;
        let Ledger { arrived, last_start, .. } = reference.ledger;
        Ok(((arrived, last_start, reference.ledger.selected()), reference.noted()))
    })
}

/// Finds where a replication settles, and begins the window there.
fn settle(program: &Program, load: &mut Load, key: Key, stop: &AtomicBool) -> Result<SettlingPoint, Cut> {
    let whole = Load { window: load.window.whole(load.requests, load.until_ns), all: true, ..load.clone() };
    let Ledger { arrived, series, .. } = run_once(program, whole, key, stop, Some(Series::new()))?.ledger;
    let settled = series.map_or(SettlingPoint { after: 0, settled: false }, |series| series.settled(arrived));
    load.window = settled.window(arrived);
    Ok(settled)
}

fn run_once(
    program: &Program,
    load: Load,
    key: Key,
    stop: &AtomicBool,
    series: Option<Series>,
) -> Result<FinishedRun, Cut> {
    let code = &program.code;
    let (requests, selected) = load.expected();
    if let Some(tables) = &program.tables {
        let mut reference = Reference::new(code, tables, load, key, stop);
        reference.run()?;
        let violations = reference.violations(requests, selected);
        let window_ns = reference.window_ns();
        return Ok(FinishedRun { violations, window_ns, ledger: reference.ledger, settled: None });
    }
    let mut engine = Engine::new(code, load, key, stop);
    engine.core.ledger_mut().series = series.map(Box::new);
    engine.run()?;
    engine.core.ledger_mut().add_constant_waits(code);
    let violations = engine.violations(requests, selected);
    Ok(FinishedRun {
        violations,
        window_ns: engine.window_ns(),
        ledger: engine.core.into_ledger(),
        settled: None,
    })
}
