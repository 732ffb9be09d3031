//! What is surely a mistake though it can be run: nodes nobody reaches, weights nobody reads, queues that overflow.

use crate::context::State;
use crate::diagnostic::{At, Diagnostic, Severity};
use crate::offered;
use crate::plan::{Point, Spec, To};

fn warning(message: String) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
}

fn placed(mut finding: Diagnostic, at: Option<&At>) -> Diagnostic {
    if let Some(at) = at {
        finding = finding.at(at);
    }
    finding
}

/// Adds a warning for each site whose nodes no scenario reaches, and for each weight that is no target of a balancer.
/// A file without scenarios is being written: then nothing is said.
pub(crate) fn unreached(state: &mut State) {
    if state.scenarios.is_empty() {
        return;
    }
    let nodes = state.graph.nodes();
    let mut reached = vec![false; nodes.len()];
    let mut misplaced = vec![false; nodes.len()];
    let mut listed = vec![false; state.graph.lists().len()];
    for scenario in &state.scenarios {
        if let Some(r) = reached.get_mut(scenario.root as usize) {
            *r = true;
        }
        if matches!(state.graph.spec(scenario.root), Some(Spec::Weight { .. })) {
            misplaced[scenario.root as usize] = true;
        }
    }
    // A node comes after all that it leads to: going backwards, a node's own state is final when it is looked at.
    for (id, node) in nodes.iter().enumerate().rev() {
        if !reached[id] {
            continue;
        }
        if let Some(Spec::Server { model: Some(model), .. }) = state.graph.spec(index(id)) {
            reached[*model as usize] = true;
        }
        match node.to {
            To::None => {}
            To::Node(next) => {
                reached[next as usize] = true;
                misplaced[next as usize] |= matches!(state.graph.spec(next), Some(Spec::Weight { .. }));
            }
            To::List(list) => {
                if !std::mem::replace(&mut listed[list as usize], true) {
                    for target in &state.graph.lists()[list as usize] {
                        reached[*target as usize] = true;
                    }
                }
            }
        }
    }
    let sites = nodes.iter().map(|n| n.site as usize).max().map_or(0, |m| m + 1);
    let mut of_site = vec![(0usize, 0usize, false); sites];
    for (id, node) in nodes.iter().enumerate() {
        let (all, idle, wrong) = &mut of_site[node.site as usize];
        *all += 1;
        *idle += usize::from(!reached[id]);
        *wrong |= misplaced[id];
    }
    let mut found = Vec::new();
    for (site, (all, idle, wrong)) in of_site.into_iter().enumerate() {
        let (kind, at) = state.graph.describe(index(site));
        if wrong {
            let finding =
                warning("this `weight` has no effect: it is no direct target of a balancer".to_owned());
            found.push(placed(finding.help("put it right inside the list of targets"), at));
        }
        if idle > 0 && !kind.is_empty() {
            let message = match (all, idle) {
                (1, _) => format!("no scenario reaches this `{kind}`"),
                (all, idle) if all == idle => format!("no scenario reaches these {all} nodes (`{kind}`)"),
                (all, idle) => format!("no scenario reaches {idle} of these {all} nodes (`{kind}`)"),
            };
            found.push(placed(warning(message), at));
        }
    }
    found.into_iter().for_each(|f| state.findings.add(f));
}

fn index(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A warning for each queue that is offered more than it can take.
pub(crate) fn overloaded(point: &Point) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for (i, scenario) in point.scenarios.iter().enumerate() {
        let loads = offered::offered_load(point, i);
        // Where balancers look at load, one queue's excess goes to the others; only if all of them have too much it stays.
        let relieved = loads.iter().any(|l| l.steered && l.utilisation <= 1.0);
        for load in loads {
            if load.utilisation > 1.0 && !(load.steered && relieved) {
                let Some(site) = point.sites.get(load.site as usize) else { continue };
                let (queues, their) = match load.count {
                    1 => ("the queue".to_owned(), "its"),
                    n => (format!("the {n} queues of"), "their"),
                };
                let finding = warning(format!(
                    "scenario \"{}\": the offered load of {queues} {} is {:.2} of {their} capacity: {}",
                    scenario.name,
                    site.label,
                    load.utilisation,
                    if load.bounded {
                        "what finds them full is turned away"
                    } else {
                        "the run will not settle"
                    }
                ));
                found.push(at_span(finding, &site.span));
            }
        }
    }
    found
}

/// The finding at `file:line:column`.
fn at_span(finding: Diagnostic, span: &str) -> Diagnostic {
    let mut parts = span.rsplitn(3, ':');
    let column = parts.next().and_then(|c| c.parse().ok());
    let line = parts.next().and_then(|l| l.parse().ok());
    match (column, line, parts.next()) {
        (Some(column), Some(line), Some(file)) => {
            Diagnostic { file: Some(file.to_owned()), line, column, end_column: column, ..finding }
        }
        _ => finding,
    }
}
