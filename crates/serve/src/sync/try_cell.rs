//! State of the process that is looked at for a moment: a token bucket, a budget, a time-line.
//!
//! The policies' own objects, so that both worlds decide alike, behind a lock that is only ever *tried*: whoever holds it
//! does a few arithmetic operations and never waits for anything, and whoever finds it taken goes back to his event loop,
//! which serves others, and comes again in the next turn. So no request waits for a lock, and no loop stands still. (Atomics
//! would need a second implementation of each policy, for a collision that costs a turn of the loop and is rare.)

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

    /// Looks, if nobody else does just now. `look` must not wait, nor look at another one.
    pub fn try_with<R>(&self, look: impl FnOnce(&mut T) -> R) -> Option<R> {
        match self.0.try_lock() {
            Ok(mut state) => Some(look(&mut state)),
            // Numbers are whole after every step, so that a panic elsewhere leaves them as good as any.
            Err(TryLockError::Poisoned(broken)) => Some(look(&mut broken.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Looks; if another loop does just now, the task is woken at once to try again.
    pub fn poll_with<R>(&self, cx: &mut Context<'_>, look: impl FnOnce(&mut T) -> R) -> Poll<R> {
        match self.try_with(look) {
            Some(result) => Poll::Ready(result),
            None => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// Looks as soon as nobody else does.
    pub async fn with<R>(&self, mut look: impl FnMut(&mut T) -> R) -> R {
        poll_fn(|cx| self.poll_with(cx, &mut look)).await
    }
}
