//! A signal that any thread raises without waiting, and that one thread waits for. It stays raised until it is read, so
//! that none is lost; raised twice, it is read once.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Raised or not.
#[derive(Debug)]
pub(crate) struct Signal {
    raise: SyncSender<()>,
    /// Locked only by the thread that waits.
    raised: Mutex<Receiver<()>>,
}

impl Default for Signal {
    fn default() -> Signal {
        let (raise, raised) = sync_channel(1);
        Signal { raise, raised: Mutex::new(raised) }
    }
}

impl Signal {
    /// Wakes the thread that waits, or the next one that does.
    pub fn raise(&self) {
        // A full channel: it is raised already.
        let _ = self.raise.try_send(());
    }

    /// Waits until it is raised, at most for this time, and lowers it. Whether it was raised.
    pub fn wait(&self, most: Duration) -> bool {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(most).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_raised_until_it_is_read() {
        let signal = Signal::default();
        assert!(!signal.wait(Duration::ZERO));
        signal.raise();
        signal.raise();
        assert!(signal.wait(Duration::ZERO));
        assert!(!signal.wait(Duration::ZERO));
    }

    #[test]
    fn it_wakes_the_thread_that_waits() {
        let signal = Signal::default();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| signal.wait(Duration::from_secs(60)));
            signal.raise();
            assert!(waiter.join().expect("it waits"));
        });
    }
}
