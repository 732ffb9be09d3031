//! Replications spread over threads: which thread runs one changes nothing, for they are gathered in their order.

use crate::results::job::Job;
use crate::results::latency::Pooled;
use crate::results::replicate::{Done, replicate};
use crate::results::run::{Error, Options};
use crate::results::summary::Replication;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// All that a run is made of.
pub(crate) struct Run<'a> {
    pub jobs: Vec<Job<'a>>,
    pub options: &'a Options,
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    pub stop: &'a AtomicBool,
    /// Whether the engine runs it, and not the reference of tests.
    pub fast: bool,
}

/// The replications of a job, in their order, and their latencies together.
#[derive(Default)]
pub(crate) struct Gathered {
    pub runs: Vec<Replication>,
    pub pooled: Pooled,
}

/// Those that have come in so far.
struct Coming {
    runs: Vec<Option<Replication>>,
    missing: usize,
    pooled: Pooled,
}

impl Coming {
    /// Takes one in; all of them, where it was the last.
    fn take_in(&mut self, index: usize, done: Done) -> Option<Gathered> {
        self.runs[index] = Some(done.run);
        self.pooled.add(done.ok, done.failed);
        self.missing -= 1;
        (self.missing == 0).then(|| Gathered {
            runs: std::mem::take(&mut self.runs).into_iter().flatten().collect(),
            pooled: std::mem::take(&mut self.pooled),
        })
    }
}

/// What a thread reports: job, index of the replication, outcome (`None`: stopped).
type Report = (usize, usize, Result<Option<Done>, String>);

impl Run<'_> {
    /// Runs the replications of these numbers of every job. `full` gets those of a job once the last of them has come in; of
    /// a run that was stopped it gets the jobs that were finished.
    pub fn replicate(
        &self,
        numbers: &[u32],
        full: &mut dyn FnMut(usize, Gathered) -> Result<(), Error>,
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
                        // Nobody begins another.
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

    /// What each thread does: the next one, until there is none.
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
