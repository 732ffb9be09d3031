//! `weight(w, node)`: the weight of a target at the balancer above; 0: never picked.

use super::{Description, Function, Group, NAME, examples, need};
use crate::language::call::{Call, Outcome};
use crate::language::value::{FleetValue, NodeValue};
use starlark::values::ValueLike;
use weir_plan::ranges::wrong_weight;
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "weight",
    about: Description {
        group: Group::Pass,
        meaning: "The weight of a target at the balancer above it.",
        simulated: "a target of weight 2 gets twice the share of one of weight 1; one of weight 0 is \
                never picked. `lb.random`, `lb.round_robin`, `lb.least_conn`, `lb.p2c` and the hashes take \
                weights as shares, also of idle targets (`lb.least_conn` with `ties=\"first\"` takes the \
                lowest index of idle ones). `lb.peak_ewma` and `lb.prequal` take them as speeds: they divide \
                what a target costs by its weight, so of two that are idle and answer alike the heavier one \
                gets every request. `lb.zuul` divides the requests in flight by them, so idle targets get equal \
                shares. `lb.first` and `lb.least_work` only look for weight 0",
        served: "the same",
        draws: "nothing",
        example: examples::POLICIES,
    },
    args: &[
        need("w", "0, or 0.001 to 1,000,000", "the weight; targets without one have weight 1"),
        need("node", "a node or a fleet", "the target; each member of a fleet has the weight"),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let fleet = call.value("node").and_then(|value| value.downcast_ref::<FleetValue>()).map(|fleet| fleet.0);
    let node = fleet.or_else(|| call.node_at("node"));
    let (Some(weight), Some(node)) = (call.real("w"), node) else { return Ok(None) };
    if let Some(why) = wrong_weight(weight) {
        let what = call.describe("w");
        call.wrong(format!("{what} {why}"));
        return Ok(None);
    }
    let made = call.node(Spec::Weight { weight }, Edge::Node(node))?;
    let weighed = made.and_then(|made| made.downcast_ref::<NodeValue>()).map(|made| made.0);
    Ok(match (fleet, weighed) {
        // The weight of each member.
        (Some(_), Some(id)) => Some(call.heap().alloc(FleetValue(id))),
        _ => made,
    })
}
