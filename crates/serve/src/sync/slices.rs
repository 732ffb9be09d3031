//! Work that grows with the targets, in slices: the sockets are polled after every few of them, so that a request waits for
//! one slice and not for all (`docs/spec/operating.md#costs`).

use std::cell::Cell;
use weir_net::io::Core;
use weir_net::io::runtime::Runtime;

/// Targets, nodes or counters that are visited before the sockets are polled again.
pub(crate) const AT_ONCE: usize = 256;

/// Work after which a pause is due, ns: pauses cost system calls.
const DUE_NS: u64 = 1_000_000;

/// The longest pause, ns. A slice during which the system ran other threads looks longer than it was.
const LONGEST_NS: u64 = 2_000_000;

/// Pauses of work that no request waits for, such as the graph of a reload: it takes half of its thread's time. Without them the
/// thread never sleeps, and the system lets it wait for others like it, up to 4 ms each time that a request needs it.
pub(crate) struct Pauses<'a> {
    core: &'a Core,
    begun_ns: Cell<u64>,
}

impl Pauses<'_> {
    /// A first slice begins.
    pub fn new(core: &Core) -> Pauses<'_> {
        Pauses { core, begun_ns: Cell::new(core.now()) }
    }

    /// Ends a slice: waits for the next turn, or for as long as the slices since the last pause took.
    pub async fn next(&self) {
        let took_ns = self.core.now().saturating_sub(self.begun_ns.get());
        if took_ns < DUE_NS {
            return self.core.runtime.next_turn().await;
        }
        self.core.timers.about_until(self.core.now() + took_ns.min(LONGEST_NS)).await;
        self.begun_ns.set(self.core.now());
    }
}

/// Counts the steps of one piece of work.
pub(crate) struct Slices {
    rt: Runtime,
    /// Steps that are left in this turn.
    left: Cell<usize>,
}

impl Slices {
    /// No step yet.
    pub fn new(rt: &Runtime) -> Slices {
        Slices { rt: rt.clone(), left: Cell::new(AT_ONCE) }
    }

    /// Counts a step; waits for the next turn after [`AT_ONCE`].
    pub async fn step(&self) {
        if self.left.get() == 0 {
            self.rt.next_turn().await;
            self.left.set(AT_ONCE);
        }
        self.left.set(self.left.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::settings::TCP;
    use std::time::{Duration, Instant};
    use weir_net::io::clock::Clock;
    use weir_stats::Key;

    #[test]
    fn a_pause_is_as_long_as_the_work_before_it_but_has_a_limit() {
        let runtime = Runtime::new().expect("a runtime");
        let core = Core::new(runtime.clone(), Clock::start(), Key::new(1), TCP).expect("timers");
        // The clock began with the core, so that a slice since 0 took at least as long as this waits.
        for (worked_ns, pause_ns) in [(DUE_NS, DUE_NS), (5 * LONGEST_NS, LONGEST_NS)] {
            let pauses = Pauses { core: &core, begun_ns: Cell::new(0) };
            while core.now() < worked_ns {}
            let begun = Instant::now();
            let timers = core.timers.clone().run(runtime.clone());
            let waits = async {
                runtime.spawn(timers);
                pauses.next().await;
            };
            runtime.clone().block_on(waits).expect("it polls");
            assert!(begun.elapsed() >= Duration::from_nanos(pause_ns), "after {worked_ns} ns of work");
            assert!(pauses.begun_ns.get() >= worked_ns + pause_ns, "the next slice begins after the pause");
        }
    }
}
