//! Work that grows with the targets, in slices: the sockets are polled after every few of them, so that a request waits for
//! one slice and not for all (`docs/spec/operating.md#costs`).

use std::cell::Cell;
use weir_net::io::Core;
use weir_net::io::runtime::Runtime;

/// Steps before the sockets are polled again. A step is a target, a node or a counter, or some that are looked at together and take
/// no longer.
pub(crate) const AT_ONCE: usize = 256;

/// About the length of a slice whose steps differ much, ns: a look at the sockets takes a thirtieth of it.
const SLICE_NS: u64 = 30_000;

/// Work after which a pause is due, ns: pauses cost system calls.
const DUE_NS: u64 = 1_000_000;

/// The longest pause, ns. A slice during which the system ran other threads looks longer than it was.
const LONGEST_NS: u64 = 2_000_000;

/// Pauses of work that no request waits for, such as the graph of a reload: it takes half of the time that its thread has beside
/// requests. A thread that never sleeps is one of several that want a core, and waits up to 4 ms for the others each time that
/// a request needs it.
pub(crate) struct Pauses<'a> {
    core: &'a Core,
    /// When the present slice began.
    begun_ns: Cell<u64>,
    /// The length of the slices before it, since the last pause.
    worked_ns: Cell<u64>,
}

impl Pauses<'_> {
    /// A first slice begins.
    pub fn new(core: &Core) -> Pauses<'_> {
        Pauses { core, begun_ns: Cell::new(core.now()), worked_ns: Cell::default() }
    }

    /// Whether the slice is as long as one may be.
    pub fn is_due(&self) -> bool {
        self.core.now() >= self.begun_ns.get() + SLICE_NS
    }

    /// Ends a slice: waits for the next turn, or for as long as the slices since the last pause took.
    pub async fn pause(&self) {
        let now_ns = self.core.now();
        let worked_ns = self.worked_ns.get() + now_ns.saturating_sub(self.begun_ns.get());
        match find_pause_ns(worked_ns) {
            None => {
                self.worked_ns.set(worked_ns);
                self.core.runtime.next_turn().await;
            }
            Some(pause_ns) => {
                self.worked_ns.set(0);
                self.core.timers.sleep_until_about(now_ns + pause_ns).await;
            }
        }
        self.begin_slice();
    }

    /// Begins another slice, after a wait for something else.
    pub fn begin_slice(&self) {
        self.begun_ns.set(self.core.now());
    }
}

/// How long the pause after this much work is, ns; `None`: none is due.
fn find_pause_ns(worked_ns: u64) -> Option<u64> {
    (worked_ns >= DUE_NS).then(|| worked_ns.min(LONGEST_NS))
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
    use weir_net::io::clock::Clock;
    use weir_stats::Key;

    #[test]
    fn a_pause_is_as_long_as_the_work_before_it_but_has_a_limit() {
        assert_eq!(find_pause_ns(DUE_NS - 1), None);
        assert_eq!(find_pause_ns(DUE_NS), Some(DUE_NS));
        assert_eq!(find_pause_ns(5 * LONGEST_NS), Some(LONGEST_NS));
    }

    #[test]
    fn work_pauses_once_enough_was_done() {
        let runtime = Runtime::new().expect("a runtime");
        let core = Core::new(runtime.clone(), Clock::start(), Key::new(1), TCP).expect("timers");
        let works = async {
            runtime.spawn(core.timers.clone().run(runtime.clone()));
            let pauses = Pauses::new(&core);
            pauses.worked_ns.set(DUE_NS);
            let before = core.now();
            pauses.pause().await;
            assert!(core.now() >= before + DUE_NS && pauses.worked_ns.get() == 0);
        };
        runtime.clone().block_on(works).expect("it polls");
    }
}
