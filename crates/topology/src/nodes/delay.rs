//! `delay(time, node)`: work, or waiting, before the node behind.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};

pub(super) static FUNCTIONS: [Function; 1] =
    [Function { name: "delay", args: &[need("time"), need("node"), may("name")], more: &[], make }];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (time, node) = (call.dist("time"), call.node_at("node"));
    let (Some(time), Some(node)) = (time, node) else { return Ok(None) };
    call.node(Spec::Delay { time }, To::Node(node))
}
