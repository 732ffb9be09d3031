//! `lb.random`, `lb.round_robin`, `lb.least_conn`, `lb.p2c`: balancers. Each further policy has a file in `lb/`; what all share
//! is in `lb/common.rs`.

mod common;
pub(super) mod first;
pub(super) mod least_work;
pub(super) mod maglev;
pub(super) mod peak_ewma;
pub(super) mod prequal;
pub(super) mod ring_hash;

use super::{About, Function, Group, examples, may, need};
use crate::call::{Call, Outcome};
use common::{COMMON, balancer, targets, weight};
use weir_policy::config::{Balance, Start, Ties};
use weir_policy::round_robin::{GREATEST_SUM, is_too_long};

pub(super) static FUNCTIONS: [Function; 4] = [
    Function {
        name: "lb.random",
        about: About {
            group: Group::Balance,
            meaning: "Picks a target at random, by weight.",
            simulated: "a request goes to the target that the policy picks, and the policy is told how \
                and when it came back",
            served: "the same objects decide, one per event loop unless `scope=\"process\"`",
            draws: "each pick",
            example: examples::POLICIES,
        },
        args: &[need("targets", "a list of nodes", "what is picked from")],
        more: &COMMON,
        make: random,
    },
    Function {
        name: "lb.round_robin",
        about: About {
            group: Group::Balance,
            meaning: "Takes the targets in turn; with weights, smoothly as nginx does.",
            simulated: "a request goes to the target that the policy picks, and the policy is told how \
                and when it came back",
            served: "the same objects decide, one per event loop unless `scope=\"process\"`",
            draws: "where it starts",
            example: examples::POLICIES,
        },
        args: &[
            need("targets", "a list of nodes", "what is picked from"),
            may("start", "\"random\" | \"first\"", "\"random\"", "where the turn begins"),
        ],
        more: &COMMON,
        make: round_robin,
    },
    Function {
        name: "lb.least_conn",
        about: About {
            group: Group::Balance,
            meaning: "Picks the target with the fewest of its own requests in flight (with weights: per \
                weight).",
            simulated: "a request goes to the target that the policy picks, and the policy is told how \
                and when it came back. A request counts from the pick until its whole response is back \
                or it is cancelled",
            served: "the same objects decide, one per event loop unless `scope=\"process\"`",
            draws: "ties",
            example: examples::POLICIES,
        },
        args: &[
            need("targets", "a list of nodes", "what is picked from"),
            may(
                "ties",
                "\"random\" | \"first\" | \"rotate\"",
                "\"random\"",
                "who gets it among equals: \
                any of them, the lowest index, or the next after the last chosen",
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
        make: least_conn,
    },
    Function {
        name: "lb.p2c",
        about: About {
            group: Group::Balance,
            meaning: "Draws two targets and picks the one with fewer of its own requests in flight: the \
                power of two choices.",
            simulated: "a request goes to the target that the policy picks, and the policy is told how \
                and when it came back",
            served: "the same objects decide, one per event loop unless `scope=\"process\"`",
            draws: "the targets of each attempt, and ties",
            example: examples::POLICIES,
        },
        args: &[
            need("targets", "a list of nodes", "what is picked from"),
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
                "who gets it among equals: any of them, \
                or the one drawn first",
            ),
            may("error_hold", "a duration", "0*s", "a failed request counts for this much longer"),
            may("bias", "0 or more", "1.0", "targets are compared by (in flight + 1)^bias / weight"),
        ],
        more: &COMMON,
        make: p2c,
    },
];

fn random<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let targets = targets(call);
    balancer(call, targets, Balance::Random, None)
}

fn round_robin<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let start = call
        .choice("start", &[("random", Some(Start::Random)), ("first", Some(Start::First))])
        .unwrap_or_default();
    let targets = targets(call);
    if let Some(targets) = &targets {
        let weights: Vec<f64> = targets.iter().map(|t| weight(call, *t)).collect();
        if let Some(w) = weights.iter().find(|w| w.fract() != 0.0) {
            call.wrong_but(
                format!("`lb.round_robin` needs whole weights, and one of its targets weighs {w}"),
                "scale the weights, as in `weight(3, a)` and `weight(2, b)` for 1.5 and 1",
            );
        } else if is_too_long(&weights) {
            call.wrong_but(
                format!("unequal weights of `lb.round_robin` must add up to at most {GREATEST_SUM}"),
                "smaller ones in the same proportions, as in `weight(3, a)` and `weight(2, b)`",
            );
        }
    }
    balancer(call, targets, Balance::RoundRobin { start }, None)
}

fn least_conn<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let words =
        [("random", Some(Ties::Random)), ("first", Some(Ties::First)), ("rotate", Some(Ties::Rotate))];
    let ties = call.choice("ties", &words).unwrap_or_default();
    let error_hold_ns = hold(call);
    let targets = targets(call);
    balancer(call, targets, Balance::LeastConn { ties, error_hold_ns }, None)
}

fn p2c<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let choices = call.count("choices", 1, 1_000_000).unwrap_or(2);
    let replacement = call.truth("replacement").unwrap_or(false);
    let ties = call
        .choice("ties", &[("random", Some(Ties::Random)), ("first", Some(Ties::First))])
        .unwrap_or_default();
    let error_hold_ns = hold(call);
    let bias = call.not_negative("bias").unwrap_or(1.0);
    let targets = targets(call);
    balancer(call, targets, Balance::P2c { choices, replacement, ties, error_hold_ns, bias }, None)
}

/// `error_hold`, ns; `None` switches it off.
fn hold(call: &mut Call<'_, '_, '_, '_>) -> u64 {
    if call.is_none("error_hold") { 0 } else { call.duration("error_hold").unwrap_or(0) }
}
