//! Several event loops: each request meets one of them, and each has balancers of its own.
//!
//! What belongs to the process is one for all: queues, rate limits, budgets, what clients stick to, and of a balancer health,
//! limits of targets and the line before them (`weir_policy::upstream`).

use weir_model::draws::purpose;
use weir_stats::Key;
use weir_topology::plan::{Point, Scenario, Spec};

/// The loops that a scenario's requests meet: those of the listener where they enter.
pub(crate) fn loops(point: &Point, scenario: &Scenario) -> u32 {
    match &point.specs[point.nodes[scenario.root as usize].spec as usize] {
        Spec::Listen(listen) => listen.loops.unwrap_or(1),
        _ => 1,
    }
}

/// The loop that a request meets.
pub(crate) fn meets(loops: u32, request: Key) -> u32 {
    if loops == 1 { 0 } else { weir_model::loops::met(loops, request.with(purpose::MEETS)) }
}

/// What a balancer's state begins with on a loop: the first is as if it were the only one.
pub(crate) fn of_loop(own: Key, meets: u32) -> Key {
    if meets == 0 { own } else { own.with(purpose::LOOP).with(u64::from(meets)) }
}
