//! What a person should read on standard error: targets that go up and down, names that do not resolve, requests that failed.
//!
//! Ten lines a second of either sort at most: however many requests fail, that a target went down is said. The count of what
//! was left out comes with the next line, or after a second. That nobody can be accepted is told once in ten seconds, as long
//! as it lasts. A thread of its own writes, so that no loop ever waits for whoever reads.

use crate::clock::Clock;
use crate::limits::{explained, remedy};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;
use weir_topology::plan::fixed::{ERROR_LOG_QUEUE as QUEUE, ERROR_LOG_RATE_PER_S};

/// Lines a second of one sort at most.
const MOST: u64 = ERROR_LOG_RATE_PER_S as u64;

/// After so long without a line nothing more is coming that would tell of what was left out.
const SETTLED: Duration = Duration::from_secs(1);

/// Between two lines that say that nobody can be accepted, ns: it is tried twenty times a second.
const FULL_PAUSE_NS: u64 = 10_000_000_000;

/// The words of a process.
pub(crate) struct Words {
    clock: Clock,
    out: SyncSender<String>,
    /// Nothing is said but that requests failed.
    quiet: bool,
    news: Arc<Rate>,
    failures: Arc<Rate>,
    /// When it may be said again that nobody can be accepted.
    full_ns: AtomicU64,
}

impl Words {
    /// Of a process; `quiet`: of failed requests only.
    pub fn start(clock: Clock, quiet: bool) -> io::Result<Words> {
        let (out, lines) = sync_channel::<String>(QUEUE);
        let (news, failures) = (Arc::new(Rate::default()), Arc::new(Rate::default()));
        let rates = [news.clone(), failures.clone()];
        std::thread::Builder::new().name("weir-words".to_owned()).spawn(move || write(&lines, &rates))?;
        Ok(Words { clock, out, quiet, news, failures, full_ns: AtomicU64::new(0) })
    }

    /// Says it of targets and names, if there is room.
    pub fn say(&self, text: impl FnOnce() -> String) {
        if !self.quiet {
            self.put(&self.news, text);
        }
    }

    /// Says why a request failed, if there is room.
    pub fn request_failed(&self, text: impl FnOnce() -> String) {
        self.put(&self.failures, text);
    }

    /// Says that the system gives no further client, and what can be done.
    #[cold]
    pub fn cannot_accept(&self, why: &io::Error) {
        let now = self.clock.now();
        let next = self.full_ns.load(Relaxed);
        let is_mine = || self.full_ns.compare_exchange(next, now + FULL_PAUSE_NS, Relaxed, Relaxed).is_ok();
        if now >= next && is_mine() {
            let text = format!("cannot accept clients, who wait: {}", explained(why));
            let or = remedy(why).map_or("", |_| ", or lower max_clients");
            if self.out.try_send(text + or).is_err() {
                self.full_ns.store(next, Relaxed);
            }
        }
    }

    fn put(&self, rate: &Rate, text: impl FnOnce() -> String) {
        let Some(left_out) = rate.admits(self.clock.now()) else { return };
        let more =
            if left_out > 0 { format!(" ({} left out before it)", lines(left_out)) } else { String::new() };
        if self.out.try_send(text() + &more).is_err() {
            rate.left_out.fetch_add(left_out + 1, Relaxed);
        }
    }
}

fn lines(count: u64) -> String {
    format!("{count} line{}", if count == 1 { "" } else { "s" })
}

/// Writes until nobody is left who could say something. Where nobody reads it is lost.
fn write(said: &Receiver<String>, rates: &[Arc<Rate>]) {
    while let Ok(first) = said.recv() {
        let mut line = first;
        loop {
            let _ = writeln!(io::stderr(), "weir: {line}");
            line = match said.recv_timeout(SETTLED) {
                Ok(next) => next,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => break,
            };
        }
        let left_out: u64 = rates.iter().map(|rate| rate.left_out.swap(0, Relaxed)).sum();
        if left_out > 0 {
            let _ = writeln!(io::stderr(), "weir: {} left out", lines(left_out));
        }
    }
}

/// How much was said in a second. Loops that ask at once do not wait for each other.
#[derive(Default)]
struct Rate {
    /// The second, times [`SHARE`], and how many lines were asked for in it.
    asked: AtomicU64,
    left_out: AtomicU64,
}

/// More than are asked for in a second.
const SHARE: u64 = 1 << 32;

impl Rate {
    /// Whether one more may be said; how many were left out before it.
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
}
