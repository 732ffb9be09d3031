//! Signs of life: each loop's clock beats ten times a second, between its clients' turns, and the watchdog, a thread
//! of its own, reports when one stops, for any reason.

use crate::log::ErrorLog;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use weir_net::io::clock::Clock;
use weir_plan::fixed::LOOP_STALL_NS;

/// How often it checks, ns.
const LOOK_NS: u64 = 250_000_000;

/// The loop has not begun, or has ended.
const NEVER: u64 = u64::MAX;

/// A loop's signs of life.
#[derive(Debug)]
pub(crate) struct Pulse {
    /// When its clock beat last, ns.
    beat_ns: AtomicU64,
    /// The greatest lateness of a beat since the watchdog checked, ns.
    lag_ns: AtomicU64,
    /// Whether its stop was reported.
    said: AtomicBool,
}

impl Default for Pulse {
    fn default() -> Pulse {
        let (beat_ns, lag_ns) = (AtomicU64::new(NEVER), AtomicU64::new(0));
        Pulse { beat_ns, lag_ns, said: AtomicBool::new(false) }
    }
}

impl Pulse {
    /// Its clock beats now, and should have at `due_ns`.
    pub fn beats(&self, now_ns: u64, due_ns: u64) {
        self.lag_ns.fetch_max(now_ns.saturating_sub(due_ns), Relaxed);
        // A reader of the beat sees its lateness.
        self.beat_ns.store(now_ns, Release);
    }

    /// Ends the beats, since its loop ends.
    pub fn ends(&self) {
        self.beat_ns.store(NEVER, Release);
    }

    /// For how long it has been stuck, ns, if known.
    pub fn stands_ns(&self, now_ns: u64) -> Option<u64> {
        self.said.load(Relaxed).then(|| now_ns.saturating_sub(self.beat_ns.load(Acquire)))
    }

    /// The message about it, if something has changed. `resumed_ns`: since when the process has run without a stop.
    fn news(&self, now_ns: u64, resumed_ns: u64) -> Option<News> {
        let beat_ns = self.beat_ns.load(Acquire);
        if beat_ns == NEVER {
            self.said.store(false, Relaxed);
            return None;
        }
        let was_said = self.said.load(Relaxed);
        let from_ns = if was_said { beat_ns } else { beat_ns.max(resumed_ns) };
        let for_ns = now_ns.saturating_sub(from_ns);
        let stands = for_ns > LOOP_STALL_NS;
        self.said.store(stands, Relaxed);
        if stands {
            return (!was_said).then_some(News::Stands { for_ns });
        }
        let late_ns = self.lag_ns.swap(0, Relaxed);
        was_said.then_some(News::GoesOn { late_ns })
    }
}

/// A change of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Stands { for_ns: u64 },
    GoesOn { late_ns: u64 },
}

impl News {
    /// In words.
    fn describe(self, name: &str) -> String {
        let s = |ns: u64| ns as f64 / 1e9;
        match self {
            News::Stands { for_ns } => {
                let s = s(for_ns);
                format!("{name} has stood still for {s:.1} s: its clients wait; the others go on")
            }
            News::GoesOn { late_ns } => format!("{name} goes on; its clock was {:.1} s late", s(late_ns)),
        }
    }
}

/// Since when the process has run without a stop, as far as the watchdog can tell by itself: where it comes late, all
/// have stopped, as under SIGSTOP, and the loops are not to blame.
struct Running {
    looked_ns: u64,
    resumed_ns: u64,
}

impl Running {
    fn looks(&mut self, now_ns: u64) -> u64 {
        if now_ns - std::mem::replace(&mut self.looked_ns, now_ns) > 2 * LOOK_NS {
            self.resumed_ns = now_ns;
        }
        self.resumed_ns
    }
}

