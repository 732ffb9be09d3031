//! `timeout(time, node)`: the whole response comes within `time`, or the request is cancelled behind it.
//!
//! - In virtual time: a request still open after `time` fails with `timeout`; all that it does behind is cancelled.
//! - In the proxy: the same, with a clock; the exchange with the origin is dropped.
//! - Draws: nothing.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};

pub(super) static FUNCTIONS: [Function; 1] =
    [Function { name: "timeout", args: &[need("time"), need("node"), may("name")], more: &[], make }];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (time_ns, node) = (call.limit("time"), call.node_at("node"));
    let Some(node) = node else { return Ok(None) };
    call.node(Spec::Timeout { time_ns }, To::Node(node))
}
