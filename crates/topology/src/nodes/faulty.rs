//! `faulty(mtbf, mttr, node, clock="eager"|"lazy", starts="up"|"down")`: up and down by turns; refuses while down.

use super::{Default, Function, later, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Clock, Faulty, Line, Mode, Spec, To};

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
    let (mode, slow, checks_pass, line) = (Mode::Refuse, 10.0, false, Line::Own);
    let faulty = Faulty { mtbf_ns, mttr_ns, clock, mode, slow, starts_up, checks_pass, line };
    call.node(Spec::Faulty(faulty), To::Node(node))
}
