//! Signs of life: each loop says when it begins a turn and when it goes to sleep, and the watchdog, a thread of its own, says in
//! words when one stands still. Cost: two stores for each look at the sockets.

use crate::io::clock::Clock;
use crate::log::ErrorLog;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use weir_topology::plan::fixed::LOOP_STALL_NS;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(250);

/// The loop waits for something to happen.
const ASLEEP: u64 = u64::MAX;

/// A loop's signs of life.
#[derive(Debug)]
pub(crate) struct Pulse {
    /// When the turn began that it is in, ns.
    since_ns: Arc<AtomicU64>,
    /// How late its clock's last tick was, ns.
    lag_ns: AtomicU64,
    /// Whether it was said that it stands still.
    said: AtomicBool,
}

impl Default for Pulse {
    fn default() -> Pulse {
        let since_ns = Arc::new(AtomicU64::new(ASLEEP));
        Pulse { since_ns, lag_ns: AtomicU64::new(0), said: AtomicBool::new(false) }
    }
}

impl Pulse {
    /// Where its runtime says when a turn begins (`u64::MAX`: it sleeps).
    pub fn turns(&self) -> Arc<AtomicU64> {
        self.since_ns.clone()
    }

    /// A tick of its clock came so late.
    pub fn lag(&self, late_ns: u64) {
        self.lag_ns.store(late_ns, Relaxed);
    }

    /// For how long it has stood still, if that is too long.
    fn stalled_ns(&self, now_ns: u64) -> Option<u64> {
        let since_ns = self.since_ns.load(Relaxed);
        let for_ns = now_ns.saturating_sub(since_ns);
        (since_ns != ASLEEP && for_ns > LOOP_STALL_NS).then_some(for_ns)
    }
}

/// Watches until nobody else has the pulses.
pub(crate) fn watch(clock: Clock, pulses: Arc<[Pulse]>, errors: Arc<ErrorLog>) -> std::io::Result<()> {
    std::thread::Builder::new().name("weir-watchdog".to_owned()).spawn(move || {
        while Arc::strong_count(&pulses) > 1 {
            std::thread::sleep(LOOK);
            for (number, pulse) in pulses.iter().enumerate() {
                look(number, pulse, pulses.len() - 1, clock.now(), &errors);
            }
        }
    })?;
    Ok(())
}

fn look(number: usize, pulse: &Pulse, owner: usize, now_ns: u64, errors: &ErrorLog) {
    let name = || match number == owner {
        true => "the thread of health checks and balancers of the process".to_owned(),
        false => format!("event loop {number}"),
    };
    match pulse.stalled_ns(now_ns) {
        Some(for_ns) if !pulse.said.swap(true, Relaxed) => errors.urgent(|| {
            let s = for_ns as f64 / 1e9;
            format!("{} has stood still for {s:.1} s: its clients wait; the others go on", name())
        }),
        None if pulse.said.swap(false, Relaxed) => {
            let lag_s = pulse.lag_ns.load(Relaxed) as f64 / 1e9;
            errors.urgent(|| format!("{} goes on; its clock was {lag_s:.1} s late", name()));
        }
        _ => {}
    }
}
