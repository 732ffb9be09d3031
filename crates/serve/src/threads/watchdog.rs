//! The watchdog, a thread of its own, looks at the loops' signs of life, and reports when one neither sleeps nor goes on,
//! for any reason.

use crate::log::ErrorLog;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_net::io::clock::Clock;
use weir_net::io::runtime::LifeSigns;
use weir_plan::fixed::LOOP_STALL_NS;

/// How often it checks, ns.
const LOOK_NS: u64 = 500_000_000;

/// The loop goes on.
const NEVER: u64 = u64::MAX;

/// A loop's signs of life, and what the watchdog has made of them.
#[derive(Debug)]
pub(crate) struct Pulse {
    /// None: the loop has not begun, or has ended. Locked when that changes, and by the watchdog.
    signs: Mutex<Option<Arc<LifeSigns>>>,
    /// Since when it stands still, ns, if that was reported.
    stands_since_ns: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Pulse {
        Pulse { signs: Mutex::default(), stands_since_ns: AtomicU64::new(NEVER) }
    }
}

impl Pulse {
    /// Its loop begins.
    pub fn begins(&self, signs: Arc<LifeSigns>) {
        *self.signs.lock().unwrap_or_else(PoisonError::into_inner) = Some(signs);
    }

    /// Its loop ends.
    pub fn ends(&self) {
        *self.signs.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// For how long it has been stuck, ns, if that is known.
    pub fn stands_ns(&self, now_ns: u64) -> Option<u64> {
        let since_ns = self.stands_since_ns.load(Relaxed);
        (since_ns != NEVER).then(|| now_ns.saturating_sub(since_ns))
    }

    /// The turn in which it is, if it does not sleep.
    fn turn(&self) -> Option<u64> {
        let signs = self.signs.lock().unwrap_or_else(PoisonError::into_inner);
        signs.as_ref().filter(|signs| !signs.is_asleep()).map(|signs| signs.turn())
    }
}

/// What the watchdog saw of a loop when it looked last.
#[derive(Clone, Copy, Debug, Default)]
struct Sighting {
    /// The turn, if it did not sleep.
    turn: Option<u64>,
    /// Since when it has been in that turn, or asleep, ns.
    since_ns: u64,
}

impl Sighting {
    /// The message about a loop that is in this turn now, if something has changed. `resumed_ns`: since when the process
    /// has run without a stop.
    fn news(&mut self, pulse: &Pulse, turn: Option<u64>, now_ns: u64, resumed_ns: u64) -> Option<News> {
        let stood_ns = pulse.stands_ns(now_ns);
        if turn.is_none() || turn != self.turn {
            *self = Sighting { turn, since_ns: now_ns };
            pulse.stands_since_ns.store(NEVER, Relaxed);
            return stood_ns.map(|for_ns| News::GoesOn { for_ns });
        }
        // What was said already stays true across a stop of the process.
        if stood_ns.is_none() {
            self.since_ns = self.since_ns.max(resumed_ns);
        }
        let for_ns = now_ns.saturating_sub(self.since_ns);
        if stood_ns.is_some() || for_ns <= LOOP_STALL_NS {
            return None;
        }
        pulse.stands_since_ns.store(self.since_ns, Relaxed);
        Some(News::Stands { for_ns })
    }
}

/// A change of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    Stands { for_ns: u64 },
    GoesOn { for_ns: u64 },
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
            News::GoesOn { for_ns } => format!("{name} goes on; it had stood still for {:.1} s", s(for_ns)),
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
        let mut seen = vec![Sighting::default(); pulses.len()];
        while Arc::strong_count(&pulses) > 1 {
            std::thread::sleep(Duration::from_nanos(LOOK_NS));
            let now_ns = clock.now();
            let resumed_ns = running.looks(now_ns);
            for (number, (pulse, seen)) in pulses.iter().zip(&mut seen).enumerate() {
                if let Some(news) = seen.news(pulse, pulse.turn(), now_ns, resumed_ns) {
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
        let (pulse, mut seen) = (Pulse::default(), Sighting::default());
        let mut look = |turn: u64, now_ns| seen.news(&pulse, Some(turn), now_ns, 0);
        assert_eq!(look(1, 5 * S), None);
        assert_eq!(look(1, 6 * S), None, "a second is not more than a second");
        assert_eq!(pulse.stands_ns(6 * S), None);
        assert_eq!(look(1, 7 * S + S / 2), Some(News::Stands { for_ns: 5 * S / 2 }));
        assert_eq!(pulse.stands_ns(8 * S), Some(3 * S), "whoever looks is told so");
        assert_eq!([look(1, 8 * S), look(1, 98 * S)], [None, None], "that is known");
        assert_eq!(look(2, 99 * S), Some(News::GoesOn { for_ns: 94 * S }));
        assert_eq!(look(3, 100 * S), None, "that is known too");
        assert_eq!(pulse.stands_ns(100 * S), None);
        // The next stop is a new one.
        assert!(matches!(look(3, 102 * S), Some(News::Stands { .. })));
        assert_eq!(look(4, 103 * S), Some(News::GoesOn { for_ns: 3 * S }));
    }

    /// A loop without work does not stand still, nor does one that has not begun or has ended.
    #[test]
    fn a_loop_that_sleeps_does_not_stand_still() {
        let (pulse, mut seen) = (Pulse::default(), Sighting::default());
        assert_eq!(pulse.turn(), None, "it has not begun");
        assert_eq!([5, 50, 500].map(|s| seen.news(&pulse, None, s * S, 0)), [None; 3]);
        pulse.begins(Arc::default());
        assert_eq!(pulse.turn(), Some(0));
        assert!(seen.news(&pulse, pulse.turn(), 501 * S, 0).is_none());
        assert!(seen.news(&pulse, pulse.turn(), 503 * S, 0).is_some());
        pulse.ends();
        assert_eq!(seen.news(&pulse, pulse.turn(), 504 * S, 0), Some(News::GoesOn { for_ns: 3 * S }));
        assert_eq!(seen.news(&pulse, pulse.turn(), 900 * S, 0), None);
    }

    /// A stop of the whole process is not a loop's; a loop that was stuck before it still is.
    #[test]
    fn a_process_that_was_stopped_accuses_nobody() {
        let mut running = Running { looked_ns: 10 * S, resumed_ns: 0 };
        assert_eq!([running.looks(10 * S + LOOK_NS), running.looks(10 * S + 3 * LOOK_NS)], [0, 0]);
        assert_eq!([running.looks(600 * S), running.looks(600 * S + LOOK_NS)], [600 * S, 600 * S]);
        let (pulse, stuck) = (Pulse::default(), Pulse::default());
        let (mut seen, mut seen_stuck) = (Sighting::default(), Sighting::default());
        assert!(seen_stuck.news(&stuck, Some(1), 5 * S, 0).is_none());
        assert!(seen_stuck.news(&stuck, Some(1), 10 * S, 0).is_some());
        assert!(seen.news(&pulse, Some(1), 10 * S, 0).is_none());
        assert_eq!([600, 601].map(|s| seen.news(&pulse, Some(1), s * S, 600 * S)), [None, None]);
        assert_eq!(seen_stuck.news(&stuck, Some(1), 600 * S, 600 * S), None, "that is known");
        assert_eq!(
            seen.news(&pulse, Some(1), 602 * S, 600 * S),
            Some(News::Stands { for_ns: 2 * S }),
            "since then it could go on"
        );
    }

    #[test]
    fn threads_are_called_by_what_they_do() {
        let said = News::Stands { for_ns: 5 * S / 2 }.describe(&name(2, 2));
        assert!(
            said.contains("health checks and balancers of the process has stood still for 2.5 s"),
            "{said}"
        );
        let said = News::GoesOn { for_ns: 94 * S }.describe(&name(1, 2));
        assert_eq!(said, "event loop 1 goes on; it had stood still for 94.0 s");
    }
}
