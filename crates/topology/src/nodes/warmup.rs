//! `warmup(node, factor, requests=None, time=None)`: the work behind it takes longer at first.
//!
//! - In virtual time: work is multiplied by a factor that falls linearly from `factor` to 1, over the first `requests` or
//!   over `time` from the start or the return of a crashed node above; with both, whichever ends first.
//! - In the proxy: only before built-in servers, whose work it multiplies.
//! - Draws: nothing.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "warmup",
    args: &[need("node"), need("factor"), may("requests"), may("time"), may("name")],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (node, factor) = (call.node_at("node"), call.positive("factor"));
    let requests = if call.is_none("requests") { None } else { call.whole("requests", 1, 1_000_000_000_000) };
    let time_ns = call.limit("time");
    if requests.is_none() && time_ns.is_none() && !call.failed() {
        call.wrong_but(
            "`warmup` needs `requests` or `time`: over what does the factor fall to 1?",
            "write `requests=1000` or `time=30*s`; with both, whichever ends first",
        );
    }
    let (Some(node), Some(factor)) = (node, factor) else { return Ok(None) };
    call.node(Spec::Warmup { factor, requests, time_ns }, To::Node(node))
}
