//! Spreads replications over threads. Which thread runs one does not matter: results are gathered in the order of
//! replications.

use crate::results::job::Job;
use crate::results::latency::Pooled;
use crate::results::replicate::{Summary, Unfinished, replicate};
use crate::results::run::{Error, Options};
use crate::results::settling::settle;
use crate::results::summary::Replication;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// What a run consists of.
pub(crate) struct Run<'a> {
    pub jobs: Vec<Job<'a>>,
    pub options: &'a Options,
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    pub stop: &'a AtomicBool,
    /// Whether the fast engine runs it, rather than the reference.
    pub fast: bool,
}

/// The replications of a job in order, and their latencies pooled.
#[derive(Default)]
pub(crate) struct JobReplications {
    pub runs: Vec<Replication>,
    pub pooled: Pooled,
    /// Why there are none: the scenario is overloaded beyond what can be simulated.
    pub overload: Option<String>,
}

/// The replications of a job that have finished so far.
struct Coming {
    runs: Vec<Option<Replication>>,
    missing: usize,
    pooled: Pooled,
    /// The first replication that is overloaded, and why.
    overload: Option<(usize, String)>,
}

impl Coming {
    /// Adds a finished replication; returns all of them if it was the last.
    fn take_in(&mut self, index: usize, done: Replicated) -> Option<JobReplications> {
        match done {
            Replicated::Summary(done) => {
                self.runs[index] = Some(done.run);
                self.pooled.add(done.ok, done.failed);
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
                overload: None,
            },
        })
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
    /// Runs the replications with these numbers of every job. `full` receives those of a job once the last of them
    /// has finished; when the run is stopped, it receives only the jobs that were finished.
    pub fn replicate(
        &self,
        numbers: &[u32],
        full: &mut dyn FnMut(usize, JobReplications) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !settle(&self.jobs, self.options, self.stop).map_err(Error::Plan)? {
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
            pooled: Pooled::default(),
            overload: None,
        };
        let mut coming: Vec<Coming> = self.jobs.iter().map(coming).collect();
        let (send, receive) = mpsc::channel::<Report>();
        let mut outcome = Ok(());
        std::thread::scope(|scope| {
            for _ in 0..self.options.threads.clamp(1, items.max(1)) {
                let send = send.clone();
                scope.spawn(move || self.work(shared, &send));
            }
            drop(send);
            let mut done = 0;
            for (job, index, report) in receive {
                let failed = match report {
                    Ok(None) => Ok(()),
                    Ok(Some(replicated)) => {
                        done += 1;
                        (self.progress)(done, items as u64);
                        coming[job].take_in(index, replicated).map_or(Ok(()), |all| full(job, all))
                    }
                    Err(reason) => {
                        // No thread begins another one.
                        shared.next.store(items, Ordering::Relaxed);
                        Err(Error::Plan(reason))
                    }
                };
                if outcome.is_ok() {
                    outcome = failed;
                }
            }
        });
        outcome
    }

    /// The loop of each thread: runs the next replication until there is none left.
    fn work(&self, shared: &Shared<'_>, send: &mpsc::Sender<Report>) {
        let numbers = shared.numbers;
        while !self.stop.load(Ordering::Relaxed) {
            let item = shared.next.fetch_add(1, Ordering::Relaxed);
            if item >= shared.items {
                break;
            }
            let (job, index) = (item / numbers.len(), item % numbers.len());
            let first = &shared.overloaded[job];
            let outcome = if index > first.load(Ordering::Relaxed) {
                Ok(Some(Replicated::Skipped))
            } else {
                match replicate(&self.jobs[job], self.options, numbers[index], self.stop, self.fast) {
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
