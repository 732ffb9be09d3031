//! `limit.rate(node, per_s, burst=per_s, key=None)`: a token bucket, full at the start.

use super::{Description, Function, Group, NAME, examples, may, maybe, need};
use crate::language::call::{Call, Outcome};
use weir_plan::{Edge, Spec};
use weir_policy::config::Rate;

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "limit.rate",
    about: Description {
        group: Group::Pass,
        meaning: "A rate limit: a token bucket, full at the start.",
        simulated: "a request that finds no token is `overloaded` at once",
        served: "429 with Retry-After",
        draws: "nothing",
        example: examples::RATE,
    },
    args: &[
        need("node", "a node", "the next node"),
        need("per_s", "above 0, per second", "tokens added per second"),
        maybe("burst", "1 or more", "per_s", "tokens that the bucket holds"),
        may(
            "key",
            "key.header(...) or the like",
            "None",
            "a bucket for each value of this key; \
                `None`: one for all",
        ),
        NAME,
    ],
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
                "`burst` of `limit.rate` must be at least 1, not {burst}{default}: no request would pass"
            ),
            "write `burst=1` to let one request pass at a time",
        );
    }
    call.node(Spec::Rate { rate: Rate { per_s, burst }, key }, Edge::Node(node))
}
