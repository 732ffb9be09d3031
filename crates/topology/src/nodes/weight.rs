//! `weight(w, node)`: the weight of a target at the balancer above; 0: never picked.

use super::{Description, Function, Group, NAME, examples, need};
use crate::language::call::{Call, Outcome};
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "weight",
    about: Description {
        group: Group::Pass,
        meaning: "The weight of a target at the balancer above it.",
        simulated: "a target of weight 2 gets twice the share of one of weight 1; one of weight 0 is \
                never picked",
        served: "the same",
        draws: "nothing",
        example: examples::POLICIES,
    },
    args: &[
        need("w", "0 or more", "the weight; targets without one have weight 1"),
        need("node", "a node", "the target"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (weight, node) = (call.not_negative("w"), call.node_at("node"));
    let (Some(weight), Some(node)) = (weight, node) else { return Ok(None) };
    call.node(Spec::Weight { weight }, Edge::Node(node))
}
