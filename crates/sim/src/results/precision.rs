//! Runs replications until figures are precise enough (Law and Kelton, Simulation Modeling and Analysis, 9.4.1):
//! until half of each interval is at most a given share of its value. All scenarios get as many as the worst of them
//! needs, so that they can be compared. The next step depends on figures alone, never on time or threads.

use crate::results::expect::counted;
use crate::results::gather::{JobReplications, Run};
use crate::results::result::{Goal, Results, ScenarioResult, Shortfall};
use crate::results::run::{Error, Extras, finish, results_of};
use weir_plan::{Metric, Plan};

/// How precise figures must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// The figures; at least one.
    pub goals: Vec<Goal>,
    /// The most replications.
    pub most: u32,
}

/// With fewer replications an interval is too unreliable to end a run.
const FEWEST: u32 = 10;

/// Runs replications until every goal is met, or cannot be.
pub(crate) fn run(
    plan: &Plan,
    run: &Run<'_>,
    wants: &Extras,
    precision: &Precision,
) -> Result<Results, Error> {
    let mut all: Vec<JobReplications> = run.jobs.iter().map(|_| JobReplications::default()).collect();
    let mut results: Vec<Option<ScenarioResult>> = run.jobs.iter().map(|_| None).collect();
    let (mut done, mut next) = (0, run.options.replications.max(FEWEST).min(precision.most.max(1)));
    let mut shortfalls;
    loop {
        let numbers: Vec<u32> = (done..next).collect();
        let mut more: Vec<Option<JobReplications>> = run.jobs.iter().map(|_| None).collect();
        run.replicate(&numbers, &mut |job, gathered| {
            more[job] = Some(gathered);
            Ok(())
        })?;
        // A round that was stopped does not count; the results of the one before it are kept.
        let Some(more) = more.into_iter().collect::<Option<Vec<JobReplications>>>() else {
            let events = events(&all);
            let mut stopped = results_of(plan, run.options, done, results, events, Vec::new());
            stopped.interrupted = true;
            return Ok(stopped);
        };
        for (all, more) in all.iter_mut().zip(more) {
            all.runs.extend(more.runs);
            all.pooled.join(more.pooled);
            all.overload = all.overload.take().or(more.overload);
        }
        done = next;
        for ((job, all), result) in run.jobs.iter().zip(&all).zip(&mut results) {
            *result = Some(finish(job, run, wants.each, all)?);
        }
        shortfalls = results.iter().flatten().flat_map(|s| missed(s, precision)).collect::<Vec<Shortfall>>();
        let hopeless = shortfalls.iter().any(|s| s.share.is_none());
        if shortfalls.is_empty() || hopeless || done >= precision.most {
            break;
        }
        next = further(done, &shortfalls).min(precision.most);
    }
    let events = events(&all);
    Ok(results_of(plan, run.options, done, results, events, shortfalls))
}

fn events(all: &[JobReplications]) -> u64 {
    all.iter().flat_map(|all| &all.runs).map(|r| r.events).sum()
}

/// The goals that a scenario misses.
fn missed<'a>(s: &'a ScenarioResult, precision: &'a Precision) -> impl Iterator<Item = Shortfall> + 'a {
    precision.goals.iter().filter_map(|goal| {
        let e = match goal.metric {
            // Where nothing failed, replications agree that it is 1, and know it no better for that.
            Metric::Success => counted(s.success, s.requests.ok, s.requests.selected),
            metric => s.estimate(metric),
        };
        let share = e.value.zip(e.half_width()).map(|(value, half)| match half {
            0.0 => 0.0,
            half => half / value.abs(),
        });
        let short = share.is_none_or(|share| share > goal.share);
        short.then(|| Shortfall { scenario: s.name.clone(), params: s.params.clone(), goal: *goal, share })
    })
}

/// How many replications the worst of them needs: half an interval shrinks with the root of their number. At most
/// twice as many, since an interval of few is itself a guess.
fn further(done: u32, shortfalls: &[Shortfall]) -> u32 {
    let times = |s: &Shortfall| s.share.map_or(1.0, |share| share / s.goal.share);
    let worst = shortfalls.iter().map(times).fold(1.0, f64::max);
    let wanted = (f64::from(done) * worst * worst).ceil().min(f64::from(done) * 2.0);
    (wanted as u32).max(done + 1)
}
