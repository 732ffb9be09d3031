//! `sequence(nodes)`: one after another, to the first error.

use super::{Description, Function, Group, NAME, examples, need};
use crate::language::call::{Call, Outcome};
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "sequence",
    about: Description {
        group: Group::Model,
        meaning: "Sends a request to several nodes, one after another, until one fails.",
        simulated: "it is ok if the last one is",
        served: "refused, except in a `model` or a built-in server",
        draws: "nothing",
        example: examples::SEQUENCE,
    },
    args: &[need("nodes", "a list of nodes", "in this order"), NAME],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let Some(nodes) = call.nodes_at("nodes") else { return Ok(None) };
    let list = call.context.state.borrow_mut().graph.list(nodes);
    call.node(Spec::Sequence, Edge::List(list))
}
