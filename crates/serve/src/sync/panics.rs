//! A panic ends the request that it happened in, and nothing else: the request fails, and its loop goes on.
//!
//! A panic is a defect of weir. What it says is kept for one line in the error log, in place of the several lines that
//! Rust prints. What requests share is behind cells, which a panic leaves usable, as an error does.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::pin::Pin;
use std::sync::{Mutex, Once, PoisonError};
use std::task::Poll;

/// What the last panic said, with its place.
static LAST: Mutex<String> = Mutex::new(String::new());

thread_local! {
    /// Whether a panic of this thread would be caught here.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// A panic that was caught.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panicked;

/// What the last panic said, in one line.
pub(crate) fn last() -> String {
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// From now on panics that are caught here print nothing.
pub(crate) fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = take_hook();
        set_hook(Box::new(move |panic| if IS_CAUGHT.get() { keep(panic) } else { others(panic) }));
    });
}

fn keep(panic: &PanicHookInfo<'_>) {
    let said = panic.payload_as_str().unwrap_or("no reason").replace(['\n', '\r'], " ");
    let place = panic.location().map(|at| format!("{}:{}: ", at.file(), at.line())).unwrap_or_default();
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = format!("{place}{said}");
}

/// Runs this to its end, or to its panic.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    let outer = IS_CAUGHT.replace(true);
    let ended = catch_unwind(AssertUnwindSafe(run));
    IS_CAUGHT.set(outer);
    ended.map_err(|_| Panicked)
}

/// Runs a future to its end, or to its panic, after which it is not polled again.
pub(crate) async fn run_caught<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, Panicked> {
    poll_fn(|cx| match caught(|| future.as_mut().poll(cx)) {
        Ok(polled) => polled.map(Ok),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_kept_in_a_line() {
        keep_quiet();
        assert_eq!(caught(|| 3).ok(), Some(3));
        assert!(caught(|| panic!("two\nlines of {}", 1)).map(|()| 0).is_err());
        assert!(last().ends_with("two lines of 1") && last().contains("panics.rs:"), "{}", last());
        assert!(!IS_CAUGHT.get());
    }
}
