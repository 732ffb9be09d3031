//! `gate(node, ramp=60*s, flap="even", ...)`: health checks that flap on purpose while a process is new.

use super::lb::least_work::first_behind;
use super::{Description, Function, Group, NAME, examples, maybe, need};
use crate::language::call::{Call, Outcome};
use weir_plan::{Edge, Spec};
use weir_policy::config::{Flap, GateArgs, GateWork};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "gate",
    about: Description {
        group: Group::Model,
        meaning: "Answers health checks of a process that has just begun: healthy to a growing share of the balancers.",
        simulated: "a check by `health.http` that `node` passes is answered by the gate: it fails where the ramp has not \
                come to the balancer that asks, by the hash of its address; what runs at the start has no ramp, newcomers \
                of a fleet and processes that come back from a crash have. Requests pass",
        served: "in built-in servers; beside a server of any kind: `weir gate`",
        draws: "the address of each balancer, once",
        example: examples::GATE,
    },
    args: &[
        need("node", "a node", "the next node"),
        maybe(
            "ramp",
            "a duration or None",
            "60*s",
            "from the first passed check until every balancer is let in",
        ),
        maybe(
            "flap",
            "\"even\" or \"article\"",
            "\"even\"",
            "the rule: `even` by the hash of address and process; `article` as AppOptics' code",
        ),
        maybe(
            "min_requests",
            "1 or more, or None",
            "None",
            "fail checks if fewer requests have come in since the balancer's previous one",
        ),
        maybe(
            "relative",
            "True or False",
            "False",
            "only while the other gates of this place have four times as many on average",
        ),
        maybe("grace", "a duration", "60*s", "no judgement by requests for so long from the beginning"),
        maybe("hold", "a duration", "30*s", "how long all checks fail the first time"),
        maybe("max_hold", "a duration", "300*s", "how long at most: it doubles each time in a row"),
        NAME,
    ],
    more: &[],
    make,
}];

const SECOND_NS: u64 = 1_000_000_000;

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let node = call.node_at("node");
    let ramp_ns = if call.is_none("ramp") {
        None
    } else {
        Some(call.duration("ramp").unwrap_or(60 * SECOND_NS)).filter(|ramp_ns| *ramp_ns > 0)
    };
    let words = [("even", Some(Flap::Even)), ("article", Some(Flap::Article))];
    let flap = call.choice("flap", &words).unwrap_or_default();
    if flap == Flap::Article && ramp_ns.is_some_and(|ramp_ns| ramp_ns < SECOND_NS) && !call.failed() {
        call.wrong_but(
            "`ramp` of `gate` must be 1*s or more with `flap=\"article\"`, which counts whole seconds",
            "write `ramp=60*s`, or leave `flap` out",
        );
    }
    let work = work(call);
    let Some(node) = node else { return Ok(None) };
    let is_gate = |spec: &Spec| matches!(spec, Spec::Gate(_));
    let other = first_behind(&call.context.state.borrow().graph, &[node], is_gate);
    if let Some((_, at)) = other {
        call.wrong_but(
            format!("a `gate` is behind this one (at {at}): a check is answered by one of them"),
            "leave one of them out",
        );
    }
    call.node(Spec::Gate(GateArgs { ramp_ns, flap, work }), Edge::Node(node))
}

/// Judgement by requests.
fn work(call: &mut Call<'_, '_, '_, '_>) -> Option<GateWork> {
    let is_relative = call.truth("relative").unwrap_or_default();
    let times = [("grace", 60), ("hold", 30), ("max_hold", 300)];
    let [grace_ns, hold_ns, max_hold_ns] =
        times.map(|(name, default_s)| call.duration(name).unwrap_or(default_s * SECOND_NS));
    let min_requests =
        if call.is_none("min_requests") { None } else { call.whole("min_requests", 1, 1_000_000_000_000) };
    if is_relative && min_requests.is_none() && !call.failed() {
        call.wrong_but(
            "`relative` of `gate` says something of `min_requests`, which is missing",
            "write `min_requests=10` as well, or leave `relative` out",
        );
    }
    Some(GateWork { min_requests: min_requests?, is_relative, grace_ns, hold_ns, max_hold_ns })
}
