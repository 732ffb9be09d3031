//! `hedge(after, node, attempts=2, methods="idempotent"|"any", budget=None, replay=64*KiB)`: a further attempt after a while.
//!
//! - In virtual time: the next attempt begins `after` the last one, or at once when one failed; the first `ok` wins, the rest is
//!   cancelled.
//! - In the proxy: the same, with a clock, as long as nothing of a response went on.
//! - Draws: nothing; each attempt is a way of its own, so draws behind it differ.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Hedged, Spec, To};
use weir_policy::config::Hedge;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "hedge",
    args: &[
        need("after"),
        need("node"),
        may("attempts"),
        may("methods"),
        may("budget"),
        may("replay"),
        may("name"),
    ],
    more: &[],
    make,
}];

/// Attempts of one request at once.
pub(crate) const MOST_ATTEMPTS: u32 = 1000;

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (after, node) = (call.duration("after"), call.node_at("node"));
    let attempts = call.count("attempts", 1, MOST_ATTEMPTS).unwrap_or(2);
    let methods = call.methods();
    let budget = call.budget();
    let replay_bytes = call.replay();
    let (Some(after_ns), Some(node)) = (after, node) else { return Ok(None) };
    let hedge = Hedge { after_ns, attempts, methods };
    call.node(Spec::Hedge(Hedged { hedge, budget, replay_bytes }), To::Node(node))
}
