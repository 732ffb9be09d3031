//! Ctrl-C: before a simulation runs it ends the process at once (130); while it runs the first asks it to stop after what is
//! finished, the second ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What becomes of an interrupt.
pub(crate) struct Interrupts {
    /// Whether the next one ends the process; set by each.
    ends: Arc<AtomicBool>,
}

impl Interrupts {
    /// From now on an interrupt ends the process.
    pub(crate) fn end_the_process() -> Interrupts {
        let ends = Arc::new(AtomicBool::new(true));
        #[cfg(unix)]
        {
            use signal_hook::consts::SIGINT;
            use signal_hook::flag;
            // In this order: a signal that finds the flag set ends the process, then the flag is set. Where the system
            // refuses a handler, the interrupt keeps its usual meaning.
            let _ = flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&ends));
            let _ = flag::register(SIGINT, Arc::clone(&ends));
        }
        Interrupts { ends }
    }

    /// From now on the first one sets this flag, and the second ends the process.
    pub(crate) fn stop_first(self) -> Arc<AtomicBool> {
        self.ends.store(false, Ordering::Relaxed);
        self.ends
    }
}
