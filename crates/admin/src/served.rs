//! The view of a served topology that the admin interface needs.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use weir_serve::{CannotSet, Config, Exposition, Readiness, ReloadError, SetTarget, TargetState, View};

/// A served topology. Its answers may take a second, those to [`Served::reload`] longer; no client of the proxy waits
/// for that.
pub trait Service: Send + Sync + 'static {
    /// The current view; `by_loop`: with the state of each loop.
    fn view(&self, by_loop: bool) -> View;
    /// The name of the topology file.
    fn file(&self) -> String;
    /// Threads that are stuck, in words; answered at once.
    fn stalled(&self) -> Vec<String>;
    /// Whether requests can be sent here.
    fn readiness(&self) -> Readiness;
    /// The metrics.
    fn scrape(&self, format: Exposition) -> Vec<u8>;
    /// The configuration that is served, and the result of the last reload.
    fn config(&self) -> Config;
    /// Reloads the file; returns the changes, in a sentence.
    ///
    /// # Errors
    /// Why what is served stays.
    fn reload(&self) -> Result<String, ReloadError>;
    /// Starts the program anew, which takes over from this process; returns what happened, in a sentence. It may take
    /// minutes.
    ///
    /// # Errors
    /// Why this process goes on, in a sentence.
    fn upgrade(&self) -> Result<String, String>;
    /// Ends it, as SIGTERM does.
    fn drain(&self);
    /// Sets a target, or all of a site.
    ///
    /// # Errors
    /// Why it cannot be set.
    fn set_target(&self, pool: &str, target: &str, set: SetTarget) -> Result<(), CannotSet>;
    /// Hands over to the process at the other end, which requests it: with the sockets `own` of the interface, each
    /// with its address as written. Returns whether that accepts now; it may take minutes.
    fn hand_over(&self, stream: UnixStream, own: Vec<(String, OwnedFd)>) -> bool;
}

/// The states of a target that can be set by hand, by their words.
pub(crate) const STATES: [(&str, TargetState); 4] = [
    ("up", TargetState::Up),
    ("drain", TargetState::Drain),
    ("eject", TargetState::Eject),
    ("file", TargetState::File),
];
