//! Control of a served topology, from any thread.

use super::scrape;
use super::spawn::Drain;
use crate::health::snapshot::Snapshot;
use crate::metrics::Exposition;
use crate::reload::overrides::{CannotSet, SetTarget};
use crate::reload::reloader::{Config, NewTopology, ReloadError, Reloader};
use crate::threads::generation::Generation;
use crate::threads::process::Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::UnboundedSender;

/// Control of a served topology, from any thread.
#[derive(Clone)]
pub struct Remote {
    pub(super) loops: Arc<[UnboundedSender<Drain>]>,
    pub(super) draining: Arc<AtomicBool>,
    pub(super) process: Arc<Process>,
    pub(super) reloader: Arc<Reloader>,
}

impl Remote {
    /// Drains: after the drain delay listeners close, and requests in progress have the drain timeout.
    pub fn drain(&self) {
        if !self.draining.swap(true, Ordering::Relaxed) {
            self.reloader.stop();
            for tell in self.loops.iter() {
                // A loop that has ended needs no message.
                let _ = tell.send(Drain);
            }
        }
    }

    /// Another process accepts in this one's place: it ends what is in progress here, accepts nothing more, does not
    /// wait for health checks of balancers in front, and leaves socket files to the other.
    pub(super) fn give_place(&self) {
        self.process.replaced.store(true, Ordering::Relaxed);
        self.process.files.forget();
        self.drain();
    }

    /// Whether it is draining.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Whether another process accepts in its place.
    pub fn is_replaced(&self) -> bool {
        self.process.replaced.load(Ordering::Relaxed)
    }

    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    /// The generation that is served.
    pub(crate) fn current(&self) -> (Arc<Generation>, u64) {
        self.reloader.current()
    }

    /// What reloads it, and changes members of fleets.
    pub(crate) fn reloader(&self) -> &Reloader {
        &self.reloader
    }

    /// The health of targets, for a successor.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.reloader.snapshot()
    }

    /// Writes to the error log.
    pub fn say(&self, words: &str) {
        self.process.errors.urgent(|| words.to_owned());
    }

    /// Removes files that must not be left behind, before the process ends at once.
    pub fn abandon(&self) {
        self.process.files.remove(u32::MAX);
    }

    /// Whether all event loops, and the thread that owns health, answer within a second each.
    pub fn all_answer(&self) -> bool {
        self.process.ask_all(|_| ()).iter().all(Option::is_some)
    }

    /// All current metrics in this format. It waits at most a second for the loops; for one that does not answer it
    /// uses the last counts.
    pub fn scrape(&self, format: Exposition) -> Vec<u8> {
        scrape::scrape(&self.reloader, self.is_ready(), format)
    }

    /// Reopens log files.
    pub fn reopen_logs(&self) {
        self.reloader.reopen_logs();
    }

    /// Requests a reload (`docs/spec/operating.md#reload`), which applies everything or nothing; the result goes to
    /// the error log.
    pub fn ask_reload(&self) {
        self.reloader.ask();
    }

    /// The same, and waits for the result: the changes in a sentence, or the error.
    pub fn reload(&self) -> Result<String, ReloadError> {
        self.reloader.reload()
    }

    /// Serves another topology from now on, instead of the file.
    pub fn serve_instead(&self, next: NewTopology) -> Result<String, ReloadError> {
        self.reloader.apply(next)
    }

    /// The configuration that is served, since when, and the result of the last reload.
    pub fn config(&self) -> Config {
        self.reloader.config()
    }

    /// Sets a target's state or weight by hand, until it is revoked (`docs/spec/operating.md#targets-by-hand`); with
    /// `for_ns` for that time.
    ///
    /// # Errors
    /// There is no such target: an error that lists the existing ones.
    pub fn set_target(&self, pool: &str, target: &str, by_hand: SetTarget) -> Result<(), CannotSet> {
        self.reloader.set_target(pool, target, by_hand)
    }
}
