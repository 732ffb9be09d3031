//! `timeout(time, node)`: the whole response comes within `time`, or the request is cancelled behind it.

use super::{Description, Function, Group, NAME, examples, need};
use crate::language::call::{Call, Outcome};
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "timeout",
    about: Description {
        group: Group::Pass,
        meaning: "Limits how long the whole response may take.",
        simulated: "a request still open after `time` fails with `timeout`, and everything it does \
                behind this node is cancelled",
        served: "the same in real time, which pauses while weir waits for the client; 504, or a broken \
            body once the head has been sent",
        draws: "nothing",
        example: examples::RETRY,
    },
    args: &[
        need("time", "a duration or None", "how long; `None`: no limit"),
        need("node", "a node", "the next node"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (time_ns, node) = (call.limit("time"), call.node_at("node"));
    let Some(node) = node else { return Ok(None) };
    call.node(Spec::Timeout { time_ns }, Edge::Node(node))
}
