//! Runs one replication of a scenario: the scenario is compiled once, run by an engine, and summed up.

use crate::account::SideBooks;
use crate::account::ledger::Ledger;
use crate::account::members::MemberSlice;
use crate::account::settle::Series;
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
use crate::results::over_time::{PooledSlices, RunParts};
use crate::results::rows::{self, ExpectedRows, Row};
use crate::results::run::Options;
use crate::results::summary::{self, Replication};
use crate::results::watch;
use std::sync::atomic::AtomicBool;
use weir_plan::connections::plain_numbers;
use weir_plan::over_time::MOST_PARTS;
use weir_plan::{NodeId, Point, Scenario};
use weir_stats::{Histogram, Key};
use weir_workload::{Load, load_unless};

/// A scenario that is ready to run.
pub(crate) struct Program {
    pub code: Code,
    /// What its stages do, where the reference runs it.
    pub tables: Option<Tables>,
    /// The rows that the result shows, then those of nodes that the file expects something of.
    pub rows: Vec<Row>,
    /// How many it shows.
    pub shown: usize,
    /// The first row of each node that the file expects something of, and how many it has.
    pub expected: Vec<ExpectedRows>,
    /// The number of each node in the file's plan, where connections have nodes of their own.
    pub numbers: Option<Vec<NodeId>>,
}

impl Program {
    /// The number of a node in the file's plan.
    pub fn number(&self, id: NodeId) -> NodeId {
        self.numbers.as_deref().map_or(id, |numbers| numbers[id as usize])
    }
}

/// The summary of a replication, and its latencies: of successes, and of failures.
pub(crate) struct Summary {
    pub run: Replication,
    pub ok: Histogram,
    pub failed: Histogram,
    /// The parts of the run, where it has results over time.
    pub slices: Option<PooledSlices>,
}

/// Why a replication has no result.
#[derive(Clone, Debug)]
pub(crate) enum Unfinished {
    /// The file asks for something that cannot be simulated: a sentence with scenario and remedy.
    Plan(String),
    /// More than can be simulated comes of what it asks for: a warning, which concerns this scenario alone.
    Overload(String),
}

impl From<String> for Unfinished {
    fn from(why: String) -> Unfinished {
        Unfinished::Plan(why)
    }
}

/// Runs a replication; `None`: it was stopped.
pub(crate) fn replicate(
    job: &Job,
    options: &Options,
    replication: u32,
    stop: &AtomicBool,
    fast: bool,
) -> Result<Option<Summary>, Unfinished> {
    let program = &*job.program(options.members, fast)?;
    let key = Key::new(options.seed).with(u64::from(options.first) + u64::from(replication));
    let Some(load) = load_unless(job.scenario, job.requests, key, stop) else { return Ok(None) };
    match run_whole(program, settled_load(job, load.clone()), key, stop) {
        Ok(mut ran) => {
            let parts = match parts(&mut ran, program, &load) {
                Ok(parts) => parts,
                Err(cut) => return none_or_why(&job.scenario.name, cut),
            };
            let mut run = summary::replication(program, &ran, job.settled.get().copied());
            let slices = parts.map(|parts| {
                let (slices, own) = parts.kept(replication == 0);
                run.parts = Some(Box::new(own));
                slices
            });
            Ok(Some(Summary { run, ok: ran.ledger.ok, failed: ran.ledger.failed, slices }))
        }
        Err(cut) => none_or_why(&job.scenario.name, cut),
    }
}

/// Takes the parts of a finished run, where it has results over time.
fn parts(ran: &mut FinishedRun, program: &Program, load: &Load) -> Result<Option<RunParts>, Cut> {
    let Some(mut aside) = ran.ledger.aside.take() else { return Ok(None) };
    aside.end_counts();
    let Some((slices, every_ns)) = aside.slices.zip(program.code.every_ns) else { return Ok(None) };
    if slices.is_beyond() {
        return Err(Cut::TooManyParts);
    }
    let arrived = ran.ledger.arrived;
    let end_ns = load.end_ns(arrived, slices.last_arrival_ns());
    let all = slices.finish(end_ns);
    let members = MemberSlice::all(aside.watched);
    let slices = PooledSlices::new(all, members);
    Ok(Some(RunParts::new(slices, aside.acts, program.code.watch.as_deref(), every_ns)))
}

/// `None` for a replication that was stopped; otherwise why it has no result.
pub(crate) fn none_or_why<T>(name: &str, cut: Cut) -> Result<Option<T>, Unfinished> {
    let why = match cut {
        Cut::Stopped => return Ok(None),
        Cut::StandsStill => "users without thinking time get answers that take no time, so they would send requests for ever at \
             one instant: give `traffic.closed` a `think`, or give work to what answers them"
            .to_owned(),
        Cut::TooManyParts => format!(
            "`every` divides its run into more than {MOST_PARTS} parts: write a longer `every`, or give it fewer requests"
        ),
        Cut::TooManyBranches => format!(
            "one request has more than {RANKS} branches at once, fan-outs and hedges within each other: give them fewer targets, \
             or fewer attempts"
        ),
        Cut::TooMany => {
            return Err(Unfinished::Overload(format!(
                "overloaded beyond what can be simulated, so there are no figures: more than {MOST_AT_ONCE} requests in flight at \
                 once; give it fewer requests, or more servers"
            )));
        }
        Cut::TooLong => {
            return Err(Unfinished::Overload(
                "beyond what can be simulated, so there are no figures: it runs for more than 146 years of virtual time; where \
                 service slows down as requests come in (`coherency`), the backlog never clears; otherwise shorten its waits, its \
                 gaps, or its number of requests"
                    .to_owned(),
            ));
        }
    };
    Err(Unfinished::Plan(format!("scenario \"{name}\": {why}")))
}

