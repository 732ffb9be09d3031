//! A count with a limit, over all threads: connections to a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// The count.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU32);

/// One unit of the count, until it is dropped.
pub(crate) struct CountGuard(Arc<Counter>);

impl Counter {
    /// Adds one, if there are fewer than this.
    pub fn take(self: &Arc<Self>, most: u32) -> Option<CountGuard> {
        let more = |n: u32| (n < most).then_some(n + 1);
        self.0.fetch_update(SeqCst, SeqCst, more).ok().map(|_| CountGuard(self.clone()))
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}
