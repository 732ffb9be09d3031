//! Runs replications until figures are precise enough (Law and Kelton, Simulation Modeling and Analysis, 9.4.1):
//! until half of each interval is at most a given share of its value; first of all they are made long enough to
//! settle. All scenarios get as many as the worst of them needs, so that they can be compared. The next step depends
//! on figures alone, never on time or threads.

use crate::results::expect::counted;
use crate::results::gather::{JobReplications, Run, Sink};
use crate::results::job::{can_stretch, jobs};
use crate::results::result::{Goal, Results, ScenarioResult, Shortfall};
use crate::results::run::{Error, Extras, Options, finish, results_of};
use crate::results::threads::Observer;
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

/// The greatest factor by which a replication has more requests than the file says.
const MOST_STRETCH: u64 = 10_000;

/// A replication is not made longer than this, in requests: some ten seconds of one core.
const MOST_REQUESTS: u64 = 100_000_000;

/// Estimates of a start-up are lower in a run that has not settled, so one that is too short gets more than they say.
const MARGIN: f64 = 1.5;

/// Runs replications until every goal is met, or cannot be. Where they are too short to settle, all
/// begin anew and are longer: more of them would only make the wrong figure sure.
pub(crate) fn run(
    plan: &Plan,
    options: &Options,
    observer: Observer<'_>,
    wants: &Extras,
    precision: &Precision,
) -> Result<Results, Error> {
    let mut options = options.clone();
    let mut shorter = None;
    loop {
        let run = Run { jobs: jobs(plan, &options)?, options: &options, observer, fast: true };
        match rounds(plan, &run, wants, precision, shorter.as_ref())? {
            Outcome::Done(results) => return Ok(or_shorter(results, shorter.as_ref())),
            Outcome::TooShort(stretch, results) => {
                options.stretch = stretch;
                shorter = Some(Results { interrupted: true, ..*results });
            }
        }
    }
}

/// Where nothing was finished before the run was interrupted: what there is of the shorter one before it.
fn or_shorter(results: Results, shorter: Option<&Results>) -> Results {
    let is_empty = results.interrupted && results.scenarios.is_empty();
    shorter.filter(|_| is_empty).cloned().unwrap_or(results)
}

/// How a series of rounds ends.
enum Outcome {
    Done(Results),
    /// The factor by which each replication must have more requests than the file says, and the results so far.
    TooShort(u64, Box<Results>),
}

fn rounds(
    plan: &Plan,
    run: &Run<'_>,
    wants: &Extras,
    precision: &Precision,
    shorter: Option<&Results>,
) -> Result<Outcome, Error> {
    let first = run.options.replications.max(FEWEST).min(precision.most.max(1));
    let mut rounds = Rounds {
        plan,
        run,
        wants,
        shorter,
        all: run.jobs.iter().map(|_| JobReplications::default()).collect(),
        results: run.jobs.iter().map(|_| None).collect(),
        done: 0,
        next: first,
    };
    loop {
        let numbers: Vec<u32> = (rounds.done..rounds.next).collect();
        run.replicate(&numbers, &mut rounds)?;
        if !rounds.is_whole() {
            return Ok(Outcome::Done(rounds.end(Vec::new())));
        }
        if let Some(stretch) = rounds.longer() {
            return Ok(Outcome::TooShort(stretch, Box::new(rounds.end(Vec::new()))));
        }
        rounds.done = rounds.next;
        let missed = |s| missed(s, precision);
        let shortfalls: Vec<Shortfall> = rounds.results.iter().flatten().flat_map(missed).collect();
        let hopeless = shortfalls.iter().any(|s| s.share.is_none());
        if shortfalls.is_empty() || hopeless || rounds.done >= precision.most {
            return Ok(Outcome::Done(rounds.end(shortfalls)));
        }
        rounds.next = further(rounds.done, &shortfalls).min(precision.most);
    }
}

/// The replications so far, and the results of each job's; those of the present round are added to them as jobs finish
/// it.
struct Rounds<'a> {
    plan: &'a Plan,
    run: &'a Run<'a>,
    wants: &'a Extras,
    /// What there is of a run before this one, which was too short.
    shorter: Option<&'a Results>,
    all: Vec<JobReplications>,
    results: Vec<Option<ScenarioResult>>,
    /// How many were done before this round, and how many there will be after it.
    done: u32,
    next: u32,
}

impl Rounds<'_> {
    /// Whether each job has all replications of this round.
    fn is_whole(&self) -> bool {
        self.all.iter().all(|all| all.fewer_than(self.next).is_none())
    }

    /// How many times as many requests as the file says a replication needs for all scenarios to settle, if that is more
    /// than it has; `None` as well where the command line says how many, or a replication would be endless. One number for
    /// all, so that scenarios keep the same requests.
    fn longer(&self) -> Option<u64> {
        let now = self.run.options.stretch;
        let can = || self.run.jobs.iter().zip(&self.results).filter(|(job, _)| can_stretch(job.scenario));
        let times = can().filter_map(|(_, result)| result.as_ref()?.needs_times).reduce(f64::max)?;
        let longest = can().filter_map(|(job, _)| job.scenario.requests).max()?;
        let most = (MOST_REQUESTS / longest.max(1)).min(MOST_STRETCH);
        let wanted = (now as f64 * times * MARGIN).ceil() as u64;
        let may = self.run.options.requests.is_none() && now < most;
        may.then_some(wanted.max(now + 1).min(most))
    }

    /// The results; those of jobs that were stopped say how many replications they have.
    fn end(&mut self, shortfalls: Vec<Shortfall>) -> Results {
        for (all, result) in self.all.iter().zip(&mut self.results) {
            result.iter_mut().for_each(|result| result.finished = all.fewer_than(self.next));
        }
        let events = self.all.iter().flat_map(|all| &all.runs).map(|r| r.events).sum();
        let results = std::mem::take(&mut self.results);
        results_of(self.plan, self.run.options, self.next, results, events, shortfalls)
    }
}

impl Sink for Rounds<'_> {
    fn take(&mut self, job: usize, more: JobReplications) -> Result<(), Error> {
        let all = &mut self.all[job];
        all.runs.extend(more.runs);
        all.pooled.join(more.pooled);
        more.slices.into_iter().for_each(|slices| slices.join_to(&mut all.slices));
        all.overload = all.overload.take().or(more.overload);
        self.results[job] = Some(finish(&self.run.jobs[job], self.run, self.wants.each, all)?);
        Ok(())
    }

    fn tell_overdue(&mut self) {
        let results = self.results.clone();
        let told = or_shorter(self.end(Vec::new()), self.shorter);
        (self.run.observer.overdue)(Some(&told));
        self.results = results;
    }
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
