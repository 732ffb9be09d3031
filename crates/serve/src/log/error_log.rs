//! The lines on standard error: targets that go up and down, names that do not resolve, requests that failed,
//! connections of HTTP/2 on which a peer broke a rule.
//!
//! At most ten lines a second of each sort: however many requests fail, a target that went down is reported. The
//! number of omitted lines comes with the next line, or after a second; changes of targets are summed instead
//! ([`super::changes`]). That no client can be accepted is reported
//! once in ten seconds, as long as it lasts. A thread of its own writes, so that no loop ever waits for a reader.

use super::changes::{Sums, TargetChange};
use crate::sync::channel::{Receiver, Sender, bounded};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_net::io::clock::Clock;
use weir_net::io::system::{explain, remedy};
use weir_plan::fixed::{ACCEPT_LOG_PAUSE_NS, ERROR_LOG_FINISH_NS, ERROR_LOG_QUEUE, ERROR_LOG_RATE_PER_S};

/// The most lines a second of one sort.
const MOST: u64 = ERROR_LOG_RATE_PER_S as u64;

/// After this time without a line the number of omitted ones is written.
const SETTLED: Duration = Duration::from_secs(1);

/// A command to the writer.
enum LogCommand {
    Line(String),
    /// Changes of targets wait to be summed.
    Sum,
    /// To be answered once everything before it is written.
    All(mpsc::Sender<()>),
}

/// The error log of a process.
pub(crate) struct ErrorLog {
    clock: Clock,
    out: Sender<LogCommand>,
    /// Report no targets and names.
    quiet: bool,
    news: Arc<Rate>,
    failures: Arc<Rate>,
    connections: Arc<Rate>,
    /// Changes of targets that are reported one by one, and those that are to be summed. Only the owner of health and
    /// the writer lock it, never a request.
    changes: Rate,
    sums: Arc<Mutex<Sums>>,
    /// When a failure to accept clients may be reported again.
    full_ns: AtomicU64,
}

impl ErrorLog {
    /// For a process; `quiet`: without targets and names.
    pub fn start(clock: Clock, quiet: bool) -> io::Result<ErrorLog> {
        let (out, said) = bounded(ERROR_LOG_QUEUE);
        let rates = [(); 3].map(|()| Arc::new(Rate::default()));
        let [news, failures, connections] = rates.clone();
        let sums = Arc::<Mutex<Sums>>::default();
        let summed = sums.clone();
        std::thread::Builder::new()
            .name("weir-errors".to_owned())
            .spawn(move || write(&mut io::stderr(), &said, &rates, &summed))?;
        let (changes, full_ns) = (Rate::default(), AtomicU64::new(0));
        Ok(ErrorLog { clock, out, quiet, news, failures, connections, changes, sums, full_ns })
    }

    /// Reports that a target is up or down: at once as long as these are few, otherwise in a sum.
    pub fn target_changed(&self, change: &TargetChange<'_>) {
        if self.quiet {
            return;
        }
        let mut sums = locked(&self.sums);
        // Behind a sum that waits, so that the last word of a target is the last line.
        if sums.is_empty() && self.changes.admits(self.clock.now()).is_some() {
            drop(sums);
            if self.out.send(LogCommand::Line(change.line())).is_ok() {
                return;
            }
            sums = locked(&self.sums);
        }
        sums.add(change, Instant::now());
        // Without room for it the writer has lines left, and looks behind each of them.
        let _ = self.out.send(LogCommand::Sum);
    }

    /// Reports a target or name, within the limit of lines.
    pub fn note(&self, text: impl FnOnce() -> String) {
        if !self.quiet {
            self.put(&self.news, text);
        }
    }

    /// Reports why a request failed, within the limit of lines.
    pub fn request_failed(&self, text: impl FnOnce() -> String) {
        self.put(&self.failures, text);
    }

    /// Reports why a connection ended, within a limit of lines of its own: clients could use up that of requests.
    pub fn connection_failed(&self, text: impl FnOnce() -> String) {
        self.put(&self.connections, text);
    }

    /// Reports without the limit of lines; the caller does so rarely.
    #[cold]
    pub fn urgent(&self, text: impl FnOnce() -> String) {
        let _ = self.out.send(LogCommand::Line(text()));
    }

    /// Reports these warnings, a line each.
    pub fn warn(&self, warnings: &[String]) {
        warnings.iter().for_each(|warning| self.urgent(|| format!("warning: {warning}")));
    }

    /// Reports that a limit is reached; the caller reports each once.
    #[cold]
    pub fn limit_reached(&self, limit: impl FnOnce() -> String) {
        let text = format!(
            "{} is reached: closing idle clients to admit new ones; without idle ones, new clients wait",
            limit()
        );
        let _ = self.out.send(LogCommand::Line(text));
    }

    /// Reports that the system accepts no further client, with the remedy.
    #[cold]
    pub fn cannot_accept(&self, why: &io::Error) {
        let now = self.clock.now();
        let next = self.full_ns.load(Relaxed);
        let is_mine =
            || self.full_ns.compare_exchange(next, now + ACCEPT_LOG_PAUSE_NS, Relaxed, Relaxed).is_ok();
        if now >= next && is_mine() {
            let text = format!("cannot accept clients (they wait): {}", explain(why));
            let or = remedy(why).map_or("", |_| ", or lower max_clients");
            if self.out.send(LogCommand::Line(text + or)).is_err() {
                self.full_ns.store(next, Relaxed);
            }
        }
    }

