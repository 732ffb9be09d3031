//! Warnings about retries on a status that no node answers with in simulation, or without the statuses that listeners
//! answer with.

use super::{Draft, Findings, index};
use crate::ways::down;
use crate::{Edge, NodeId, Scenario, Spec};
use std::collections::BTreeSet;
use weir_policy::Kind;

/// The status of an answer that a `flaky` node makes a `status_5xx`.
const FLAKY: u16 = 500;

/// The statuses that a listener behind another answers with when a request fails behind it.
const HOP: [u16; 6] = [400, 404, 429, 502, 503, 504];

/// Retries that a scenario reaches, with status numbers in `on` that no node can answer with.
pub(super) fn unanswered(draft: &Draft<'_>, found: &mut Findings) {
    let point = draft.point;
    let waits = |spec: &Spec| match spec {
        Spec::Retry(retry) if retry.attempts > 1 => !retry.on_status.is_empty(),
        _ => false,
    };
    if draft.point.scenarios.is_empty() || !point.specs.iter().any(waits) {
        return;
    }
    let mut answers: BTreeSet<u16> = point.specs.iter().filter_map(answer).collect();
    if is_layered(draft) {
        answers.extend(HOP);
    }
    let roots: BTreeSet<u32> = draft.point.scenarios.iter().map(|s: &Scenario| s.root).collect();
    let start = (0..point.nodes.len()).map(|id| roots.contains(&index(id))).collect();
    let reached = down(point, start, |_, _, reached| reached, |a, b| a || b);
    for (id, node) in point.nodes.iter().enumerate().filter(|(id, _)| reached[*id]) {
        let Some(Spec::Retry(retry)) = point.spec(index(id)).filter(|s| waits(s)) else { continue };
        let never: Vec<String> =
            retry.on_status.iter().filter(|s| !answers.contains(s)).map(u16::to_string).collect();
        if never.is_empty() {
            continue;
        }
        found.warn(
            node.site,
            format!(
                "no node answers with {} in simulation, so this `retry` has no such answer to retry: a \
                    server answers 200, and a failure has a kind",
                never.join(" or ")
            ),
            "for a failure name its kind, as in `on=[\"status_5xx\", 503]`; a fixed answer is `respond(503)`",
        );
    }
}

/// Retries in front of listeners, where every failure is an answer, that retry no such answer. A hint: it may be
/// intended.
pub(super) fn unheard(draft: &Draft<'_>, found: &mut Findings) {
    let point = draft.point;
    if !point.specs.iter().any(|spec| matches!(spec, Spec::Listen(_))) {
        return;
    }
    // Whether all ways from a node come to a listener before anything else that may fail.
    let mut listens: Vec<bool> = Vec::with_capacity(point.nodes.len());
    let mut lists: Vec<Option<bool>> = vec![None; point.lists.len()];
    for (id, node) in point.nodes.iter().enumerate() {
        let of = |id: NodeId| listens.get(id as usize).copied().unwrap_or(false);
        let Some(spec) = point.spec(index(id)) else { continue };
        let behind = match node.to {
            Edge::None => false,
            Edge::Node(next) => of(next),
            Edge::List(list) => *lists[list as usize]
                .get_or_insert_with(|| point.lists[list as usize].iter().all(|id| of(*id))),
        };
        let retries = match spec {
            Spec::Retry(retry) => retry.attempts > 1 && !retry.on.contains(&Kind::Status5xx),
            _ => false,
        };
        if let (true, true, Spec::Retry(retry)) = (retries, behind, spec)
            && !retry.on_status.iter().any(|status| HOP.contains(status))
        {
            let on: Vec<String> = retry.on.iter().map(|kind| format!("\"{}\", ", kind.name())).collect();
            found.hint(
                node.site,
                "a failure behind a `listen` is an answer to the nodes in front of it (502, 503 or 504), \
                    and this `retry` retries none of those"
                    .to_owned(),
                format!("if it should, write `on=[{}502, 503, 504]`", on.concat()),
            );
        }
        let passes = matches!(
            spec,
            Spec::Lb(_) | Spec::Weight { .. } | Spec::Rewrite(_) | Spec::Buffered { .. } | Spec::Delay { .. }
        );
        listens.push(matches!(spec, Spec::Listen(_)) || behind && passes);
    }
}

/// Whether a listener is behind a node.
fn is_layered(draft: &Draft<'_>) -> bool {
    let point = draft.point;
    let start = vec![false; point.nodes.len()];
    let behind = down(point, start, |_, _, _| true, |a, b| a || b);
    let listens = |id: usize| matches!(point.spec(index(id)), Some(Spec::Listen(_)));
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
