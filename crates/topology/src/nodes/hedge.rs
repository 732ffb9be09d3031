//! `hedge(after, node, attempts=2, methods="idempotent"|"any", budget=None, replay=64*KiB)`: a further attempt after a
//! while.

use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome};
use weir_plan::ranges::MOST_HEDGES;
use weir_plan::{Edge, HedgeSpec, Spec};
use weir_policy::config::Hedge;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "hedge",
    about: Description {
        group: Group::Pass,
        meaning: "Sends a second attempt while the first is still open, and takes the first success.",
        simulated: "a further attempt begins `after` the last one, or at once when one failed; the \
                first `ok` wins and the rest is cancelled. Idempotent requests only, unless `methods` \
                says otherwise",
        served: "the same in real time, until part of a response has been passed on",
        draws: "nothing; each attempt draws new work",
        example: examples::HEDGE,
    },
    args: &[
        need("after", "a duration", "how long to wait before a further attempt"),
        need("node", "a node", "the next node"),
        may("attempts", "1 to 1000", "2", "how many attempts in all"),
        may(
            "methods",
            "\"idempotent\" | \"any\"",
            "\"idempotent\"",
            "whether requests such as POST \
                are sent twice",
        ),
        may(
            "budget",
            "budget(...)",
            "None",
            "the budget to which further attempts are charged; `None`: no limit",
        ),
        may("replay", "a size", "64*KiB", "how much of a request's body is kept for further attempts"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (after, node) = (call.duration("after"), call.node_at("node"));
    let attempts = call.count("attempts", 1, MOST_HEDGES).unwrap_or(2);
    let methods = call.methods();
    let budget = call.budget();
    let replay_bytes = call.replay();
    let (Some(after_ns), Some(node)) = (after, node) else { return Ok(None) };
    let hedge = Hedge { after_ns, attempts, methods };
    call.node(Spec::Hedge(HedgeSpec { hedge, budget, replay_bytes }), Edge::Node(node))
}
