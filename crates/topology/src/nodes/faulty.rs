//! `faulty(mtbf, mttr, node, clock="eager"|"lazy", starts="up"|"down")`: up and down by turns; refuses while down.

use super::{Default, Function, later, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Clock, Spec, To};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "faulty",
    args: &[
        need("mtbf"),
        need("mttr"),
        need("node"),
        may("clock"),
        may("mode"),
        later("slow", Default::Float(10.0)),
        may("starts"),
        later("checks", Default::Text("fail")),
        later("together", Default::None),
        may("name"),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (mtbf, mttr) = (call.positive_duration("mtbf"), call.positive_duration("mttr"));
    let node = call.node_at("node");
    let clock = call
        .choice("clock", &[("eager", Some(Clock::Eager)), ("lazy", Some(Clock::Lazy))])
        .unwrap_or_default();
    call.choice("mode", &[("refuse", Some(())), ("crash", None), ("blackhole", None), ("slow", None)]);
    let starts_up = call.choice("starts", &[("up", Some(true)), ("down", Some(false))]).unwrap_or(true);
    let (Some(mtbf_ns), Some(mttr_ns), Some(node)) = (mtbf, mttr, node) else { return Ok(None) };
    call.node(Spec::Faulty { mtbf_ns, mttr_ns, clock, starts_up }, To::Node(node))
}
