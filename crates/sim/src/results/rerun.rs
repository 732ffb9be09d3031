//! Runs replications a second time with a recorder attached.

use crate::record::Series;
use crate::record::Tracks;
use crate::record::Typical;
use crate::record::history::{self, MOST_STAGES};
use crate::record::{History, Selection};
use crate::reference::Recorder;
use crate::results::job::{Job, jobs};
use crate::results::replicate::{Unfinished, none_or_why, run_recorded, settled_load};
use crate::results::run::{Error, Options};
use crate::results::settling::settle;
use crate::results::threads::{self, News, Observer};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use weir_plan::{Plan, Point};
use weir_stats::Key;
use weir_workload::load_unless;

/// What to record.
#[derive(Clone, Debug, Default)]
pub struct RecordOptions {
    /// Histories of requests.
    pub trace: Option<Selection>,
    /// What typical requests of the first replication consist of, and how that replication went over time.
    pub explain: bool,
}

/// What was recorded of a scenario at one point of the sweep.
#[derive(Clone, Debug)]
pub struct Recording<'p> {
    /// The point.
    pub point: &'p Point,
    /// The scenario's name.
    pub scenario: &'p str,
    /// The selected histories: the slowest first, otherwise by replication and request.
    pub histories: Vec<History>,
    /// By quantile; quantiles with too few requests are missing.
    pub typical: Vec<Typical>,
    /// Of the first replication.
    pub series: Option<Series>,
}

/// What one replication yields.
#[derive(Default)]
struct ReplicationRecord {
    histories: Vec<History>,
    typical: Vec<Typical>,
    series: Option<Series>,
}

/// Repeats the replications of a run and records what `looks` selects: one entry per scenario and point, in the order
/// of the results; `None` if it was stopped.
///
/// # Errors
/// As [`crate::run`]; also when more would have to be kept than there is room for.
pub fn record<'p>(
    plan: &'p Plan,
    options: &Options,
    looks: &RecordOptions,
    observer: &Observer<'_>,
) -> Result<Option<Vec<Recording<'p>>>, Error> {
    let options = &Options { members: false, ..options.clone() };
    let (slow, fast) = (jobs(plan, options)?, jobs(plan, options)?);
    let each = if looks.trace.is_some() { options.replications.max(1) } else { 1 };
    let again = Rerun { jobs: &slow, options, looks, stop: observer.stop };
    if !settle(&fast, options, observer.stop, &mut || (observer.overdue)(None)).map_err(Error::Plan)? {
        return Ok(None);
    }
    for (slow, fast) in slow.iter().zip(&fast) {
        fast.settled.get().map(|point| slow.settled.set(*point));
    }
    let Some(found) = again.all(each as usize, observer).map_err(Error::Plan)? else { return Ok(None) };
    let mut found = found.into_iter();
    let mut all = Vec::with_capacity(slow.len());
    for job in &slow {
        let (point, scenario) = (job.point, &job.scenario.name[..]);
        let mut of = Recording { point, scenario, histories: Vec::new(), typical: Vec::new(), series: None };
        for replication in found.by_ref().take(each as usize) {
            of.histories.extend(replication.histories);
            if replication.series.is_some() {
                (of.typical, of.series) = (replication.typical, replication.series);
            }
        }
        if let Some(selection) = &looks.trace {
            of.histories = history::chosen(selection, of.histories);
        }
        all.push(of);
    }
    Ok(Some(all))
}

struct Rerun<'a, 'p> {
    jobs: &'a [Job<'p>],
    options: &'a Options,
    looks: &'a RecordOptions,
    stop: &'a AtomicBool,
}

impl Rerun<'_, '_> {
    /// Runs `each` replications of every job, in order.
    fn all(&self, each: usize, observer: &Observer<'_>) -> Result<Option<Vec<ReplicationRecord>>, String> {
        let items = self.jobs.len() * each;
        let next = AtomicUsize::new(0);
        let (send, receive) = mpsc::channel();
        let mut all: Vec<Option<ReplicationRecord>> = (0..items).map(|_| None).collect();
        let mut failed = None;
        std::thread::scope(|scope| {
            for _ in 0..self.options.threads.clamp(1, items.max(1)) {
                let (send, next) = (send.clone(), &next);
                scope.spawn(move || {
                    loop {
                        let item = next.fetch_add(1, Ordering::Relaxed);
                        if item >= items || send.send((item, self.one(item / each, item % each))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(send);
            let mut done = 0;
            threads::each(&receive, self.stop, |news| {
                let News::Report((item, found)) = news else { return (observer.overdue)(None) };
                match found {
                    Ok(found) => all[item] = found,
                    Err(why) => {
                        next.store(items, Ordering::Relaxed);
                        failed = Some(why);
                    }
                }
                done += 1;
                (observer.progress)(done, items as u64);
            });
        });
        match failed {
            Some(why) => Err(why),
            None => Ok(all.into_iter().collect()),
        }
    }

    fn one(&self, job: usize, replication: usize) -> Result<Option<ReplicationRecord>, String> {
        let job = &self.jobs[job];
        let replication = replication as u32;
        let program = &*job.noted_program()?;
        let seed = self.options.seed;
        let key = Key::new(seed).with(u64::from(self.options.first) + u64::from(replication));
        let Some(load) = load_unless(job.scenario, job.requests, key, self.stop) else { return Ok(None) };
        let explain = self.looks.explain && replication == 0;
        let selection = self.looks.trace.as_ref().map(|selection| (selection, seed, replication));
        let recorder = || Recorder::new(Tracks::new(&program.code, selection, explain));
        let tracks = match run_recorded(program, job.point, settled_load(job, load), key, self.stop, recorder)
        {
            Ok(Some(recorder)) => recorder.tracks,
            Ok(None) => return Ok(None),
            Err(cut) => {
                return match none_or_why(&job.scenario.name, cut) {
                    Ok(none) => Ok(none),
                    Err(Unfinished::Plan(why)) => Err(why),
                    // There is a warning, and nothing to show.
                    Err(Unfinished::Overload(_)) => Ok(Some(ReplicationRecord::default())),
                };
            }
        };
        let mut found = ReplicationRecord::default();
        if let Some(kept) = tracks.kept {
            if kept.too_many {
                return Err(format!(
                    "the trace would have more than {MOST_STAGES} stages of one replication; choose fewer requests, such as \
                     --trace-requests sample:0.01"
                ));
            }
            found.histories = kept.histories(&program.code, replication);
        }
        found.typical = tracks.sums.map(|sums| sums.typical(job.point)).unwrap_or_default();
        found.series = tracks.series.map(|looks| looks.series(job.point, &program.code));
        Ok(Some(found))
    }
}
