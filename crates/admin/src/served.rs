//! What the admin interface needs of whoever serves.

use serde::Serialize;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use weir_serve::{Readiness, View};
use weir_topology::plan::Point;

/// A served topology. Its answers may take a second, those to [`Served::reload`] longer; nobody is held up by that.
pub trait Served: Send + Sync + 'static {
    /// How it is now; `by_loop`: with what each loop has by itself.
    fn view(&self, by_loop: bool) -> View;
    /// What is served, as the file has it.
    fn point(&self) -> Arc<Point>;
    /// Threads that stand still, in words.
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
    fn reload(&self) -> Result<String, Refused>;
    /// Ends it, as SIGTERM does.
    fn drain(&self);
    /// The operator's word on a target, or on all of a site.
    ///
    /// # Errors
    /// Why it cannot be so.
    fn set_target(&self, pool: &str, target: &str, set: SetTarget) -> Result<(), Refused>;
    /// Gives its place to the process at the other end, which asks for it: with the sockets of the topology `own`, each with its
    /// address as written. Whether that accepts now; it may take minutes.
    fn hand_over(&self, stream: UnixStream, own: Vec<(String, OwnedFd)>) -> bool;
}

/// In which format metrics are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposition {
    /// `text/plain; version=0.0.4`.
    Prometheus,
    /// `application/openmetrics-text; version=1.0.0`.
    OpenMetrics,
}

impl Exposition {
    /// The media type by which it is sent.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Exposition::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Why something was not done: what is wrong, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// What is served since when.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Config {
    /// The name of the topology file.
    pub file: String,
    /// Counted by reloads.
    pub generation: u32,
    /// The plan's hash, hexadecimal.
    pub plan: String,
    /// Since when it is served, ms since 1970.
    pub at_unix_ms: u64,
    /// What became of the last reload; `None`: there was none.
    #[serde(serialize_with = "reloaded")]
    pub last_reload: Option<Result<String, String>>,
    /// What a reload cannot change, a sentence each.
    pub waits_for_hand_over: Vec<String>,
}

/// `{"applied": ...}` or `{"failed": ...}`.
fn reloaded<S: serde::Serializer>(result: &Option<Result<String, String>>, to: S) -> Result<S::Ok, S::Error> {
    let named = |result: &Result<String, String>| match result {
        Ok(what) => serde_json::json!({"applied": what}),
        Err(why) => serde_json::json!({"failed": why}),
    };
    result.as_ref().map(named).serialize(to)
}

/// The operator's word on a target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SetTarget {
    /// `None`: as it is.
    pub state: Option<SetState>,
    /// `None`: as it is.
    pub weight: Option<f64>,
    /// For how long, ns; `None`: until it is taken back.
    pub for_ns: Option<u64>,
}

/// What the operator wants of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetState {
    /// It is picked, whatever its checks say.
    Up,
    /// Nothing new, what is in flight goes on.
    Drain,
    /// It is out.
    Eject,
    /// As the file has it: what was set by hand is taken back.
    File,
}

impl SetState {
    /// The words that there are.
    pub const WORDS: [(&'static str, SetState); 4] = [
        ("up", SetState::Up),
        ("drain", SetState::Drain),
        ("eject", SetState::Eject),
        ("file", SetState::File),
    ];

    /// By its word.
    pub fn parse(word: &str) -> Option<SetState> {
        SetState::WORDS.iter().find(|(known, _)| *known == word).map(|(_, state)| *state)
    }
}
