//! `lb.random`, `lb.round_robin`, `lb.least_conn`, `lb.p2c`: balancers, with the arguments that all of them share.

use super::{Arg, Default, Function, later, may, need};
use crate::call::{Call, Outcome};
use crate::plan::{Lb, NodeId, Spec, To};
use weir_policy::config::{Balance, Start, Ties};
use weir_policy::round_robin::{GREATEST_SUM, is_too_long};

/// What every balancer takes besides its own arguments.
pub(super) static COMMON: [Arg; 14] = [
    may("name"),
    later("health", Default::None),
    later("eject", Default::None),
    later("slow_start", Default::None),
    later("panic", Default::None),
    may("pass_over"),
    later("on_empty", Default::Text("fail")),
    later("sticky", Default::None),
    later("subset", Default::None),
    later("scope", Default::Text("loop")),
    later("max_in_flight", Default::None),
    later("max_connections", Default::None),
    later("max_waiting", Default::None),
    later("wait_timeout", Default::None),
];

pub(super) static FUNCTIONS: [Function; 4] = [
    Function { name: "lb.random", args: &[need("targets")], more: &COMMON, make: random },
    Function {
        name: "lb.round_robin",
        args: &[need("targets"), may("start")],
        more: &COMMON,
        make: round_robin,
    },
    Function {
        name: "lb.least_conn",
        args: &[need("targets"), may("ties"), may("error_hold")],
        more: &COMMON,
        make: least_conn,
    },
    Function {
        name: "lb.p2c",
        args: &[
            need("targets"),
            may("choices"),
            may("replacement"),
            may("ties"),
            may("error_hold"),
            may("bias"),
        ],
        more: &COMMON,
        make: p2c,
    },
];

fn random<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let targets = targets(call);
    balancer(call, targets, Balance::Random)
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
    balancer(call, targets, Balance::RoundRobin { start })
}

fn least_conn<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let words =
        [("random", Some(Ties::Random)), ("first", Some(Ties::First)), ("rotate", Some(Ties::Rotate))];
    let ties = call.choice("ties", &words).unwrap_or_default();
    let error_hold_ns = hold(call);
    let targets = targets(call);
    balancer(call, targets, Balance::LeastConn { ties, error_hold_ns })
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
    balancer(call, targets, Balance::P2c { choices, replacement, ties, error_hold_ns, bias })
}

/// `error_hold`, ns; `None` switches it off.
fn hold(call: &mut Call<'_, '_, '_, '_>) -> u64 {
    if call.is_none("error_hold") { 0 } else { call.duration("error_hold").unwrap_or(0) }
}

/// `pass_over`, ns; `None` switches it off as 0 does.
fn pass_over(call: &mut Call<'_, '_, '_, '_>) -> u64 {
    if call.is_none("pass_over") { 0 } else { call.duration("pass_over").unwrap_or(1_000_000_000) }
}

fn targets(call: &mut Call<'_, '_, '_, '_>) -> Option<Vec<NodeId>> {
    let targets = call.nodes_at("targets")?;
    if targets.iter().all(|t| weight(call, *t) == 0.0) {
        let message = format!("`{}` can pick none of its targets: all weigh 0", call.name());
        call.wrong(message);
        return None;
    }
    Some(targets)
}

/// The weight of a target.
fn weight(call: &Call<'_, '_, '_, '_>, target: NodeId) -> f64 {
    match call.context.state.borrow().graph.spec(target) {
        Some(Spec::Weight { weight }) => *weight,
        _ => 1.0,
    }
}

fn balancer<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    targets: Option<Vec<NodeId>>,
    balance: Balance,
) -> Outcome<'v> {
    let pass_over_ns = pass_over(call);
    let Some(targets) = targets else { return Ok(None) };
    if call.failed() {
        return Ok(None);
    }
    let list = call.context.state.borrow_mut().graph.list(targets);
    call.node(Spec::Lb(Lb { pass_over_ns, ..Lb::plain(balance) }), To::List(list))
}
