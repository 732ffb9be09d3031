//! What the admin interface needs of whoever serves.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use weir_serve::{Config, Exposition, Readiness, SetTarget, TargetState, View};

/// A served topology. Its answers may take a second, those to [`Served::reload`] longer; nobody is held up by that.
pub trait Served: Send + Sync + 'static {
    /// How it is now; `by_loop`: with what each loop has by itself.
    fn view(&self, by_loop: bool) -> View;
    /// The name of the topology file.
    fn file(&self) -> String;
    /// Threads that stand still, in words; said at once.
    fn stalled(&self) -> Vec<String>;
    /// Whether requests can be sent here.
    fn readiness(&self) -> Readiness;
    /// The metrics.
    fn scrape(&self, format: Exposition) -> Vec<u8>;
    /// What is served since when, and what became of the last reload.
    fn config(&self) -> Config;
    /// Reads the file again, and serves it if nothing is wrong with it; what has changed, in a sentence.
    ///
    /// # Errors
    /// What is wrong.
    fn reload(&self) -> Result<String, String>;
    /// Ends it, as SIGTERM does.
    fn drain(&self);
    /// The operator's word on a target, or on all of a site.
    ///
    /// # Errors
    /// Why it cannot be so.
    fn set_target(&self, pool: &str, target: &str, set: SetTarget) -> Result<(), String>;
    /// Gives its place to the process at the other end, which asks for it: with the sockets of the topology `own`, each with its
    /// address as written. Whether that accepts now; it may take minutes.
    fn hand_over(&self, stream: UnixStream, own: Vec<(String, OwnedFd)>) -> bool;
}

/// The states of a target that can be set by hand, by their words.
pub(crate) const STATES: [(&str, TargetState); 4] = [
    ("up", TargetState::Up),
    ("drain", TargetState::Drain),
    ("eject", TargetState::Eject),
    ("file", TargetState::File),
];
