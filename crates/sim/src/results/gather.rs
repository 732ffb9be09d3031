//! Spreads replications over threads. Which thread runs one does not matter: results are gathered in the order of
//! replications.

use crate::results::job::Job;
use crate::results::latency::Pooled;
use crate::results::replicate::{Summary, replicate};
use crate::results::run::{Error, Options};
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
}

/// The replications of a job that have finished so far.
struct Coming {
    runs: Vec<Option<Replication>>,
    missing: usize,
    pooled: Pooled,
}

impl Coming {
    /// Adds a finished replication; returns all of them if it was the last.
    fn take_in(&mut self, index: usize, done: Summary) -> Option<JobReplications> {
        self.runs[index] = Some(done.run);
        self.pooled.add(done.ok, done.failed);
        self.missing -= 1;
        (self.missing == 0).then(|| JobReplications {
            runs: std::mem::take(&mut self.runs).into_iter().flatten().collect(),
            pooled: std::mem::take(&mut self.pooled),
        })
    }
}

/// A thread's report: job, index of the replication, result (`None`: stopped).
type Report = (usize, usize, Result<Option<Summary>, String>);

impl Run<'_> {
    /// Runs the replications with these numbers of every job. `full` receives those of a job once the last of them
    /// has finished; when the run is stopped, it receives only the jobs that were finished.
    pub fn replicate(
        &self,
        numbers: &[u32],
        full: &mut dyn FnMut(usize, JobReplications) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let items = self.jobs.len() * numbers.len();
        let next = AtomicUsize::new(0);
        let coming = |_| Coming {
            runs: numbers.iter().map(|_| None).collect(),
            missing: numbers.len(),
            pooled: Pooled::default(),
        };
        let mut coming: Vec<Coming> = self.jobs.iter().map(coming).collect();
        let (send, receive) = mpsc::channel::<Report>();
        let mut outcome = Ok(());
        std::thread::scope(|scope| {
            for _ in 0..self.options.threads.clamp(1, items.max(1)) {
                let (send, next) = (send.clone(), &next);
                scope.spawn(move || self.work(numbers, items, next, &send));
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
                        next.store(items, Ordering::Relaxed);
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
    fn work(&self, numbers: &[u32], items: usize, next: &AtomicUsize, send: &mpsc::Sender<Report>) {
        while !self.stop.load(Ordering::Relaxed) {
            let item = next.fetch_add(1, Ordering::Relaxed);
            if item >= items {
                break;
            }
            let (job, index) = (item / numbers.len(), item % numbers.len());
            let outcome = replicate(&self.jobs[job], self.options, numbers[index], self.stop, self.fast);
            if send.send((job, index, outcome)).is_err() {
                break;
            }
        }
    }
}