/// Prepares a scenario to be run, of which the first replication has the key `first`. Sums are kept by member if the result shows members, or if the file expects something
/// of some of a site's members.
pub(crate) fn program(
    point: &Point,
    scenario: &Scenario,
    members: bool,
    fast: bool,
    first: Key,
) -> Result<Program, String> {
    let build = |members| {
        let layout = Layout::new(point, scenario.root);
        if fast {
            compile(layout, scenario, members).map(|code| (code, None))
        } else {
            crate::reference::build(layout, scenario, members).map(|(code, tables)| (code, Some(tables)))
        }
    };
    let (mut code, mut tables) = build(members)?;
    if !members && rows::names_some_members(point, scenario, &code) {
        (code, tables) = build(true)?;
    }
    let mut rows = rows::rows(&code, members);
    rows.retain(|row| !row.is_silent(point, &code));
    let numbers = code.connections.is_some().then(|| plain_numbers(point));
    let number = |id: NodeId| numbers.as_deref().map_or(id, |numbers| numbers[id as usize]);
    code.watch = watch::tables(point, scenario, &code, first, number);
    let shown = rows.len();
    let expected = rows::add_rows(point, scenario, &code, &mut rows);
    Ok(Program { code, tables, rows, shown, expected, numbers })
}

/// A finished replication: its sums, the length of its window, and the laws that it broke.
pub(crate) struct FinishedRun {
    pub ledger: Ledger,
    pub window_ns: u64,
    pub violations: Vec<String>,
}

/// Runs a replication. If the window turns out to differ from the assumed one, because requests ran out before the
/// time did or because there is none, the replication is repeated with the actual one.
fn run_whole(program: &Program, load: Load, key: Key, stop: &AtomicBool) -> Result<FinishedRun, Cut> {
    run_until_windowed(load, |load| {
        let ran = run_once(program, load, key, stop, None)?;
        let Ledger { arrived, last_start, .. } = ran.ledger;
        Ok(((arrived, last_start, ran.ledger.selected()), ran))
    })
}

/// A load whose window begins where its scenario settles, if that is known.
pub(crate) fn settled_load(job: &Job<'_>, mut load: Load) -> Load {
    if let Some(point) = job.settled.get() {
        load.window = point.window(load.requests);
    }
    load
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

/// Runs a replication by the reference, with a recorder of requests.
pub(crate) fn run_recorded(
    program: &Program,
    point: &Point,
    load: Load,
    key: Key,
    stop: &AtomicBool,
    recorder: impl Fn() -> Recorder,
) -> Result<Option<Box<Recorder>>, Cut> {
    let Some(tables) = &program.tables else { return Ok(None) };
    run_until_windowed(load, |load| {
        let mut reference = Reference::new(&program.code, tables, load, key, stop);
        reference.note_by(recorder());
        reference.run()?;
        let Ledger { arrived, last_start, .. } = reference.ledger;
        Ok(((arrived, last_start, reference.ledger.selected()), reference.noted(point)))
    })
}

/// The latencies of a replication of which all requests count, by batch, and how many arrived; `None`: it was stopped.
pub(crate) fn series_of(
    job: &Job<'_>,
    options: &Options,
    replication: u32,
    stop: &AtomicBool,
) -> Result<Option<(Series, u64)>, Unfinished> {
    let program = &*job.program(options.members, true)?;
    let key = Key::new(options.seed).with(u64::from(options.first) + u64::from(replication));
    let Some(load) = load_unless(job.scenario, job.requests, key, stop) else { return Ok(None) };
    let whole = Load { window: load.window.whole(load.requests, load.until_ns), all: true, ..load };
    match run_once(program, whole, key, stop, Some(Series::new())) {
        Ok(ran) => {
            let series = ran.ledger.aside.and_then(|aside| aside.series).unwrap_or_else(Series::new);
            Ok(Some((series, ran.ledger.arrived)))
        }
        Err(cut) => none_or_why(&job.scenario.name, cut),
    }
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
        return Ok(FinishedRun { violations, window_ns, ledger: reference.ledger });
    }
    let mut engine = Engine::new(code, load, key, stop);
    if series.is_some() {
        engine.core.ledger_mut().aside = Some(Box::new(SideBooks { series, ..SideBooks::default() }));
    }
    engine.run()?;
    engine.core.ledger_mut().add_constant_waits(code);
    let violations = engine.violations(requests, selected);
    Ok(FinishedRun { violations, window_ns: engine.window_ns(), ledger: engine.core.into_ledger() })
}
