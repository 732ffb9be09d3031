//! A line for each answer that is news.

use serde_json::json;
use std::io::Write;
use weir_policy::gate::Place;

/// The form of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Words.
    #[default]
    Text,
    /// An object in a line.
    Json,
    /// No log.
    None,
}

/// What a line says.
pub(crate) struct Line<'a> {
    pub peer: &'a str,
    pub place: &'a Place,
    pub enabled_percent: f32,
    pub is_healthy: bool,
}

impl Line<'_> {
    /// `gate: peer 172.26.51.36 hash 234237154 enabled 0.0 % denied`. The percent is the shortest text that is this number.
    pub fn text(&self) -> String {
        let Line { peer, place, enabled_percent, is_healthy } = self;
        let verdict = if *is_healthy { "allowed" } else { "denied" };
        // A header's value may be anything.
        let peer = peer.escape_debug();
        format!("gate: peer {peer} hash {} enabled {enabled_percent:?} % {verdict}", place.hash)
    }

    fn json(&self, why: Option<&str>) -> String {
        json!({"event": "gate", "peer": self.peer, "hash": self.place.hash, "enabled_percent": self.enabled_percent,
               "healthy": self.is_healthy, "why": why})
        .to_string()
    }

    /// Writes it to standard error, which may be closed.
    pub fn tell(&self, format: LogFormat, why: Option<&str>) {
        let line = match format {
            LogFormat::Text => self.text(),
            LogFormat::Json => self.json(why),
            LogFormat::None => return,
        };
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Says what happened to the gate itself.
pub(crate) fn tell(format: LogFormat, what: &str) {
    let line = match format {
        LogFormat::Text => format!("gate: {what}"),
        LogFormat::Json => json!({"event": "gate", "message": what}).to_string(),
        LogFormat::None => return,
    };
    let _ = writeln!(std::io::stderr(), "{line}");
}
