//! How far a verification is, on standard error: one line on a terminal, elsewhere a plain line now and then.

use std::cell::Cell;
use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};
use weir_verify::Progress;

/// Plain lines are at least this far apart, so that a short verification has none.
const PERIOD: Duration = Duration::from_secs(10);
/// A verification that takes longer says so as it begins, s.
const LONG_S: f64 = 60.0;

/// Where progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Display {
    /// Nowhere.
    Silent,
    /// On one line of a terminal, which is cleared at the end.
    Live,
    /// In lines that stay: in a log.
    Plain,
}

/// Shows the progress of one verification.
pub(super) struct Meter {
    display: Display,
    /// When the verification began or, later, when the last plain line was written.
    written: Cell<Instant>,
    /// When the first run began; the calibration is before it.
    running: Cell<Option<Instant>>,
}

impl Meter {
    /// Starts the clock. With `quiet` nothing is shown.
    pub(super) fn new(quiet: bool) -> Meter {
        let display = match quiet {
            true => Display::Silent,
            false if stderr().is_terminal() => Display::Live,
            false => Display::Plain,
        };
        Meter { display, written: Cell::new(Instant::now()), running: Cell::new(None) }
    }

    /// A run begins.
    pub(super) fn tell(&self, progress: Progress<'_>) {
        let is_first = self.running.get().is_none();
        let running = self.running.get().unwrap_or_else(Instant::now);
        self.running.set(Some(running));
        let left_s = estimate_left(&progress, running.elapsed().as_secs_f64());
        match self.display {
            Display::Silent => {}
            Display::Live => {
                let _ = write!(stderr(), "\r\x1b[K{}", describe_live(&progress, left_s));
            }
            Display::Plain if is_first => self.write(announce(&progress, left_s)),
            Display::Plain if self.written.get().elapsed() >= PERIOD => {
                self.write(Some(describe_plain(&progress, left_s)));
            }
            Display::Plain => {}
        }
    }

    /// Writes a plain line, if there is one.
    fn write(&self, line: Option<String>) {
        if let Some(line) = line {
            self.written.set(Instant::now());
            let _ = writeln!(stderr(), "{line}");
        }
    }

    /// Clears the line of a terminal.
    pub(super) fn end(&self) {
        if self.display == Display::Live {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}

/// The time until the end: as the runs take, in proportion to their lengths where these are known. `elapsed_s`: since the
/// first began.
fn estimate_left(progress: &Progress<'_>, elapsed_s: f64) -> Option<f64> {
    let Progress { done, all, done_s, left_s, .. } = *progress;
    if done == 0 {
        return left_s;
    }
    let by_number = f64::from(all.saturating_sub(done)) / f64::from(done);
    let by_length = done_s.filter(|done_s| *done_s > 0.0).zip(left_s).map(|(done_s, left_s)| left_s / done_s);
    Some(elapsed_s * by_length.unwrap_or(by_number))
}

/// The line of a terminal.
fn describe_live(progress: &Progress<'_>, left_s: Option<f64>) -> String {
    let Progress { scenario, run, runs, done, all, .. } = *progress;
    let others = if all > runs { format!(", {done} of {all} in all") } else { String::new() };
    format!("{scenario}: run {run} of {runs}{others}{}", describe_left(left_s))
}

/// A plain line.
fn describe_plain(progress: &Progress<'_>, left_s: Option<f64>) -> String {
    format!("verify: {} of {} runs{}", progress.done, progress.all, describe_left(left_s))
}

/// The first plain line, of a verification that takes long.
fn announce(progress: &Progress<'_>, left_s: Option<f64>) -> Option<String> {
    let seconds = left_s.filter(|seconds| *seconds > LONG_S)?;
    Some(format!("verify: {} runs, {}", progress.all, round_time(seconds)))
}

fn describe_left(seconds: Option<f64>) -> String {
    seconds.map_or_else(String::new, |seconds| format!(", {} left", round_time(seconds)))
}

/// A time of which only the order matters.
fn round_time(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("about {seconds:.0} s"),
        ..6000.0 => format!("about {:.0} min", seconds / 60.0),
        _ => format!("about {:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN: Progress<'_> = Progress {
        scenario: "rolling",
        run: 1,
        runs: 5,
        done: 0,
        all: 75,
        done_s: Some(0.0),
        left_s: Some(4500.0),
    };

    #[test]
    fn a_line_has_the_runs_and_the_time_that_is_left() {
        let lines = |progress: Progress<'_>, elapsed_s: f64| {
            let left_s = estimate_left(&progress, elapsed_s);
            [describe_live(&progress, left_s), describe_plain(&progress, left_s)]
        };
        assert_eq!(
            lines(BEGUN, 0.0),
            [
                "rolling: run 1 of 5, 0 of 75 in all, about 75 min left",
                "verify: 0 of 75 runs, about 75 min left"
            ]
        );
        let later = Progress { run: 3, done: 12, done_s: Some(720.0), left_s: Some(3600.0), ..BEGUN };
        assert_eq!(lines(later, 744.0)[1], "verify: 12 of 75 runs, about 62 min left");
        let alone = Progress { all: 5, done: 2, run: 3, ..later };
        assert_eq!(lines(alone, 10.0)[0], "rolling: run 3 of 5, about 50 s left");
    }

    #[test]
    fn without_lengths_the_runs_are_counted() {
        let unknown = Progress { done_s: None, left_s: None, ..BEGUN };
        assert_eq!(estimate_left(&unknown, 1.0), None);
        assert_eq!(estimate_left(&Progress { done: 25, ..unknown }, 100.0), Some(200.0));
        assert_eq!(describe_plain(&unknown, None), "verify: 0 of 75 runs");
    }

    #[test]
    fn quiet_shows_nothing() {
        assert_eq!(Meter::new(true).display, Display::Silent);
        assert_ne!(Meter::new(false).display, Display::Silent);
    }

    #[test]
    fn only_what_takes_long_is_announced() {
        let announced = |left_s| announce(&BEGUN, left_s);
        assert_eq!(announced(Some(4500.0)).as_deref(), Some("verify: 75 runs, about 75 min"));
        assert_eq!(announced(Some(7200.0)).as_deref(), Some("verify: 75 runs, about 2.0 h"));
        assert_eq!((announced(Some(59.0)), announced(None)), (None, None));
    }
}
