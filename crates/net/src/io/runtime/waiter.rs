//! A task that waits for another task of its thread.

use crate::io::runtime::Runtime;
use crate::io::runtime::source::Waits;
use std::cell::Cell;
use std::fmt;
use std::task::Context;

/// The task that waits for something, if one does. Waking it is as cheap as by a socket: it does not go through the list of
/// other threads' wakers.
#[derive(Default)]
pub struct Waiter(Cell<Waits>);

impl Waiter {
    /// The task that is polled waits from now on, in place of any other.
    pub fn set(&self, rt: &Runtime, cx: &Context<'_>) {
        self.0.set(rt.waits(cx));
    }

    /// Wakes the task, once.
    pub fn wake(&self, rt: &Runtime) {
        rt.wake_all(&self.0);
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiter")
    }
}
