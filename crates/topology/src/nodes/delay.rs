//! `delay(time, node)`: work, or waiting, before the node behind.

use super::{Description, Function, Group, NAME, examples, need};
use crate::language::call::{Call, Outcome};
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "delay",
    about: Description {
        group: Group::Model,
        meaning: "Work, or waiting, before the node behind it.",
        simulated: "a request goes on after `time`",
        served: "it waits for `time`, in front of built-in servers, or with `--inject`",
        draws: "the time, where it is a distribution",
        example: examples::QUEUE,
    },
    args: &[
        need("time", "a duration or distribution", "how long"),
        need("node", "a node", "the next node"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (time, node) = (call.dist("time"), call.node_at("node"));
    let (Some(time), Some(node)) = (time, node) else { return Ok(None) };
    call.node(Spec::Delay { time }, Edge::Node(node))
}
