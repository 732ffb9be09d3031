//! Signs of life: each loop's clock beats ten times a second, between its clients' turns, and the watchdog, a thread of its own,
//! says in words when one stands still, whatever keeps it.

use crate::io::clock::Clock;
use crate::log::ErrorLog;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weir_topology::plan::fixed::LOOP_STALL_NS;

/// How often it looks, ns.
const LOOK_NS: u64 = 250_000_000;

/// The loop has not begun, or has ended.
const NEVER: u64 = u64::MAX;

/// A loop's signs of life.
#[derive(Debug)]
pub(crate) struct Pulse {
    /// When its clock beat last, ns.
    beat_ns: AtomicU64,
    /// How late any beat was since the watchdog looked, ns.
    lag_ns: AtomicU64,
    /// Whether it was said that it stands still.
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
        self.beat_ns.store(now_ns, Relaxed);
    }

    /// It beats no more, since its loop ends.
    pub fn ends(&self) {
        self.beat_ns.store(NEVER, Relaxed);
    }

    /// For how long it has stood still, if that is too long.
    fn stalled_ns(&self, now_ns: u64) -> Option<u64> {
        let for_ns = now_ns.saturating_sub(self.beat_ns.load(Relaxed));
        (for_ns > LOOP_STALL_NS).then_some(for_ns)
    }
}

/// Watches until nobody else has the pulses.
#[expect(clippy::disallowed_methods, reason = "that a loop stands still shows in time only")]
pub(crate) fn watch(clock: Clock, pulses: Arc<[Pulse]>, errors: Arc<ErrorLog>) -> std::io::Result<()> {
    std::thread::Builder::new().name("weir-watchdog".to_owned()).spawn(move || {
        let mut looked_ns = clock.now();
        while Arc::strong_count(&pulses) > 1 {
            std::thread::sleep(Duration::from_nanos(LOOK_NS));
            let now_ns = clock.now();
            // One that comes late itself knows only that the whole process stood still, as under SIGSTOP.
            if now_ns - std::mem::replace(&mut looked_ns, now_ns) > 2 * LOOK_NS {
                continue;
            }
            for (number, pulse) in pulses.iter().enumerate() {
                if let Some(news) = look(number, pulse, pulses.len() - 1, now_ns) {
                    errors.urgent(|| news);
                }
            }
        }
    })?;
    Ok(())
}

/// What is to be said of a thread, if something has changed.
fn look(number: usize, pulse: &Pulse, owner: usize, now_ns: u64) -> Option<String> {
    let name = || match number == owner {
        true => "the thread of health checks and balancers of the process".to_owned(),
        false => format!("event loop {number}"),
    };
    let lag_ns = pulse.lag_ns.swap(0, Relaxed);
    match pulse.stalled_ns(now_ns) {
        Some(for_ns) if !pulse.said.swap(true, Relaxed) => {
            let s = for_ns as f64 / 1e9;
            Some(format!("{} has stood still for {s:.1} s: its clients wait; the others go on", name()))
        }
        None if pulse.said.swap(false, Relaxed) => {
            let lag_s = lag_ns as f64 / 1e9;
            Some(format!("{} goes on; its clock was {lag_s:.1} s late", name()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// Each is said once: that it stands still, and that it goes on.
    #[test]
    fn a_loop_that_stands_still_is_said_once() {
        let pulse = Pulse::default();
        let look = |now_ns| look(1, &pulse, 2, now_ns);
        assert_eq!(look(5 * S), None, "it has not begun");
        pulse.beats(5 * S, 5 * S);
        assert_eq!(look(6 * S), None, "a second is not more than a second");
        let said = look(7 * S + S / 2).expect("two seconds and a half are");
        assert!(said.contains("event loop 1 has stood still for 2.5 s"), "{said}");
        assert_eq!([look(8 * S), look(99 * S)], [None, None], "that is known");
        pulse.beats(99 * S, 5 * S);
        pulse.beats(99 * S, 99 * S);
        let said = look(99 * S + 1).expect("it goes on");
        assert!(said.contains("event loop 1 goes on") && said.contains("94.0 s late"), "{said}");
        assert_eq!(look(99 * S + 2), None, "that is known too");
        // The next time is another one.
        assert!(look(101 * S).is_some_and(|said| said.contains("stood still")));
        pulse.beats(102 * S, 99 * S);
        assert!(look(102 * S).is_some_and(|said| said.contains("goes on")));
        pulse.ends();
        assert_eq!(look(1000 * S), None, "one that has ended does not stand still");
    }

    /// It may beat after the clock was read, on another thread.
    #[test]
    fn a_beat_of_the_future_is_none_that_stands_still() {
        let pulse = Pulse::default();
        pulse.beats(5 * S, 5 * S);
        assert_eq!(look(0, &pulse, 1, 3 * S), None);
    }

    #[test]
    fn the_owner_is_called_by_what_it_does() {
        let pulse = Pulse::default();
        pulse.beats(0, 0);
        let said = look(2, &pulse, 2, 3 * S).expect("it stands still");
        assert!(said.contains("health checks and balancers of the process has stood still"), "{said}");
    }
}