/// Watches until no other thread has the pulses.
#[expect(clippy::disallowed_methods, reason = "that a loop stands still shows in time only")]
pub(crate) fn watch(clock: Clock, pulses: Arc<[Pulse]>, errors: Arc<ErrorLog>) -> std::io::Result<()> {
    std::thread::Builder::new().name("weir-watchdog".to_owned()).spawn(move || {
        let mut running = Running { looked_ns: clock.now(), resumed_ns: 0 };
        while Arc::strong_count(&pulses) > 1 {
            std::thread::sleep(Duration::from_nanos(LOOK_NS));
            let now_ns = clock.now();
            let resumed_ns = running.looks(now_ns);
            for (number, pulse) in pulses.iter().enumerate() {
                if let Some(news) = pulse.news(now_ns, resumed_ns) {
                    errors.urgent(|| news.describe(&name(number, pulses.len() - 1)));
                }
            }
        }
    })?;
    Ok(())
}

/// The name of a thread.
pub(crate) fn name(number: usize, owner: usize) -> String {
    match number == owner {
        true => "the thread of health checks and balancers of the process".to_owned(),
        false => format!("event loop {number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Reports once that it is stuck, and once that it continues.
    #[test]
    fn a_loop_that_stands_still_is_said_once() {
        let pulse = Pulse::default();
        let look = |now_ns| pulse.news(now_ns, 0);
        assert_eq!(look(5 * S), None, "it has not begun");
        pulse.beats(5 * S, 5 * S);
        assert_eq!(look(6 * S), None, "a second is not more than a second");
        assert_eq!(pulse.stands_ns(6 * S), None);
        assert_eq!(look(7 * S + S / 2), Some(News::Stands { for_ns: 5 * S / 2 }));
        assert_eq!(pulse.stands_ns(8 * S), Some(3 * S), "whoever looks is told so");
        assert_eq!([look(8 * S), look(99 * S)], [None, None], "that is known");
        pulse.beats(99 * S, 5 * S);
        pulse.beats(99 * S, 99 * S);
        assert_eq!(look(99 * S + 1), Some(News::GoesOn { late_ns: 94 * S }));
        assert_eq!(look(99 * S + 2), None, "that is known too");
        assert_eq!(pulse.stands_ns(99 * S + 2), None);
        // The next stop is a new one.
        assert!(matches!(look(101 * S), Some(News::Stands { .. })));
        pulse.beats(102 * S, 99 * S);
        assert_eq!(look(102 * S), Some(News::GoesOn { late_ns: 3 * S }));
        assert!(matches!(look(110 * S), Some(News::Stands { .. })));
        pulse.ends();
        assert_eq!(
            [look(1000 * S), look(1001 * S)],
            [None, None],
            "one that has ended neither stands nor goes on"
        );
    }

    /// A stop of the whole process is not a loop's; a loop that was stuck before it still is.
    #[test]
    fn a_process_that_was_stopped_accuses_nobody() {
        let mut running = Running { looked_ns: 10 * S, resumed_ns: 0 };
        assert_eq!([running.looks(10 * S + LOOK_NS), running.looks(10 * S + 3 * LOOK_NS)], [0, 0]);
        assert_eq!([running.looks(600 * S), running.looks(600 * S + LOOK_NS)], [600 * S, 600 * S]);
        let (pulse, stuck) = (Pulse::default(), Pulse::default());
        pulse.beats(10 * S, 10 * S);
        stuck.beats(5 * S, 5 * S);
        assert!(stuck.news(10 * S, 0).is_some());
        assert_eq!([pulse.news(600 * S, 600 * S), pulse.news(601 * S, 600 * S)], [None, None]);
        assert_eq!(stuck.news(600 * S, 600 * S), None, "that is known");
        assert_eq!(
            pulse.news(602 * S, 600 * S),
            Some(News::Stands { for_ns: 2 * S }),
            "since then it could go on"
        );
    }

    /// It may beat after the clock was read, on another thread.
    #[test]
    fn a_beat_of_the_future_is_none_that_stands_still() {
        let pulse = Pulse::default();
        pulse.beats(5 * S, 5 * S);
        assert_eq!(pulse.news(3 * S, 0), None);
    }

    #[test]
    fn threads_are_called_by_what_they_do() {
        let said = News::Stands { for_ns: 5 * S / 2 }.describe(&name(2, 2));
        assert!(
            said.contains("health checks and balancers of the process has stood still for 2.5 s"),
            "{said}"
        );
        let said = News::GoesOn { late_ns: 94 * S }.describe(&name(1, 2));
        assert_eq!(said, "event loop 1 goes on; its clock was 94.0 s late");
    }
}
