//! Retries that wait for the status of an answer which nobody gives in simulation.

use super::ways::down;
use super::{Found, index};
use crate::context::State;
use crate::plan::{Scenario, Spec};
use std::collections::BTreeSet;
use weir_policy::Kind;

/// The status of an answer that a `flaky` node makes a `status_5xx`.
const FLAKY: u16 = 500;

/// What a listener behind another answers where something fails behind it.
const HOP: [u16; 6] = [400, 404, 429, 502, 503, 504];

/// Retries that a scenario reaches, with status numbers in `on` of which no node can answer any.
pub(super) fn unanswered(state: &State, found: &mut Found) {
    let graph = &state.graph;
    let waits = |spec: &Spec| match spec {
        Spec::Retry(retry) if retry.attempts > 1 => !retry.on_status.is_empty(),
        _ => false,
    };
    if state.scenarios.is_empty() || !graph.specs().iter().any(waits) {
        return;
    }
    let mut answers: BTreeSet<u16> = graph.specs().iter().filter_map(answer).collect();
    if is_layered(state) {
        answers.extend(HOP);
    }
    let roots: BTreeSet<u32> = state.scenarios.iter().map(|s: &Scenario| s.root).collect();
    let start = (0..graph.nodes().len()).map(|id| roots.contains(&index(id))).collect();
    let reached = down(graph, start, |_, _, reached| reached, |a, b| a || b);
    for (id, node) in graph.nodes().iter().enumerate().filter(|(id, _)| reached[*id]) {
        let Some(Spec::Retry(retry)) = graph.spec(index(id)).filter(|s| waits(s)) else { continue };
        let never: Vec<String> =
            retry.on_status.iter().filter(|s| !answers.contains(s)).map(u16::to_string).collect();
        if never.is_empty() {
            continue;
        }
        found.warn(
            node.site,
            format!(
                "nothing answers with {} in simulation, so this `retry` does not try again then: a server answers 200, and \
                 what fails has a kind",
                never.join(" or ")
            ),
            "for what fails name the kind, as in `on=[\"status_5xx\", 503]`; a fixed answer is `respond(503)`",
        );
    }
}

/// Whether some listener stands behind a node.
fn is_layered(state: &State) -> bool {
    let graph = &state.graph;
    let start = vec![false; graph.nodes().len()];
    let behind = down(graph, start, |_, _, _| true, |a, b| a || b);
    let listens = |id: usize| matches!(graph.spec(index(id)), Some(Spec::Listen(_)));
    behind.iter().enumerate().any(|(id, behind)| *behind && listens(id))
}

/// The status that a node answers with in simulation.
fn answer(spec: &Spec) -> Option<u16> {
    match spec {
        Spec::Respond { status, .. } | Spec::Redirect { status, .. } => Some(*status),
        Spec::Flaky { p, kind: Kind::Status5xx } if *p > 0.0 => Some(FLAKY),
        _ => None,
    }
}
