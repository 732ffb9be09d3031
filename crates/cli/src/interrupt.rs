//! Ctrl-C, and SIGTERM in a run. While there is nothing to hand over Ctrl-C ends the process at once; in a run the first
//! signal asks it to stop after what is finished, and the second ends the process. The exit code is 130.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// From now on an interrupt ends the process, for as long as the flag is true.
pub(crate) fn at_once() -> Arc<AtomicBool> {
    let ends = Arc::new(AtomicBool::new(true));
    #[cfg(unix)]
    {
        use signal_hook::{consts::SIGINT, flag};
        // Where the system refuses a handler, the interrupt keeps its usual meaning; so below.
        let _ = flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&ends));
    }
    ends
}

/// A flag that becomes true at the first interrupt from now on, which does not end the process `at_once` any more. SIGTERM,
/// by which CI ends a job, is an interrupt as well.
pub(crate) fn stop_flag(at_once: &AtomicBool) -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    {
        use signal_hook::{
            consts::{SIGINT, SIGTERM},
            flag,
        };
        for signal in [SIGINT, SIGTERM] {
            // In this order: a signal that finds the flag already set ends the process, then the flag is set.
            let _ = flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop));
            let _ = flag::register(signal, Arc::clone(&stop));
        }
    }
    at_once.store(false, SeqCst);
    stop
}
