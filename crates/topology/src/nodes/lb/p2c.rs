//! `lb.p2c(targets, choices=2, replacement=False, ties=, error_hold=0*s, bias=1.0)`: the least loaded of a few drawn
//! targets.

use super::common::{COMMON, balancer, hold, targets};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use weir_policy::config::{Balance, P2cArgs, Ties};

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.p2c",
    about: Description {
        group: Group::Balance,
        meaning: "Draws two targets and picks the one with fewer of its own requests in flight: the \
            power of two choices.",
        simulated: "a request goes to the target that the policy picks, and the policy gets its outcome and \
            duration",
        served: "the same objects decide, one per event loop unless `scope=\"process\"`",
        draws: "the targets of each attempt, and ties",
        example: examples::POLICIES,
    },
    args: &[
        need("targets", "a list of nodes", "the targets to pick from"),
        may("choices", "1 or more", "2", "how many targets are drawn"),
        may(
            "replacement",
            "True | False",
            "False",
            "whether one target may be drawn twice, as Envoy \
            does",
        ),
        may(
            "ties",
            "\"random\" | \"first\"",
            "\"random\"",
            "which of equal targets is picked: the one drawn first, or the one with the lowest index",
        ),
        may("error_hold", "a duration", "0*s", "a failed request counts for this much longer"),
        may("bias", "0 or more", "1.0", "targets are compared by in flight^bias / weight"),
    ],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let choices = call.count("choices", 1, 1_000_000).unwrap_or(2);
    let replacement = call.truth("replacement").unwrap_or(false);
    let ties = call
        .choice("ties", &[("random", Some(Ties::Random)), ("first", Some(Ties::First))])
        .unwrap_or_default();
    let error_hold_ns = hold(call);
    let bias = call.not_negative("bias").unwrap_or(1.0);
    let targets = targets(call);
    balancer(call, targets, Balance::P2c(P2cArgs { choices, replacement, ties, error_hold_ns, bias }), None)
}
