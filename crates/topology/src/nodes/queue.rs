//! `queue(node, concurrency=1, capacity=None, timeout=None, on_cancel="stop"|"skip"|"finish")`: at most `concurrency`
//! requests inside, the rest waits in order of arrival.

use super::{Description, Function, Group, NAME, examples, may, need};
use crate::language::call::{Call, Outcome};
use weir_model::OnCancel;
use weir_plan::{Edge, Spec};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "queue",
    about: Description {
        group: Group::Pass,
        meaning: "Limits how many requests are inside at once; the rest wait in order of arrival.",
        simulated: "a request that finds no room to wait is `overloaded`, one that waits too long is \
                `timeout`",
        served: "the same with real requests, counted for the whole process; in front of a server with an \
            address it is HAProxy's `maxconn`",
        draws: "nothing",
        example: examples::QUEUE,
    },
    args: &[
        need("node", "a node", "the node for requests that are admitted"),
        may("concurrency", "1 or more", "1", "how many may be inside at once"),
        may(
            "capacity",
            "0 or more, or None",
            "None",
            "how many may wait (those inside not counted); \
                `None`: any number",
        ),
        may("timeout", "a duration or None", "None", "how long one may wait"),
        may(
            "on_cancel",
            "\"stop\" | \"skip\" | \"finish\"",
            "\"stop\"",
            "what happens to a request whose client has gone: `stop`: it leaves and frees its slot; `skip`: only one that waits \
                leaves; `finish`: it goes on as if nothing had happened",
        ),
        NAME,
    ],
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
    call.node(Spec::Queue { concurrency, capacity, timeout_ns, on_cancel }, Edge::Node(node))
}

/// The treatment of a request after its client has left.
pub(super) fn on_cancel(call: &mut Call<'_, '_, '_, '_>) -> OnCancel {
    let words =
        [("stop", Some(OnCancel::Stop)), ("skip", Some(OnCancel::Skip)), ("finish", Some(OnCancel::Finish))];
    call.choice("on_cancel", &words).unwrap_or_default()
}
