//! What a person should read on standard error: targets that go up and down, names that do not resolve.
//!
//! Ten lines a second at most, and the count of what was left out with the next. A thread of its own writes them, so that no
//! loop ever waits for whoever reads them.

use crate::clock::Clock;
use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use weir_topology::plan::fixed::{ERROR_LOG_QUEUE as QUEUE, ERROR_LOG_RATE_PER_S as MOST};

/// The words of a process.
pub(crate) struct Words {
    clock: Clock,
    /// `None`: quiet.
    out: Option<SyncSender<String>>,
    rate: Mutex<Rate>,
}

impl Words {
    /// Of a process; `quiet`: none.
    pub fn start(clock: Clock, quiet: bool) -> io::Result<Words> {
        let out = if quiet {
            None
        } else {
            let (out, lines) = sync_channel::<String>(QUEUE);
            std::thread::Builder::new().name("weir-words".to_owned()).spawn(move || {
                for line in lines {
                    // Where nobody reads them they are lost.
                    let _ = writeln!(io::stderr(), "weir: {line}");
                }
            })?;
            Some(out)
        };
        Ok(Words { clock, out, rate: Mutex::default() })
    }

    /// Says it, if there is room.
    pub fn say(&self, text: impl FnOnce() -> String) {
        let Some(out) = &self.out else { return };
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left_out) = rate.admits(self.clock.now()) else { return };
        let more =
            if left_out > 0 { format!(" ({left_out} lines before it were left out)") } else { String::new() };
        if out.try_send(text() + &more).is_err() {
            rate.left_out += left_out + 1;
        }
    }
}

/// How much was said in a second.
#[derive(Default)]
struct Rate {
    second: u64,
    said: u32,
    left_out: u64,
}

impl Rate {
    /// Whether one more may be said; how many were left out before it.
    fn admits(&mut self, now_ns: u64) -> Option<u64> {
        let second = now_ns / 1_000_000_000;
        if second != self.second {
            (self.second, self.said) = (second, 0);
        }
        if self.said >= MOST {
            self.left_out += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_a_second_and_the_rest_is_counted() {
        let mut rate = Rate::default();
        assert_eq!((0..13).filter_map(|_| rate.admits(5)).collect::<Vec<_>>(), [0; 10]);
        assert_eq!(rate.admits(999_999_999), None);
        assert_eq!([rate.admits(1_000_000_000), rate.admits(1_000_000_001)], [Some(4), Some(0)]);
    }
}
