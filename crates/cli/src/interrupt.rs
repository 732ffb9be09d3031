//! Ctrl-C: the first asks the run to stop after what is finished, the second ends the process at once (130).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that becomes true at the first interrupt from now on.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    {
        use signal_hook::consts::SIGINT;
        use signal_hook::flag;
        // In this order: a signal that finds the flag already set ends the process, then the flag is set. Where the
        // system refuses a handler, the interrupt keeps its usual meaning.
        let _ = flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&stop));
        let _ = flag::register(SIGINT, Arc::clone(&stop));
    }
    stop
}
