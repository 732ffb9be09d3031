//! Processes that pause (`faulty(mode="pause")`): which nodes stop with one.
//!
//! A process reaches from the node that pauses it to where another begins: behind a balancer, a cable or a listener. What
//! is there works on, and its answers wait.

use crate::diagnostic::{Diagnostic, Location};
use crate::{Edge, Line, Mode, NodeId, Point, Spec};
use std::collections::BTreeSet;

/// By node, the node whose pauses stop it; a node that pauses is not inside of itself.
pub fn process_of(point: &Point) -> Vec<Option<NodeId>> {
    let mut of = vec![None; point.nodes.len()];
    each_inside(point, |outer, inner, _| {
        let of: &mut Option<NodeId> = &mut of[inner as usize];
        *of = of.or(Some(outer));
    });
    of
}

/// An error for each place of the file whose process has a node that another would stop, too: a node is inside of one.
pub fn overlaps(point: &Point, standing: &[Option<Location>]) -> Vec<Diagnostic> {
    let mut of: Vec<Option<NodeId>> = vec![None; point.nodes.len()];
    let mut sites: BTreeSet<usize> = BTreeSet::new();
    each_inside(point, |outer, inner, pauses| {
        let before = of[inner as usize].replace(outer);
        let one_line =
            |a: NodeId, b: NodeId| a == b || line(point, a).is_some_and(|l| Some(l) == line(point, b));
        let twice = before.is_some_and(|before| !one_line(before, outer));
        if twice || pauses && !one_line(outer, inner) {
            sites.insert(point.nodes[outer as usize].site as usize);
        }
    });
    let error = Diagnostic::error(
        "a node behind this is stopped by two pauses, which is not built yet: a node is inside of one process".to_owned(),
    )
    .help("leave one `mode=\"pause\"`, or put a `cable` between the two processes");
    let placed = |site: usize| match standing.get(site).and_then(Option::as_ref) {
        Some(at) => error.clone().with_location(at),
        None => error.clone(),
    };
    sites.into_iter().map(placed).collect()
}

/// The timeline that several nodes share.
fn line(point: &Point, id: NodeId) -> Option<&Line> {
    match point.spec(id) {
        Some(Spec::Faulty(fault)) if fault.line != Line::Own => Some(&fault.line),
        _ => None,
    }
}

/// Calls `take` with each node that pauses, each node that it leads to inside of its process, and whether that pauses too.
fn each_inside(point: &Point, mut take: impl FnMut(NodeId, NodeId, bool)) {
    let pauses = |spec: Option<&Spec>| matches!(spec, Some(Spec::Faulty(fault)) if fault.mode == Mode::Pause);
    if !point.specs.iter().any(|spec| pauses(Some(spec))) {
        return;
    }
    let mut inside: Vec<Option<NodeId>> = vec![None; point.nodes.len()];
    // Nodes come after all that they lead to.
    for id in (0..point.nodes.len() as NodeId).rev() {
        let spec = point.spec(id);
        let Some(outer) = (if pauses(spec) { Some(id) } else { inside[id as usize] }) else { continue };
        if matches!(spec, Some(Spec::Cable { .. } | Spec::Listen(_) | Spec::Lb(_))) {
            continue;
        }
        let behind: &[NodeId] = match (spec, &point.nodes[id as usize].to) {
            (Some(Spec::Server { model: Some(model), .. }), _) => std::slice::from_ref(model),
            (_, Edge::None) => &[],
            (_, Edge::Node(child)) => std::slice::from_ref(child),
            (_, Edge::List(list)) => point.lists.get(*list as usize).map_or(&[], Vec::as_slice),
        };
        for child in behind {
            inside[*child as usize].get_or_insert(outer);
            take(outer, *child, pauses(point.spec(*child)));
        }
    }
}
