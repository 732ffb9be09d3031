//! Hints about gates that few balancers check, or none.

use super::{Draft, Findings, index};
use crate::ways::down;
use crate::{NodeId, Spec};

/// A ramp has one step for each balancer that checks the gate; with fewer steps it is reported.
const ENOUGH: usize = 4;
const NONE: NodeId = NodeId::MAX;

/// Balancers, the first few of them, ascending.
type Askers = [NodeId; ENOUGH];

/// The first few of both.
fn both(a: Askers, b: Askers) -> Askers {
    let mut all: Vec<NodeId> = a.into_iter().chain(b).collect();
    all.sort_unstable();
    all.dedup();
    all.resize(ENOUGH.max(all.len()), NONE);
    std::array::from_fn(|at| all[at])
}

/// Gates that fewer than four balancers check: their ramp is a staircase.
pub(super) fn few_askers(draft: &Draft<'_>, found: &mut Findings) {
    let point = draft.point;
    if !point.specs.iter().any(|spec| matches!(spec, Spec::Gate(_))) {
        return;
    }
    let none: Askers = [NONE; ENOUGH];
    // A check ends at a balancer: what comes behind it are checks of its own.
    let pass = |id: NodeId, spec: &Spec, reached: Askers| match spec {
        Spec::Lb(lb) if lb.health.as_ref().is_some_and(|health| health.http.is_some()) => {
            both([id; ENOUGH], none)
        }
        Spec::Lb(_) => none,
        _ => reached,
    };
    let askers = down(point, vec![none; point.nodes.len()], pass, both);
    for (id, node) in point.nodes.iter().enumerate() {
        let Some(Spec::Gate(gate)) = point.spec(index(id)) else { continue };
        match askers[id].iter().filter(|asker| **asker != NONE).count() {
            0 => found.hint(
                node.site,
                "this `gate` does nothing: no balancer checks it by `health.http`".to_owned(),
                "give the balancer in front `health=health.http(\"/health\")`",
            ),
            n @ 1..ENOUGH if gate.ramp_ns.is_some() => {
                let steps = if n == 1 { "one step".to_owned() } else { format!("{n} steps") };
                let askers =
                    if n == 1 { "one balancer checks".to_owned() } else { format!("{n} balancers check") };
                found.hint(
                    node.site,
                    format!("the ramp of this `gate` has {steps}: {askers} it"),
                    "for a slope give the balancer a `slow_start` instead",
                );
            }
            _ => {}
        }
    }
}
