//! `lb.least_conn(targets, ties=, error_hold=0*s)`: the target with the fewest requests in flight.

use super::common::{COMMON, balancer, hold, targets};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use weir_policy::config::{Balance, LeastConnArgs, Ties};

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.least_conn",
    about: Description {
        group: Group::Balance,
        meaning: "Picks the target with the fewest of its own requests in flight (with weights: per \
            weight).",
        simulated: "a request goes to the target that the policy picks, and the policy gets its outcome and \
            duration. A request counts from the pick until its whole response is back \
            or it is cancelled",
        served: "the same objects decide, one per event loop unless `scope=\"process\"`",
        draws: "ties",
        example: examples::POLICIES,
    },
    args: &[
        need("targets", "a list of nodes", "the targets to pick from"),
        may(
            "ties",
            "\"random\" | \"first\" | \"rotate\"",
            "\"random\"",
            "which of equal targets is picked: any of them, the lowest index, or the next after the last \
                pick",
        ),
        may(
            "error_hold",
            "a duration",
            "0*s",
            "a failed request counts for this much longer, so \
            that a target that fails fast is not taken for an idle one",
        ),
    ],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let words =
        [("random", Some(Ties::Random)), ("first", Some(Ties::First)), ("rotate", Some(Ties::Rotate))];
    let ties = call.choice("ties", &words).unwrap_or_default();
    let error_hold_ns = hold(call);
    let targets = targets(call);
    balancer(call, targets, Balance::LeastConn(LeastConnArgs { ties, error_hold_ns }), None)
}
