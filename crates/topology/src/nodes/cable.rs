//! `cable(time, node, loss=0.0, resend=None)`: a link that takes `time` each way.

use super::{Default, Function, later, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "cable",
    args: &[
        need("time"),
        need("node"),
        later("loss", Default::Float(0.0)),
        later("resend", Default::None),
        may("name"),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (time, node) = (call.dist("time"), call.node_at("node"));
    let (Some(time), Some(node)) = (time, node) else { return Ok(None) };
    call.node(Spec::Cable { time, loss: 0.0, resend_ns: None }, To::Node(node))
}
