//! Where scenarios with `window="auto"` settle: their first replications run once for it, before any that counts.

use crate::account::settle::{ScenarioSeries, Series, SettlingPoint};
use crate::results::job::Job;
use crate::results::replicate::{Unfinished, series_of};
use crate::results::run::Options;
use crate::results::threads::{self, News};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// With `--precision` the replications that show where a scenario settles; how many there will be is not known then.
pub const SETTLED_OVER: u32 = 10;

/// Determines where each of these jobs settles, if that is requested and not known. `false`: it was stopped; `overdue`
/// is called where threads do not end then.
///
/// # Errors
/// A plan that cannot be simulated.
pub(crate) fn settle(
    jobs: &[Job<'_>],
    options: &Options,
    stop: &AtomicBool,
    overdue: &mut dyn FnMut(),
) -> Result<bool, String> {
    let over = options.settled_over.unwrap_or(options.replications).max(1);
    for job in jobs.iter().filter(|job| job.has_to_settle()) {
        let point = match series(job, options, over, stop, overdue) {
            Ok(Some(series)) => series.settled(),
            Ok(None) => return Ok(false),
            // The replications end in the same way, and the result warns of it.
            Err(Unfinished::Overload(_)) => SettlingPoint { after: 0, settled: false },
            Err(Unfinished::Plan(why)) => return Err(why),
        };
        // Each thread that comes here has the same point: it is a function of the options.
        let _ = job.settled.set(point);
    }
    Ok(true)
}

/// What a thread reports of a replication.
type Report = (u32, Result<Option<(Series, u64)>, Unfinished>);

/// The series of a job's first replications; `None`: it was stopped.
fn series(
    job: &Job<'_>,
    options: &Options,
    over: u32,
    stop: &AtomicBool,
    overdue: &mut dyn FnMut(),
) -> Result<Option<ScenarioSeries>, Unfinished> {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel::<Report>();
    let mut outcome = Ok(Some(ScenarioSeries::new()));
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, over as usize) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                while let Ok(number) = u32::try_from(next.fetch_add(1, Ordering::Relaxed))
                    && number < over
                    && send.send((number, series_of(job, options, number, stop))).is_ok()
                {}
            });
        }
        drop(send);
        // Those that came before their turn: whether a beginning is chance is judged in the order of replications.
        let (mut early, mut turn) = (BTreeMap::new(), 0);
        threads::each(&receive, stop, |news| {
            let News::Report((number, report)) = news else { return overdue() };
            match report {
                Ok(found) => drop(early.insert(number, found)),
                Err(why) => outcome = Err(why),
            }
            while let Some(found) = early.remove(&turn) {
                turn += 1;
                match (&mut outcome, found) {
                    (Ok(Some(all)), Some((series, arrived))) => all.add(series, arrived),
                    (Ok(all), None) => *all = None,
                    _ => {}
                }
            }
            if !matches!(outcome, Ok(Some(_))) {
                // No thread begins another one.
                next.store(over as usize, Ordering::Relaxed);
            }
        });
    });
    outcome
}
