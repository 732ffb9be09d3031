//! `buffered(node, n)`: requests up to n bytes are read whole before a target is picked, responses up to n bytes are
//! taken whole, so that a slow client holds no server.

use super::{Description, Function, Group, NAME, examples, need};
use crate::language::call::{Call, Outcome};
use weir_plan::ranges::MOST_BUFFERED;
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "buffered",
    about: Description {
        group: Group::Pass,
        meaning: "Receives a whole request before a target is picked, and a whole response before it is \
            passed on, so that a slow client does not occupy a server.",
        simulated: "requests pass: a simulated client is never slow",
        served: "bodies of up to `n` bytes are kept in memory; longer ones are streamed",
        draws: "nothing",
        example: examples::ROUTES,
    },
    args: &[
        need("node", "a node", "the next node"),
        need("n", "a size, 1 to 1 GiB", "how much of a body is kept, such as `64*KiB`"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (node, bytes) = (call.node_at("node"), call.size("n", 1, MOST_BUFFERED));
    let (Some(node), Some(bytes)) = (node, bytes) else { return Ok(None) };
    call.node(Spec::Buffered { bytes }, Edge::Node(node))
}
