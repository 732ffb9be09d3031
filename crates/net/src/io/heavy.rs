//! Long pieces of work: a thread does one of them between two checks of its sockets.

use crate::io::runtime::Runtime;
use std::cell::Cell;
use std::task::{Context, Poll};

/// The turns of long work.
#[derive(Default)]
pub struct Heavy {
    /// The check after which the last piece was done; 0: none was.
    done_in: Cell<u64>,
}

impl Heavy {
    /// Ready when a piece may be done; otherwise wakes the task after the next check of the sockets.
    pub fn poll_turn(&self, rt: &Runtime, cx: &Context<'_>) -> Poll<()> {
        if self.done_in.replace(rt.looks()) == rt.looks() {
            rt.later(cx);
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}
