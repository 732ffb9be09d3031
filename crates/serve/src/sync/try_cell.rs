//! Process-wide state that is used for a moment: a token bucket, a budget, a timeline.
//!
//! The policies' own objects, so that both worlds decide alike, behind a lock that is only ever *tried*: its holder
//! does a few arithmetic operations and never waits, and a task that finds it held returns to its event loop, which
//! serves others, and tries again in the next turn. So no request waits for a lock, and no loop stops. (Atomics would
//! need a second implementation of each policy, for a collision that costs a turn of the loop and is rare.)

use std::future::poll_fn;
use std::sync::{Mutex, TryLockError};
use std::task::{Context, Poll};

/// The state.
#[derive(Debug, Default)]
pub(crate) struct TryCell<T>(Mutex<T>);

impl<T> TryCell<T> {
    /// With this state.
    pub fn new(state: T) -> TryCell<T> {
        TryCell(Mutex::new(state))
    }

    /// Calls `look`, if the state is free. `look` must not wait, nor use another cell.
    pub fn try_with<R>(&self, look: impl FnOnce(&mut T) -> R) -> Option<R> {
        match self.0.try_lock() {
            Ok(mut state) => Some(look(&mut state)),
            // Numbers are valid after every step, so a panic elsewhere leaves them usable.
            Err(TryLockError::Poisoned(broken)) => Some(look(&mut broken.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Calls `look`; if another loop holds the state, the task is woken at once to try again.
    pub fn poll_with<R>(&self, cx: &mut Context<'_>, look: impl FnOnce(&mut T) -> R) -> Poll<R> {
        match self.try_with(look) {
            Some(result) => Poll::Ready(result),
            None => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// Calls `look` as soon as the state is free.
    pub async fn with<R>(&self, mut look: impl FnMut(&mut T) -> R) -> R {
        poll_fn(|cx| self.poll_with(cx, &mut look)).await
    }
}
