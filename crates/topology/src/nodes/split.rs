//! `split([(weight, node), ...], key=None)`: one of several nodes, by draw or by key.

use super::route::node_of;
use super::traffic::pairs;
use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome};
use starlark::values::Value;
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "split",
    about: Description {
        group: Group::Pass,
        meaning: "Divides requests among nodes by weight.",
        simulated: "drawn afresh for each attempt, or decided by the hash of `key`",
        served: "the same",
        draws: "one number per attempt, without a key",
        example: examples::SPLIT,
    },
    args: &[
        need(
            "shares",
            "a list of (weight, node)",
            "nodes with their weights: `[(9, a), (1, b)]` \
                sends a tenth to `b`",
        ),
        may(
            "key",
            "key.header(...) or the like",
            "None",
            "equal keys go to one node; `None`: each \
                attempt draws",
        ),
        NAME,
    ],
    more: &[],
    make,
}];

const SHAPE: &str = "write `split([(9, a), (1, b)])`: nine requests of ten to a";

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let found = pairs(call, "shares", "(weight, node)", SHAPE);
    let key = call.key("key");
    let Some(found) = found else { return Ok(None) };
    let (mut weights, mut nodes) = (Vec::with_capacity(found.len()), Vec::with_capacity(found.len()));
    for (i, pair) in found.into_iter().enumerate() {
        let Some([weight, node]) = pair else { continue };
        let weight = weight_of(call, "shares", i, weight);
        if let Some((weight, node)) = weight.zip(node_of(call, "shares", i, node)) {
            weights.push(weight);
            nodes.push(node);
        }
    }
    if call.failed() {
        return Ok(None);
    }
    if weights.iter().all(|w| *w == 0.0) {
        call.wrong_but("`split` cannot pick any node: all weights are 0", SHAPE);
        return Ok(None);
    }
    let list = call.context.state.borrow_mut().graph.list(nodes);
    call.node(Spec::Split { weights, key }, Edge::List(list))
}

/// The weight of item i of a list of pairs: not negative.
pub(super) fn weight_of<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    name: &str,
    i: usize,
    value: Value<'v>,
) -> Option<f64> {
    let what = format!("the weight in `{name}[{i}]` of `{}`", call.name());
    let weight = call.real_of(&what, value)?;
    if weight < 0.0 {
        call.wrong(format!("{what} must not be negative, but is {weight}"));
        return None;
    }
    // A negative zero becomes a positive one.
    Some(weight.abs())
}
