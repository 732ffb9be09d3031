//! The state of the gate as JSON (`GET /gate/status`).

use crate::state::State;
use serde::Serialize;

#[derive(Serialize)]
struct Status<'a> {
    schema: &'static str,
    id: &'a str,
    #[serde(rename = "for")]
    url: &'a str,
    ready: bool,
    why: Option<&'a str>,
    since_s: Option<f64>,
    enabled_percent: f32,
    held_s: Option<f64>,
    requests: Option<u64>,
    askers: Vec<AskerStatus<'a>>,
}

#[derive(Serialize)]
struct AskerStatus<'a> {
    peer: &'a str,
    hash: i64,
    share: f64,
    healthy: bool,
    asked: u64,
    last_s: f64,
    requests_since: Option<u64>,
}

/// The JSON.
pub(crate) fn page(state: &State) -> String {
    let now_ns = state.now_ns();
    let knows_requests = state.requests().is_some();
    let askers = state.askers.iter().map(|(peer, known)| AskerStatus {
        peer,
        hash: known.place.hash,
        share: known.place.share,
        healthy: known.last.is_some_and(weir_policy::gate::Answer::is_healthy),
        asked: known.asked,
        last_s: seconds(now_ns.saturating_sub(known.last_ns)),
        requests_since: state.gate.entered_since(known.number).filter(|_| knows_requests),
    });
    let status = Status {
        schema: "weir.gate/1",
        id: &state.id,
        url: &state.url,
        ready: state.unready.is_none(),
        why: state.unready.as_deref().or_else(|| state.no_judgement()),
        since_s: state.gate.elapsed_ns(now_ns).map(seconds),
        enabled_percent: state.gate.enabled_percent(now_ns),
        held_s: state.held_ns().map(seconds),
        requests: state.requests(),
        askers: askers.collect(),
    };
    // Numbers and texts alone: it cannot fail.
    serde_json::to_string(&status).unwrap_or_default()
}

/// In thousandths.
fn seconds(ns: u64) -> f64 {
    (ns / 1_000_000) as f64 / 1e3
}
