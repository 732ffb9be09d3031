//! `warmup(node, factor, requests=None, time=None, at_start="cold", prewarmed=0)`: the work behind it takes longer at first.

use super::{Description, Function, Group, NAME, examples, maybe, need};
use crate::language::call::{Call, Outcome};
use weir_model::warmup::{AtStart, Law};
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "warmup",
    about: Description {
        group: Group::Model,
        meaning: "Multiplies the work behind it at first, as a cold cache does.",
        simulated: "work is multiplied by a factor that falls linearly from `factor` to 1, over the \
                first `requests` or over `time` from when the process begins: at the start, as a newcomer of a \
                fleet, or when a crashed node above is back; with both, whichever ends first",
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
        maybe(
            "at_start",
            "\"cold\" or \"warm\"",
            "\"cold\"",
            "whether what runs at the start is cold; what begins later always is",
        ),
        maybe(
            "prewarmed",
            "0 to 1",
            "0",
            "the share of `requests` and `time` that is done already when it begins cold",
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
    let words = [("cold", Some(AtStart::Cold)), ("warm", Some(AtStart::Warm))];
    let at_start = call.choice("at_start", &words).unwrap_or_default();
    let prewarmed = call.share("prewarmed");
    let (Some(node), Some(factor)) = (node, factor) else { return Ok(None) };
    let law = Law { factor, requests, time_ns, at_start, prewarmed: prewarmed.unwrap_or_default() };
    call.node(Spec::Warmup(law), Edge::Node(node))
}
