//! What the threads of a run report, until all of them have ended; and how a run is followed from outside.

use crate::results::result::Results;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How often the stop flag is looked at while no thread reports anything.
const PERIOD: Duration = Duration::from_millis(50);
/// A thread reads the stop flag every so many events. One that has not ended after this time is busy with something
/// that has no events: a request that takes ever more steps at one instant, or a scenario that is being compiled.
const GRACE: Duration = Duration::from_millis(250);

/// Follows a run from outside.
#[derive(Clone, Copy)]
pub struct Observer<'a> {
    /// Receives (replications done, replications in all).
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    /// Once it is true, the run ends with what is finished.
    pub stop: &'a AtomicBool,
    /// Called, from the thread that began the run, where other threads have not ended soon after `stop`; with what is
    /// finished, if there are results. The run ends when they do, which may be in years: so this may end the process.
    pub overdue: &'a (dyn Fn(Option<&Results>) + Sync),
}

impl<'a> Observer<'a> {
    /// One that waits for all threads, however long they take.
    pub fn new(progress: &'a (dyn Fn(u64, u64) + Sync), stop: &'a AtomicBool) -> Observer<'a> {
        Observer { progress, stop, overdue: &|_| {} }
    }

    /// Whether the run is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What is heard of threads.
pub(crate) enum News<T> {
    /// One of them reports.
    Report(T),
    /// The run was stopped, and some have not ended since. This comes once at most.
    Overdue,
}

/// Hands over each report, until all threads have ended.
pub(crate) fn each<T>(receive: &Receiver<T>, stop: &AtomicBool, mut take: impl FnMut(News<T>)) {
    let (mut since, mut overdue): (Option<Instant>, bool) = (None, false);
    loop {
        match receive.recv_timeout(PERIOD) {
            Ok(report) => take(News::Report(report)),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if !overdue && stop.load(Ordering::Relaxed) {
            overdue = since.get_or_insert_with(Instant::now).elapsed() >= GRACE;
            if overdue {
                take(News::Overdue);
            }
        }
    }
}
