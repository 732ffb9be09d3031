//! `queue(node, concurrency=1, capacity=None)`: at most so many inside, the rest waits in order of arrival.

use super::{Default, Function, later, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};
use weir_model::OnCancel;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "queue",
    args: &[
        need("node"),
        may("concurrency"),
        may("capacity"),
        later("timeout", Default::None),
        later("on_cancel", Default::Text("stop")),
        may("name"),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let node = call.node_at("node");
    let concurrency = call.count("concurrency", 1, u32::MAX).unwrap_or(1);
    let capacity = if call.is_none("capacity") { None } else { call.whole("capacity", 0, i64::MAX as u64) };
    let Some(node) = node else { return Ok(None) };
    let (timeout_ns, on_cancel) = (None, OnCancel::Stop);
    call.node(Spec::Queue { concurrency, capacity, timeout_ns, on_cancel }, To::Node(node))
}
