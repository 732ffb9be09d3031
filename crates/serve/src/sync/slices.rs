//! Work that grows with the targets, in slices: the sockets are polled after every few of them, so that a request waits for
//! one slice and not for all (`docs/spec/operating.md#costs`).

use std::cell::Cell;
use weir_net::io::runtime::Runtime;

/// Targets, nodes or counters that are visited before the sockets are polled again.
pub(crate) const AT_ONCE: usize = 256;

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
