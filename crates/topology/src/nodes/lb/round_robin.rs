//! `lb.round_robin(targets, start=)`: the targets in turn.

use super::common::{COMMON, balancer, targets, weight};
use crate::language::call::{Call, Outcome};
use crate::nodes::{Description, Function, Group, examples, may, need};
use weir_policy::config::{Balance, RoundRobinArgs, Start};
use weir_policy::round_robin::{GREATEST_SUM, is_too_long};

pub(crate) static FUNCTIONS: [Function; 1] = [Function {
    name: "lb.round_robin",
    about: Description {
        group: Group::Balance,
        meaning: "Takes the targets in turn; with weights, smoothly as nginx does.",
        simulated: "a request goes to the target that the policy picks, and the policy gets its outcome and \
            duration",
        served: "the same objects decide, one per event loop unless `scope=\"process\"`",
        draws: "where it starts",
        example: examples::POLICIES,
    },
    args: &[
        need("targets", "a list of nodes", "the targets to pick from"),
        may("start", "\"random\" | \"first\"", "\"random\"", "where the first turn begins"),
    ],
    more: &COMMON,
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let start = call
        .choice("start", &[("random", Some(Start::Random)), ("first", Some(Start::First))])
        .unwrap_or_default();
    let targets = targets(call);
    if let Some(targets) = &targets {
        let weights: Vec<f64> = targets.iter().map(|t| weight(call, *t)).collect();
        if let Some(w) = weights.iter().find(|w| w.fract() != 0.0) {
            call.wrong_but(
                format!("`lb.round_robin` needs whole weights, but one of its targets has weight {w}"),
                "scale the weights, as in `weight(3, a)` and `weight(2, b)` for 1.5 and 1",
            );
        } else if is_too_long(&weights) {
            call.wrong_but(
                format!("unequal weights of `lb.round_robin` must add up to at most {GREATEST_SUM}"),
                "smaller ones in the same proportions, as in `weight(3, a)` and `weight(2, b)`",
            );
        }
    }
    balancer(call, targets, Balance::RoundRobin(RoundRobinArgs { start }), None)
}
