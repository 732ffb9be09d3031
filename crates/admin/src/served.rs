//! What the admin interface needs of whoever serves.

use weir_serve::{Config, Readiness, SetTarget, TargetState, View};

/// A served topology. Its answers may take a second, those to [`Served::reload`] longer; nobody is held up by that.
pub trait Served: Send + Sync + 'static {
    /// How it is now; `by_loop`: with what each loop has by itself.
    fn view(&self, by_loop: bool) -> View;
    /// The name of the topology file.
    fn file(&self) -> String;
    /// Threads that stand still, in words.
    fn stalled(&self) -> Vec<String>;
    /// Whether requests can be sent here.
    fn readiness(&self) -> Readiness;
    /// The metrics.
    ///
    /// # Errors
    /// Why there are none.
    fn scrape(&self, format: Exposition) -> Result<Vec<u8>, Refused>;
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

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// This weir cannot do it yet.
    NotBuilt,
    /// What is wrong, with the remedy.
    Wrong(String),
}

/// The states of a target that can be set by hand, by their words.
pub(crate) const STATES: [(&str, TargetState); 4] = [
    ("up", TargetState::Up),
    ("drain", TargetState::Drain),
    ("eject", TargetState::Eject),
    ("file", TargetState::File),
];
