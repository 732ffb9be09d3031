//! One line on a terminal that says how far a long run is; cleared when it ends. Silent anywhere else.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A run shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(400);
/// The line is drawn at most this often.
const PERIOD: Duration = Duration::from_millis(100);

/// The progress of one run.
pub(crate) struct Progress {
    shown: bool,
    began: Instant,
    drawn: Mutex<Option<Instant>>,
}

impl Progress {
    /// Starts the clock. Nothing is ever shown with `quiet`, or where standard error is not a terminal.
    pub(crate) fn new(quiet: bool) -> Progress {
        Progress { shown: !quiet && stderr().is_terminal(), began: Instant::now(), drawn: Mutex::new(None) }
    }

    /// `done` of `all` replications are finished; may be called from any thread.
    pub(crate) fn tell(&self, done: u64, all: u64) {
        if !self.shown || self.began.elapsed() < PATIENCE {
            return;
        }
        let Ok(mut drawn) = self.drawn.try_lock() else { return };
        if drawn.is_some_and(|at| at.elapsed() < PERIOD) {
            return;
        }
        *drawn = Some(Instant::now());
        let left = match done {
            0 => String::new(),
            _ => {
                let seconds =
                    self.began.elapsed().as_secs_f64() * (all.saturating_sub(done)) as f64 / done as f64;
                format!(", {seconds:.0} s left")
            }
        };
        let _ = write!(stderr(), "\r\x1b[K{done} of {all} replications{left}");
    }

    /// Clears the line.
    pub(crate) fn end(&self) {
        if self.shown && self.drawn.lock().is_ok_and(|drawn| drawn.is_some()) {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
