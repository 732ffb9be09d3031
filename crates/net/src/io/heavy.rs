//! Pieces of work that take long: a thread does one of them between two looks at its sockets.

use crate::io::runtime::Runtime;
use std::cell::Cell;
use std::task::{Context, Poll};

/// Whose turn it is.
#[derive(Default)]
pub struct Heavy {
    /// The look after which the last piece was done; 0: none was.
    done_in: Cell<u64>,
}

impl Heavy {
    /// Whether a piece may be done now; else the task is woken after the next look at the sockets.
    pub fn poll_turn(&self, rt: &Runtime, cx: &Context<'_>) -> Poll<()> {
        if self.done_in.replace(rt.looks()) == rt.looks() {
            rt.later(cx);
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}
