//! Spreads replications over threads. Which thread runs one does not matter: results are gathered in the order of
//! replications.

use crate::results::job::Job;
use crate::results::latency::Pooled;
use crate::results::over_time::PooledSlices;
use crate::results::replicate::{Summary, Unfinished, replicate};
use crate::results::run::{Error, Options};
use crate::results::settling::settle;
use crate::results::summary::Replication;
use crate::results::threads::{self, News, Observer};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use weir_stats::Histogram;

/// What a run consists of.
pub(crate) struct Run<'a> {
    pub jobs: Vec<Job<'a>>,
    pub options: &'a Options,
    pub observer: Observer<'a>,
    /// Whether the fast engine runs it, rather than the reference.
    pub fast: bool,
}

/// The replications of a job in order, and their latencies pooled.
#[derive(Default)]
pub(crate) struct JobReplications {
    pub runs: Vec<Replication>,
    pub pooled: Pooled,
    /// The parts of the run, where the scenario has results over time.
    pub slices: Option<PooledSlices>,
    /// Why there are none: the scenario is overloaded beyond what can be simulated.
    pub overload: Option<String>,
}

impl JobReplications {
    /// How many there are, if that is fewer than this because the run was stopped.
    pub fn fewer_than(&self, replications: u32) -> Option<u32> {
        let finished = self.runs.len() as u32;
        (self.overload.is_none() && finished < replications).then_some(finished)
    }
}

/// Receives the replications of each job.
pub(crate) trait Sink {
    /// Those of a job: all of them, or, once the run is stopped, those before the first that is missing.
    fn take(&mut self, job: usize, all: JobReplications) -> Result<(), Error>;

    /// The run was stopped and all that will come has been taken, but not all threads have ended: the observer is told.
    fn tell_overdue(&mut self);
}

/// The replications of a job that have finished so far.
struct Coming {
    runs: Vec<Option<Replication>>,
    missing: usize,
    /// How many there are before the first that is missing, and their latencies.
    first: usize,
    pooled: Pooled,
    slices: Option<PooledSlices>,
    /// The latencies and the parts of those behind it: about as many as there are threads.
    early: BTreeMap<usize, ([Histogram; 2], Option<PooledSlices>)>,
    /// The first replication that is overloaded, and why.
    overload: Option<(usize, String)>,
}

impl Coming {
    /// Adds a finished replication; returns all of them if it was the last.
    fn take_in(&mut self, index: usize, done: Replicated) -> Option<JobReplications> {
        match done {
            Replicated::Summary(done) => {
                self.runs[index] = Some(done.run);
                self.early.insert(index, ([done.ok, done.failed], done.slices));
                while let Some(([ok, failed], slices)) = self.early.remove(&self.first) {
                    self.pooled.add(ok, failed);
                    slices.into_iter().for_each(|slices| slices.join_to(&mut self.slices));
                    self.first += 1;
                }
            }
            Replicated::Overload(why) if self.overload.as_ref().is_none_or(|(first, _)| index < *first) => {
                self.overload = Some((index, why));
            }
            Replicated::Overload(_) | Replicated::Skipped => {}
        }
        self.missing -= 1;
        (self.missing == 0).then(|| match self.overload.take() {
            Some((_, why)) => JobReplications { overload: Some(why), ..JobReplications::default() },
            None => JobReplications {
                runs: std::mem::take(&mut self.runs).into_iter().flatten().collect(),
                pooled: std::mem::take(&mut self.pooled),
                slices: self.slices.take(),
                overload: None,
            },
        })
    }

    /// What a stopped run has of the job, unless it had all of it or has nothing: what a run of so many replications
    /// gives.
    fn take_so_far(&mut self) -> Option<JobReplications> {
        match self.overload.take_if(|(index, _)| *index <= self.first) {
            _ if self.missing == 0 => None,
            Some((_, why)) => Some(JobReplications { overload: Some(why), ..JobReplications::default() }),
            None if self.first == 0 => None,
            None => Some(JobReplications {
                runs: self.runs.drain(..self.first).flatten().collect(),
                pooled: std::mem::take(&mut self.pooled),
                slices: self.slices.take(),
                overload: None,
            }),
        }
    }
}

/// What became of a replication.
enum Replicated {
    Summary(Box<Summary>),
    /// It cannot be simulated to its end.
    Overload(String),
    /// An earlier one of its job could not be.
    Skipped,
}

