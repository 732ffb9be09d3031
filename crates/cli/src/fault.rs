//! A panic is a fault of weir: it is caught at the top and becomes a sentence and exit code 4.

use crate::failure::Failure;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Mutex;

/// The message and location of the first panic.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

/// Runs `work`; a panic in it, on this thread or on one it waits for, becomes [`Failure::Fault`].
pub(crate) fn caught(work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    if std::env::var_os("RUST_BACKTRACE").is_none() {
        panic::set_hook(Box::new(|info| {
            let said = info.payload_as_str().unwrap_or("no reason given");
            let place = info.location().map(|l| format!(" ({}:{})", l.file(), l.line())).unwrap_or_default();
            if let Ok(mut first) = FIRST.lock() {
                first.get_or_insert_with(|| format!("{said}{place}"));
            }
        }));
    }
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let said = FIRST.lock().ok().and_then(|mut first| first.take());
        Err(Failure::Fault(said.unwrap_or_else(|| "a panic".into())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_on_any_thread_becomes_a_sentence_with_its_place() {
        let before = panic::take_hook();
        let outcome = caught(|| {
            std::thread::scope(|s| s.spawn(|| panic!("a count went below {}", 0)).join())
                .unwrap_or_else(|payload| panic::resume_unwind(payload));
            Ok(())
        });
        panic::set_hook(before);
        let Err(Failure::Fault(said)) = outcome else { panic!("not a fault") };
        // With RUST_BACKTRACE the usual report stays in place, and prints it on standard error.
        assert!(said.starts_with("a count went below 0 (") || said == "a panic", "{said}");
    }
}
