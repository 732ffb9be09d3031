//! Event loops: each request uses one of them, and each has balancers of its own.
//!
//! Process-wide state exists once: queues, rate limits, budgets, sticky cookies, and of a balancer its health, the
//! limits of targets and the line before them (`weir_policy::upstream`).

use crate::compile::blocks::Layout;
use weir_model::draws::purpose;
use weir_plan::{Edge, Listen, NodeId, Point, Spec};
use weir_stats::Key;

/// The numbers of event loops, for listeners that configure one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Loops {
    /// The listener where requests come in.
    pub outermost: Option<NodeId>,
    /// How many it has; at least 1.
    pub first: u32,
    /// The most that any listener has.
    pub most: u32,
}

impl Loops {
    pub fn new(layout: &Layout) -> Loops {
        let outermost = outermost(layout.point, layout.root);
        let mut of = Loops { outermost, first: 1, most: 1 };
        // Not `max()`: where there is no listener, LLVM's counts for a release (`cargo xtask pgo`) add up what is not
        // there.
        for (id, spec) in layout.reached() {
            let Some(loops) = of_listen(spec) else { continue };
            of.most = of.most.max(loops);
            if Some(id) == outermost {
                of.first = loops;
            }
        }
        of
    }
}

/// The loops of a listener.
fn of_listen(spec: &Spec) -> Option<u32> {
    match spec {
        Spec::Listen(Listen { loops, .. }) => Some(loops.unwrap_or(1)),
        _ => None,
    }
}

/// The listener where a scenario's requests come in: its node, or one with a single path before it on which no node
/// sends again.
pub(crate) fn outermost(point: &Point, root: NodeId) -> Option<NodeId> {
    let mut at = root;
    loop {
        let node = &point.nodes[at as usize];
        match (&point.specs[node.spec as usize], node.to) {
            (Spec::Listen(_), _) => return Some(at),
            (Spec::Retry(_) | Spec::Hedge(_), _) => return None,
            (_, Edge::Node(next)) => at = next,
            _ => return None,
        }
    }
}

/// The loop of a request.
pub(crate) fn meets(loops: u32, request: Key) -> u32 {
    if loops == 1 { 0 } else { weir_model::loops::met(loops, request.with(purpose::MEETS)) }
}

/// The key of a balancer's state on a loop: the first loop has that of an only one.
pub(crate) fn of_loop(own: Key, meets: u32) -> Key {
    if meets == 0 { own } else { own.with(purpose::LOOP).with(u64::from(meets)) }
}
