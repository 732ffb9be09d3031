//! What a person should read on standard error: targets that go up and down, names that do not resolve, requests that failed.
//!
//! Ten lines a second of either sort at most: however many requests fail, that a target went down is said. The count of what
//! was left out comes with the next line, or after a second. That nobody can be accepted is told once in ten seconds, as long
//! as it lasts. A thread of its own writes, so that no loop ever waits for whoever reads.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;
use weir_net::io::clock::Clock;
use weir_net::io::system::{explain, remedy};
use weir_plan::fixed::{ACCEPT_LOG_PAUSE_NS, ERROR_LOG_FINISH_NS, ERROR_LOG_QUEUE, ERROR_LOG_RATE_PER_S};

/// Lines a second of one sort at most.
const MOST: u64 = ERROR_LOG_RATE_PER_S as u64;

/// After so long without a line nothing more is coming that would tell of what was left out.
const SETTLED: Duration = Duration::from_secs(1);

/// What the writer is told.
enum Said {
    Line(String),
    /// To answer once all before it is written.
    All(Sender<()>),
}

/// The error log of a process.
pub(crate) struct ErrorLog {
    clock: Clock,
    out: SyncSender<Said>,
    /// Nothing is said but that requests failed.
    quiet: bool,
    news: Arc<Rate>,
    failures: Arc<Rate>,
    /// When it may be said again that nobody can be accepted.
    full_ns: AtomicU64,
}

impl ErrorLog {
    /// Of a process; `quiet`: of failed requests only.
    pub fn start(clock: Clock, quiet: bool) -> io::Result<ErrorLog> {
        let (out, said) = sync_channel(ERROR_LOG_QUEUE);
        let (news, failures) = (Arc::new(Rate::default()), Arc::new(Rate::default()));
        let rates = [news.clone(), failures.clone()];
        std::thread::Builder::new()
            .name("weir-errors".to_owned())
            .spawn(move || write(&mut io::stderr(), &said, &rates))?;
        Ok(ErrorLog { clock, out, quiet, news, failures, full_ns: AtomicU64::new(0) })
    }

    /// Says it of targets and names, if there is room.
    pub fn note(&self, text: impl FnOnce() -> String) {
        if !self.quiet {
            self.put(&self.news, text);
        }
    }

    /// Says why a request failed, if there is room.
    pub fn request_failed(&self, text: impl FnOnce() -> String) {
        self.put(&self.failures, text);
    }

    /// Says what must be said however much else is; whoever calls says it seldom.
    #[cold]
    pub fn urgent(&self, text: impl FnOnce() -> String) {
        let _ = self.out.try_send(Said::Line(text()));
    }

    /// Says that a limit is reached; whoever calls says each once.
    #[cold]
    pub fn limit_reached(&self, limit: impl FnOnce() -> String) {
        let text = format!(
            "{} is reached: idle clients are closed for new ones, who wait where there is none",
            limit()
        );
        let _ = self.out.try_send(Said::Line(text));
    }

    /// Says that the system gives no further client, and what can be done.
    #[cold]
    pub fn cannot_accept(&self, why: &io::Error) {
        let now = self.clock.now();
        let next = self.full_ns.load(Relaxed);
        let is_mine =
            || self.full_ns.compare_exchange(next, now + ACCEPT_LOG_PAUSE_NS, Relaxed, Relaxed).is_ok();
        if now >= next && is_mine() {
            let text = format!("cannot accept clients, who wait: {}", explain(why));
            let or = remedy(why).map_or("", |_| ", or lower max_clients");
            if self.out.try_send(Said::Line(text + or)).is_err() {
                self.full_ns.store(next, Relaxed);
            }
        }
    }

    /// All that was said is written, unless whoever reads it takes too long. To be called at the end.
    pub fn finish(&self) {
        let (tell, told) = channel();
        if self.out.try_send(Said::All(tell)).is_ok() {
            let _ = told.recv_timeout(Duration::from_nanos(ERROR_LOG_FINISH_NS));
        }
    }

    fn put(&self, rate: &Rate, text: impl FnOnce() -> String) {
        let Some(left_out) = rate.admits(self.clock.now()) else { return };
        let more =
            if left_out > 0 { format!(" ({} left out before it)", lines(left_out)) } else { String::new() };
        if self.out.try_send(Said::Line(text() + &more)).is_err() {
            rate.left_out.fetch_add(left_out + 1, Relaxed);
        }
    }
}

fn lines(count: u64) -> String {
    format!("{count} line{}", if count == 1 { "" } else { "s" })
}

/// Writes until nobody is left who could say something. Where nobody reads it is lost.
fn write(out: &mut impl Write, said: &Receiver<Said>, rates: &[Arc<Rate>]) {
    let mut settled = true;
    loop {
        let next = if settled {
            said.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            said.recv_timeout(SETTLED)
        };
        settled = true;
        match next {
            Ok(Said::Line(line)) => {
                settled = false;
                let _ = writeln!(out, "weir: {line}");
            }
            Ok(Said::All(tell)) => {
                say_left_out(out, rates);
                let _ = tell.send(());
            }
            Err(RecvTimeoutError::Timeout) => say_left_out(out, rates),
            Err(RecvTimeoutError::Disconnected) => return say_left_out(out, rates),
        }
    }
}

fn say_left_out(out: &mut impl Write, rates: &[Arc<Rate>]) {
    let left_out: u64 = rates.iter().map(|rate| rate.left_out.swap(0, Relaxed)).sum();
    if left_out > 0 {
        let _ = writeln!(out, "weir: {} left out", lines(left_out));
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

    #[test]
    fn the_last_words_are_written_before_the_end() {
        let rate = Arc::new(Rate::default());
        let (out, said) = sync_channel(4);
        let (tell, told) = channel();
        rate.left_out.store(1, Relaxed);
        for word in [Said::Line("a".to_owned()), Said::All(tell), Said::Line("b".to_owned())] {
            assert!(out.send(word).is_ok());
        }
        drop(out);
        let mut text = Vec::new();
        write(&mut text, &said, &[rate]);
        assert_eq!(String::from_utf8_lossy(&text), "weir: a\nweir: 1 line left out\nweir: b\n");
        assert_eq!(told.recv(), Ok(()));
    }
}
