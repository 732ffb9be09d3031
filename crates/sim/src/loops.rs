//! Several event loops: each request meets one of them, and each has balancers of its own.
//!
//! What belongs to the process (queues, rate limits, budgets, what clients stick to) is one for all. So would be health
//! and limits of targets, which a simulation of several loops does not have yet.

use crate::blocks::Layout;
use crate::draws::purpose;
use weir_policy::config::Balance;
use weir_stats::Key;
use weir_topology::plan::{Lb, Scenario, Scope, Spec};

/// The loops that a scenario's requests meet: those of the listener where they enter.
///
/// # Errors
/// Several, and a balancer with state of the process.
pub(crate) fn loops(layout: &Layout, scenario: &Scenario) -> Result<u32, String> {
    let point = layout.point;
    let spec = &point.specs[point.nodes[scenario.root as usize].spec as usize];
    let Spec::Listen(listen) = spec else { return Ok(1) };
    let loops = listen.loops.unwrap_or(1);
    if loops == 1 {
        return Ok(1);
    }
    let shared = layout.reached().find_map(|(id, spec)| match spec {
        Spec::Lb(lb) if lb.scope == Scope::Loop => belongs_to_process(lb).map(|what| (id, what)),
        _ => None,
    });
    match shared {
        None => Ok(loops),
        Some((id, what)) => {
            let node = &point.nodes[id as usize];
            let (kind, site) = (point.specs[node.spec as usize].kind(), &point.sites[node.site as usize]);
            Err(format!(
                "`loops={loops}` is not built yet in simulation for a balancer with {what} (`{kind}` at {}): give it \
                 `scope=\"process\"`, or the `listen` one loop",
                site.span
            ))
        }
    }
}

/// What of a balancer all loops would share.
fn belongs_to_process(lb: &Lb) -> Option<&'static str> {
    [
        (lb.health.is_some(), "health checks"),
        (lb.eject.is_some() || lb.outlier.is_some(), "ejection"),
        (lb.max_in_flight.is_some(), "`max_in_flight`"),
        (lb.max_connections.is_some(), "`max_connections`"),
        (lb.balance == Balance::LeastWork, "knowledge of all work"),
    ]
    .into_iter()
    .find_map(|(given, what)| given.then_some(what))
}

/// The loop that a request meets.
pub(crate) fn meets(loops: u32, request: Key) -> u32 {
    if loops == 1 { 0 } else { weir_model::loops::met(loops, request.with(purpose::MEETS)) }
}

/// What a balancer's state begins with on a loop: the first is as if it were the only one.
pub(crate) fn of_loop(own: Key, meets: u32) -> Key {
    if meets == 0 { own } else { own.with(purpose::LOOP).with(u64::from(meets)) }
}
