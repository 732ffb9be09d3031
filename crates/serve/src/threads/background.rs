//! Threads that prepare what loops will serve: their work can wait.

use rustix::process::{getpriority_process, setpriority_process};

/// How much nicer they are than the process: where both want one core, a loop has three times their share and need not wait
/// for the end of their turn.
const NICER: i32 = 5;

/// Lets the process's other threads have a core first, from now on. Threads and children that this one starts do so too.
pub(crate) fn yield_to_loops() {
    // Linux keeps this by thread. A sandbox that forbids it costs a request some milliseconds beside a reload.
    if let Ok(niceness) = getpriority_process(None) {
        let _ = setpriority_process(None, niceness.saturating_add(NICER));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The others stay as they are.
    #[test]
    fn only_the_thread_that_asks_yields() {
        let before = getpriority_process(None).expect("it is readable");
        let other = std::thread::spawn(|| {
            yield_to_loops();
            getpriority_process(None).expect("it is readable")
        });
        let after = other.join().expect("it ends");
        assert!(after == (before + NICER).min(19) || after == before, "{before} and {after}");
        assert_eq!(getpriority_process(None), Ok(before));
    }
}
