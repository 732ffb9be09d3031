//! The clock of a loop: ten times a second deadlines end, and once a second pools are gone through, the date is made anew
//! and what no client needs any more is dropped.
//!
//! A loop without events rests: it sleeps until a deadline or the next event, without a periodic timer.

use super::event_loop::Loop;
use std::rc::Rc;
use weir_net::io::deadlines::TICK_NS;

/// The number of ticks without another event after which a loop rests.
const QUIET_TICKS: u32 = 3;

/// Events of a tick itself: its timer's, and the wake of the clock.
const OF_A_TICK: u64 = 2;

/// Ticks in a second.
const SECOND: u32 = 10;

/// The interval at which a loop at rest checks its idle connections for limits other than the idle time-out, ns. Each is
/// checked before its next use as well.
const LOOK_NS: u64 = 10_000_000_000;

impl Loop {
    /// Keeps time until the loop ends.
    pub(super) async fn tick(self: Rc<Self>) {
        let (mut count, mut quiet) = (0u32, 0u32);
        let mut due_ns = self.core.now();
        loop {
            self.state.metrics.beats(self.core.now(), due_ns);
            due_ns = self.core.now().saturating_add(TICK_NS);
            let events = self.core.runtime.events();
            self.core.timers.sleep_until_about(due_ns).await;
            quiet = if self.core.runtime.events() - events <= OF_A_TICK { quiet + 1 } else { 0 };
            self.core.deadlines.sweep();
            self.hand_over_logs();
            count = count.wrapping_add(1);
            if count.is_multiple_of(SECOND) {
                self.look_after();
            }
            if quiet >= QUIET_TICKS {
                self.rest().await;
                (quiet, due_ns) = (0, self.core.now());
            }
        }
    }

    /// Sleeps until something comes or is due.
    async fn rest(self: &Rc<Self>) {
        let next_ns = self.next_due_ns();
        self.core.buffers.rest();
        // It need not be awaited: its end wakes the loop as anything does.
        let _due = next_ns.map(|at| self.core.timers.sleep_until_about(at));
        self.core.runtime.slept().await;
        // Before all others: what they set counts from now, and a request waits for nothing that grows with the targets.
        self.core.deadlines.sweep();
        self.core.renew_date();
        if next_ns.is_some_and(|at| at <= self.core.now().saturating_add(TICK_NS)) {
            self.look_after();
        }
    }

    /// Closes connections that were idle for too long and drops what no client needs; makes the date anew.
    fn look_after(self: &Rc<Self>) {
        self.core.renew_date();
        self.core.buffers.trim();
        self.close_idle_of_clients();
        self.forget_retired();
        self.look_after_targets();
    }

    /// Does the part that grows with the targets, in slices, unless the last time is not over.
    fn look_after_targets(self: &Rc<Self>) {
        if Rc::strong_count(&self.looking_after) > 1 {
            return;
        }
        let (own, under_way) = (self.clone(), self.looking_after.clone());
        self.core.runtime.spawn(async move {
            own.targets.sweep(&own.core).await;
            own.targets.forget(&own.core).await;
            own.forget_counters().await;
            drop(under_way);
        });
    }

    /// When something is due that no task has a timer of its own for, ns.
    fn next_due_ns(&self) -> Option<u64> {
        let now_ns = self.core.now();
        let waits = [
            self.core.deadlines.next_due_ns(),
            self.idle_due_ns()
                .map(|at| at.clamp(now_ns, now_ns.saturating_add(LOOK_NS)).saturating_add(TICK_NS)),
            self.has_retired().then(|| now_ns.saturating_add(u64::from(SECOND) * TICK_NS)),
        ];
        waits.into_iter().flatten().min().map(|at| at.max(now_ns))
    }
}