/// A thread's report: job, index of the replication, result (`None`: stopped).
type Report = (usize, usize, Result<Option<Replicated>, String>);

/// What the threads share.
struct Shared<'a> {
    numbers: &'a [u32],
    /// Jobs times replications.
    items: usize,
    next: AtomicUsize,
    /// By job the first replication that is overloaded: later ones are not begun, since the job has no figures. Which
    /// one is named does not depend on threads, for all earlier ones have begun.
    overloaded: Vec<AtomicUsize>,
}

impl Run<'_> {
    /// Runs the replications with these numbers of every job. `sink` receives those of a job once the last of them
    /// has finished; when the run is stopped, those that are finished by then.
    pub fn replicate(&self, numbers: &[u32], sink: &mut dyn Sink) -> Result<(), Error> {
        let stop = self.observer.stop;
        let settled = settle(&self.jobs, self.options, stop, &mut || sink.tell_overdue());
        if !settled.map_err(Error::Plan)? {
            return Ok(());
        }
        let items = self.jobs.len() * numbers.len();
        let shared = &Shared {
            numbers,
            items,
            next: AtomicUsize::new(0),
            overloaded: self.jobs.iter().map(|_| AtomicUsize::new(usize::MAX)).collect(),
        };
        let coming = |_| Coming {
            runs: numbers.iter().map(|_| None).collect(),
            missing: numbers.len(),
            first: 0,
            pooled: Pooled::default(),
            slices: None,
            early: BTreeMap::new(),
            overload: None,
        };
        let mut coming: Vec<Coming> = self.jobs.iter().map(coming).collect();
        let (send, receive) = mpsc::channel::<Report>();
        let (mut outcome, mut handed_over) = (Ok(()), false);
        std::thread::scope(|scope| {
            for _ in 0..self.options.threads.clamp(1, items.max(1)) {
                let send = send.clone();
                scope.spawn(move || self.work(shared, &send));
            }
            drop(send);
            let mut done = 0;
            threads::each(&receive, stop, |news| {
                let failed = match news {
                    News::Report((.., Ok(None))) => Ok(()),
                    // What comes so late is not waited for.
                    News::Report((.., Ok(_))) if handed_over => Ok(()),
                    News::Report((job, index, Ok(Some(replicated)))) => {
                        done += 1;
                        (self.observer.progress)(done, items as u64);
                        coming[job].take_in(index, replicated).map_or(Ok(()), |all| sink.take(job, all))
                    }
                    News::Report((.., Err(reason))) => {
                        // No thread begins another one.
                        shared.next.store(items, Ordering::Relaxed);
                        Err(Error::Plan(reason))
                    }
                    News::Overdue => {
                        handed_over = true;
                        hand_over(&mut coming, sink).inspect(|()| sink.tell_overdue())
                    }
                };
                if outcome.is_ok() {
                    outcome = failed;
                }
            });
        });
        if self.observer.is_stopped() && !handed_over && outcome.is_ok() {
            outcome = hand_over(&mut coming, sink);
        }
        outcome
    }

    /// The loop of each thread: runs the next replication until there is none left.
    fn work(&self, shared: &Shared<'_>, send: &mpsc::Sender<Report>) {
        let numbers = shared.numbers;
        while !self.observer.is_stopped() {
            let item = shared.next.fetch_add(1, Ordering::Relaxed);
            if item >= shared.items {
                break;
            }
            let (job, index) = (item / numbers.len(), item % numbers.len());
            let first = &shared.overloaded[job];
            let outcome = if index > first.load(Ordering::Relaxed) {
                Ok(Some(Replicated::Skipped))
            } else {
                match replicate(&self.jobs[job], self.options, numbers[index], self.observer.stop, self.fast)
                {
                    Ok(done) => Ok(done.map(|done| Replicated::Summary(Box::new(done)))),
                    Err(Unfinished::Overload(why)) => {
                        first.fetch_min(index, Ordering::Relaxed);
                        Ok(Some(Replicated::Overload(why)))
                    }
                    Err(Unfinished::Plan(why)) => Err(why),
                }
            };
            if send.send((job, index, outcome)).is_err() {
                break;
            }
        }
    }
}

/// Hands over what a stopped run has of the jobs that are not finished.
fn hand_over(coming: &mut [Coming], sink: &mut dyn Sink) -> Result<(), Error> {
    coming
        .iter_mut()
        .enumerate()
        .try_for_each(|(job, coming)| coming.take_so_far().map_or(Ok(()), |so_far| sink.take(job, so_far)))
}
