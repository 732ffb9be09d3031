//! `weight(w, node)`: the weight of a target at the balancer above; 0: never picked.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};

pub(super) static FUNCTIONS: [Function; 1] =
    [Function { name: "weight", args: &[need("w"), need("node"), may("name")], more: &[], make }];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (weight, node) = (call.not_negative("w"), call.node_at("node"));
    let (Some(weight), Some(node)) = (weight, node) else { return Ok(None) };
    call.node(Spec::Weight { weight }, To::Node(node))
}
