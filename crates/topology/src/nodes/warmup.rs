//! `warmup(node, factor, requests=None, time=None)`: the work behind it takes longer at first.

use super::{Description, Function, Group, NAME, examples, maybe, need};
use crate::language::call::{Call, Outcome};
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "warmup",
    about: Description {
        group: Group::Model,
        meaning: "Multiplies the work behind it at first, as a cold cache does.",
        simulated: "work is multiplied by a factor that falls linearly from `factor` to 1, over the \
                first `requests` or over `time` from the start or the return of a crashed node above; \
                with both, whichever ends first",
        served: "only in front of built-in servers",
        draws: "nothing",
        example: examples::WARMUP,
    },
    args: &[
        need("node", "a node", "the next node"),
        need("factor", "above 0", "the factor of work at first"),
        maybe(
            "requests",
            "1 or more, or None",
            "None; this or `time` is needed",
            "over how many \
                requests it falls",
        ),
        maybe(
            "time",
            "a duration or None",
            "None; this or `requests` is needed",
            "over how long it \
                falls",
        ),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (node, factor) = (call.node_at("node"), call.positive("factor"));
    let requests = if call.is_none("requests") { None } else { call.whole("requests", 1, 1_000_000_000_000) };
    let time_ns = call.limit("time");
    if requests.is_none() && time_ns.is_none() && !call.failed() {
        call.wrong_but(
            "`warmup` needs `requests` or `time`, over which the factor falls to 1",
            "write `requests=1000` or `time=30*s`; with both, whichever ends first",
        );
    }
    let (Some(node), Some(factor)) = (node, factor) else { return Ok(None) };
    call.node(Spec::Warmup { factor, requests, time_ns }, Edge::Node(node))
}
