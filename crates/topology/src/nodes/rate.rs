//! `limit.rate(node, per_s, burst=per_s, key=None)`: a token bucket, full at the start.
//!
//! - In virtual time: a request that finds no token is `overloaded` at once.
//! - In the proxy: 429 with Retry-After.
//! - Draws: nothing.

use super::{Function, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Spec, To};
use weir_policy::config::Rate;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "limit.rate",
    args: &[need("node"), need("per_s"), may("burst"), may("key"), may("name")],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (node, per_s) = (call.node_at("node"), call.positive("per_s"));
    let given = if call.is_none("burst") { None } else { call.real("burst") };
    let key = call.key("key");
    let (Some(node), Some(per_s)) = (node, per_s) else { return Ok(None) };
    let burst = given.unwrap_or(per_s);
    if burst < 1.0 && !call.failed() {
        let default = if given.is_none() { " (its default is `per_s`)" } else { "" };
        call.wrong_but(
            format!(
                "`burst` of `limit.rate` must be at least 1, and is {burst}{default}: no request would pass"
            ),
            "write `burst=1` to let one request pass at a time",
        );
    }
    call.node(Spec::Rate { rate: Rate { per_s, burst }, key }, To::Node(node))
}
