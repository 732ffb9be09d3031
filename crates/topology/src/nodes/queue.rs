//! `queue(node, concurrency=1, capacity=None, timeout=None, on_cancel="stop"|"skip"|"finish")`: at most so many inside,
//! the rest waits in order of arrival.
//!
//! - In virtual time: one that finds no room is `overloaded`, one that waits longer than `timeout` is `timeout`.
//! - In the proxy: the same with real requests; before a server with an address it is a limit of connections.
//! - Draws: nothing.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};
use weir_model::OnCancel;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "queue",
    args: &[need("node"), may("concurrency"), may("capacity"), may("timeout"), may("on_cancel"), may("name")],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let node = call.node_at("node");
    let concurrency = call.count("concurrency", 1, u32::MAX).unwrap_or(1);
    let capacity = if call.is_none("capacity") { None } else { call.whole("capacity", 0, i64::MAX as u64) };
    let timeout_ns = call.limit("timeout");
    let on_cancel = on_cancel(call);
    let Some(node) = node else { return Ok(None) };
    call.node(Spec::Queue { concurrency, capacity, timeout_ns, on_cancel }, To::Node(node))
}

/// What becomes of a request whose client has gone.
pub(super) fn on_cancel(call: &mut Call<'_, '_, '_, '_>) -> OnCancel {
    let words =
        [("stop", Some(OnCancel::Stop)), ("skip", Some(OnCancel::Skip)), ("finish", Some(OnCancel::Finish))];
    call.choice("on_cancel", &words).unwrap_or_default()
}