    /// Waits until everything is written, unless the reader takes too long. To be called at the end.
    pub fn finish(&self) {
        let (tell, told) = mpsc::channel();
        if self.out.send(LogCommand::All(tell)).is_ok() {
            let _ = told.recv_timeout(Duration::from_nanos(ERROR_LOG_FINISH_NS));
        }
    }

    fn put(&self, rate: &Rate, text: impl FnOnce() -> String) {
        let Some(left_out) = rate.admits(self.clock.now()) else { return };
        let more =
            if left_out > 0 { format!(" ({} left out before it)", lines(left_out)) } else { String::new() };
        if self.out.send(LogCommand::Line(text() + &more)).is_err() {
            rate.left_out.fetch_add(left_out + 1, Relaxed);
        }
    }
}

fn lines(count: u64) -> String {
    format!("{count} line{}", if count == 1 { "" } else { "s" })
}

fn locked(sums: &Mutex<Sums>) -> MutexGuard<'_, Sums> {
    // Its content is valid after every step.
    sums.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes until all senders are gone. Without a reader the lines are lost.
fn write(out: &mut impl Write, said: &Receiver<LogCommand>, rates: &[Arc<Rate>], sums: &Mutex<Sums>) {
    let mut settled = true;
    loop {
        let due = locked(sums).due_in(Instant::now());
        let wait = if settled { due } else { Some(due.map_or(SETTLED, |due| due.min(SETTLED))) };
        let next = match wait {
            Some(Duration::ZERO) => Err(RecvTimeoutError::Timeout),
            wait => said.recv_timeout(wait.unwrap_or(Duration::MAX)),
        };
        match next {
            Ok(LogCommand::Line(line)) => {
                settled = false;
                let _ = writeln!(out, "weir: {line}");
            }
            Ok(LogCommand::Sum) => {}
            Ok(LogCommand::All(tell)) => {
                write_sums(out, sums);
                say_left_out(out, rates);
                let _ = tell.send(());
            }
            Err(RecvTimeoutError::Timeout) => {
                let is_due = locked(sums).due_in(Instant::now()).is_some_and(|due| due.is_zero());
                if is_due {
                    write_sums(out, sums);
                } else {
                    settled = true;
                    say_left_out(out, rates);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                write_sums(out, sums);
                return say_left_out(out, rates);
            }
        }
    }
}

fn write_sums(out: &mut impl Write, sums: &Mutex<Sums>) {
    // Written without the lock: a reader may take its time.
    let lines = locked(sums).take();
    for line in lines {
        let _ = writeln!(out, "weir: {line}");
    }
}

fn say_left_out(out: &mut impl Write, rates: &[Arc<Rate>]) {
    let left_out: u64 = rates.iter().map(|rate| rate.left_out.swap(0, Relaxed)).sum();
    if left_out > 0 {
        let _ = writeln!(out, "weir: {} left out", lines(left_out));
    }
}

/// The number of lines in a second. Loops that report at once do not wait for each other.
#[derive(Default)]
struct Rate {
    /// The second, times [`SHARE`], and the number of lines in it.
    asked: AtomicU64,
    left_out: AtomicU64,
}

/// More than the lines of a second.
const SHARE: u64 = 1 << 32;

impl Rate {
    /// Whether one more line fits; with the number of lines omitted before it.
    fn admits(&self, now_ns: u64) -> Option<u64> {
        let second = now_ns / 1_000_000_000 * SHARE;
        // A loop that is a second behind counts in the newer one.
        let before = self.asked.fetch_max(second, Relaxed).max(second);
        if before % SHARE >= MOST || self.asked.fetch_add(1, Relaxed) % SHARE >= MOST {
            self.left_out.fetch_add(1, Relaxed);
            return None;
        }
        Some(self.left_out.swap(0, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_a_second_and_the_rest_is_counted() {
        let rate = Rate::default();
        assert_eq!((0..13).filter_map(|_| rate.admits(5)).collect::<Vec<_>>(), [0; 10]);
        assert_eq!(rate.admits(999_999_999), None);
        assert_eq!([rate.admits(1_000_000_000), rate.admits(1_000_000_001)], [Some(4), Some(0)]);
    }

    #[test]
    fn the_last_words_are_written_before_the_end() {
        let rate = Arc::new(Rate::default());
        let (out, said) = bounded(4);
        let (tell, told) = mpsc::channel();
        rate.left_out.store(1, Relaxed);
        for word in
            [LogCommand::Line("a".to_owned()), LogCommand::All(tell), LogCommand::Line("b".to_owned())]
        {
            assert!(out.send(word).is_ok());
        }
        drop(out);
        let mut text = Vec::new();
        write(&mut text, &said, &[rate], &Mutex::default());
        assert_eq!(String::from_utf8_lossy(&text), "weir: a\nweir: 1 line left out\nweir: b\n");
        assert_eq!(told.recv(), Ok(()));
    }
}
