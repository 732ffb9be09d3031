//! The common part of all balancers: the arguments around the policy, and the targets.

use crate::language::call::{Call, Outcome, list};
use crate::language::data::beside;
use crate::language::value::{
    EjectValue, HealthValue, NodeValue, OutlierValue, ScopeValue, SlowStartValue, SubsetValue,
};
use crate::nodes::{Arg, NAME, may, maybe};
use starlark::values::ValueLike;
use weir_plan::sticky;
use weir_plan::{Edge, KeySource, Lb, NodeId, Scope, Spec};
use weir_policy::config::{Balance, Eject, OnEmpty, Outlier, Subset};

/// What every balancer takes besides its own arguments.
pub(super) static COMMON: [Arg; 15] = [
    NAME,
    may("health", "health.http(...) or health.tcp(...)", "None", "active checks of the targets"),
    may("eject", "eject(...) or outlier(...)", "None", "leave out targets that fail"),
    may("slow_start", "slow_start(...)", "None", "targets that come back get their share gradually"),
    maybe(
        "panic",
        "0 to 1, or None",
        "0.5; 0 for lb.first and with on_empty",
        "if less than this share of the targets is eligible, health is ignored; 0: never",
    ),
    may(
        "pass_over",
        "a duration",
        "1*s",
        "how long a target is avoided after a failed connection, while others are left; only without `eject`",
    ),
    may(
        "on_empty",
        "\"fail\" | \"any\" | a node",
        "\"fail\"",
        "what a request gets when no target is \
        left: the error `no_target`, any target, or this node",
    ),
    may("sticky", "the name of a cookie", "None", "a cookie that keeps each client at its target"),
    may(
        "sticky_key",
        "a path",
        "None",
        "a file of 16 bytes or more: the key under which the cookie is \
        hashed",
    ),
    may("subset", "subset.loops(...) or its like", "None", "the targets that each event loop prefers"),
    may(
        "scope",
        "\"loop\" | \"process\" | lagged(...)",
        "\"loop\"",
        "whether each event loop counts for itself, all \
        together, or each sees the counts of the others late",
    ),
    may(
        "max_in_flight",
        "1 or more, or None",
        "None",
        "the most requests at each target; a full one is not eligible, and when all are full requests wait",
    ),
    may("max_connections", "1 or more, or None", "None", "the most connections to each target"),
    may(
        "max_waiting",
        "0 or more, or None",
        "None",
        "how many may wait while all targets are full; the next is `overloaded`",
    ),
    may("wait_timeout", "a duration or None", "None", "how long one may wait while all targets are full"),
];

/// The node: its policy, the common arguments, the targets.
pub(super) fn balancer<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    targets: Option<Vec<NodeId>>,
    balance: Balance,
    key: Option<KeySource>,
) -> Outcome<'v> {
    let lb = around(call, balance, key);
    place(call, targets, lb)
}

/// A balancer over targets.
pub(super) fn place<'v>(
    call: &mut Call<'v, '_, '_, '_>,
    targets: Option<Vec<NodeId>>,
    lb: Lb,
) -> Outcome<'v> {
    let Some(targets) = targets else { return Ok(None) };
    if call.failed() {
        return Ok(None);
    }
    let list = call.context.state.borrow_mut().graph.list(targets);
    call.node(Spec::Lb(lb), Edge::List(list))
}

/// The policy with all that is around it.
pub(super) fn around(call: &mut Call<'_, '_, '_, '_>, balance: Balance, key: Option<KeySource>) -> Lb {
    let pass_over_ns =
        if call.is_none("pass_over") { 0 } else { call.duration("pass_over").unwrap_or(1_000_000_000) };
    let health = call
        .made::<HealthValue>("health", "a health check", "write `health.http(\"/\")` or `health.tcp()`")
        .map(|h| h.0.clone());
    let (eject, outlier) = eject(call);
    let slow_start = call
        .made::<SlowStartValue>("slow_start", "a slow start", "write `slow_start(60*s)`")
        .map(|s| s.0.clone());
    let subset = subset(call, &balance);
    let (on_empty, spare) = on_empty(call);
    let calm = balance == Balance::First || on_empty != OnEmpty::Fail;
    let panic = match call.is_none("panic") {
        true => None,
        false => call.share("panic"),
    };
    let scope = scope(call, &balance, subset);
    let sticky = call.word("sticky", weir_plan::http::field_name);
    let sticky_key = sticky_key(call, sticky.as_deref());
    let max_in_flight = most(call, "max_in_flight");
    let max_connections = most(call, "max_connections");
    let max_waiting =
        if call.is_none("max_waiting") { None } else { call.whole("max_waiting", 0, i64::MAX as u64) };
    let wait_timeout_ns = call.limit("wait_timeout");
    let unbounded = max_in_flight.is_none() && max_connections.is_none();
    for name in ["max_waiting", "wait_timeout"] {
        if unbounded && call.value_or_none(name).is_some() && !call.failed() {
            let message =
                format!("{} has no effect: nothing waits where targets are never full", call.describe(name));
            call.warn(message, "say when a target is full, as in `max_in_flight=10`");
        }
    }
    Lb {
        balance,
        key,
        pass_over_ns,
        health,
        eject,
        outlier,
        slow_start,
        panic: panic.unwrap_or(if calm { 0.0 } else { 0.5 }),
        on_empty,
        spare,
        sticky,
        sticky_key,
        subset,
        scope,
        max_in_flight,
        max_connections,
        max_waiting,
        wait_timeout_ns,
        probe_cost_ns: 0,
    }
}

/// `sticky_key`: the path of a file that is a key.
fn sticky_key(call: &mut Call<'_, '_, '_, '_>, cookie: Option<&str>) -> Option<String> {
    let name = call.word("sticky_key", sticky::path)?;
    let what = call.describe("sticky_key");
    if cookie.is_none() && call.value_or_none("sticky").is_none() {
        let message = format!("{what} is the key of a cookie, but `sticky` names no cookie");
        call.wrong_but(message, format!("write `sticky=\"srv\", sticky_key=\"{name}\"`, or leave it out"));
        return None;
    }
    let path = beside(call, &name);
    if let Err(why) = sticky::read(&path) {
        call.wrong_but(format!("{what}: the file \"{name}\" {why}"), sticky::REMEDY);
        return None;
    }
    let text = path.to_str().map(str::to_owned);
    if text.is_none() {
        call.wrong(format!(
            "{what}: the folder of \"{name}\" has a name that is not text, and a plan could not keep it"
        ));
    }
    text
}

/// A limit of each target; `None` switches it off.
fn most(call: &mut Call<'_, '_, '_, '_>, name: &str) -> Option<u32> {
    let value = call.value_or_none(name)?;
    if value.get_type() == "int" && value.to_str() == "0" {
        let message = format!("{} must be at least 1, not 0", call.describe(name));
        call.wrong_but(
            message,
            format!("`{name}=None` switches it off; a target of weight 0 is never picked"),
        );
        return None;
    }
    call.count(name, 1, u32::MAX)
}

/// `eject`: either kind.
fn eject(call: &mut Call<'_, '_, '_, '_>) -> (Option<Eject>, Option<Outlier>) {
    let Some(value) = call.value_or_none("eject") else { return (None, None) };
    if let Some(outlier) = value.downcast_ref::<OutlierValue>() {
        return (None, Some(outlier.0.clone()));
    }
    let help = "write `eject(consecutive=5)` or `outlier()`";
    (call.made::<EjectValue>("eject", "an ejection", help).map(|e| e.0.clone()), None)
}

/// `subset`, where the policy takes one.
fn subset(call: &mut Call<'_, '_, '_, '_>, balance: &Balance) -> Option<Subset> {
    let subset = call.made::<SubsetValue>("subset", "a subset", "write `subset.loops()`").map(|s| s.0)?;
    if balance.takes_subsets() {
        return Some(subset);
    }
    let why = match balance {
        Balance::First => "the first target of a loop's subset is not the first of all",
        _ => "a key must meet one target on every loop",
    };
    let message = format!("`{}` takes no `subset`: {why}", call.name());
    call.wrong_but(message, "leave it out, or use a policy that picks by load, in turn or by chance");
    None
}

/// `scope`, as far as the policy takes it.
fn scope(call: &mut Call<'_, '_, '_, '_>, balance: &Balance, subset: Option<Subset>) -> Scope {
    let lagged = call.value("scope").and_then(|value| value.downcast_ref::<ScopeValue>());
    let scope = match lagged {
        Some(value) => value.0,
        None => {
            let words = [("loop", Some(Scope::Loop)), ("process", Some(Scope::Process))];
            call.choice("scope", &words).unwrap_or_default()
        }
    };
    if balance.shares_counts() {
        return scope;
    }
    let what = match scope {
        Scope::Lagged { .. } => {
            "cannot be `lagged`: that is for `lb.least_conn`, `lb.p2c` and `lb.zuul`, which compare counts"
        }
        Scope::Process if subset.is_some() => {
            "cannot be \"process\" with a `subset`: loops with one state prefer the same targets"
        }
        _ => return scope,
    };
    let message = format!("{} {what}", call.describe("scope"));
    call.wrong_but(message, "leave it out, or use `lb.least_conn`, `lb.p2c` or `lb.zuul`");
    Scope::Loop
}

/// `on_empty`, and its node.
fn on_empty(call: &mut Call<'_, '_, '_, '_>) -> (OnEmpty, Option<NodeId>) {
    let Some(value) = call.value("on_empty") else { return (OnEmpty::Fail, None) };
    if let Some(node) = value.downcast_ref::<NodeValue>() {
        return (OnEmpty::Node, Some(node.0));
    }
    match value.unpack_str() {
        Some("fail") => (OnEmpty::Fail, None),
        Some("any") => (OnEmpty::Any, None),
        _ => {
            let help = match list(value) {
                Some(_) => "put a balancer over several: `on_empty=lb.random([a, b])`",
                None => {
                    "use \"fail\" (the error `no_target`), \"any\" (healthy or not), or a node that gets \
                        the request"
                }
            };
            call.unfit_but("on_empty", "\"fail\", \"any\" or a node", value, help);
            (OnEmpty::Fail, None)
        }
    }
}

/// The targets: at least one that can be picked.
pub(super) fn targets(call: &mut Call<'_, '_, '_, '_>) -> Option<Vec<NodeId>> {
    let targets = call.targets_at("targets")?;
    if targets.iter().all(|t| weight(call, *t) == 0.0) {
        let message = format!("`{}` cannot pick any target: all weights are 0", call.name());
        call.wrong(message);
        return None;
    }
    Some(targets)
}

/// The weight of a target.
pub(super) fn weight(call: &Call<'_, '_, '_, '_>, target: NodeId) -> f64 {
    match call.context.state.borrow().graph.spec(target) {
        Some(Spec::Weight { weight }) => *weight,
        _ => 1.0,
    }
}

/// `key` and `bound` of a balancer that hashes.
pub(super) fn hashed(call: &mut Call<'_, '_, '_, '_>) -> (Option<KeySource>, Option<f64>) {
    if call.is_none("key") {
        let message = format!("{} must be a key, not None: it is what is hashed", call.describe("key"));
        call.wrong_but(message, "write `key.header(\"x-user\")`, or leave `key` out, which means the same");
    }
    let key = call.key("key").unwrap_or_else(|| KeySource::Header("x-user".to_owned()));
    let bound = if call.is_none("bound") { None } else { call.real("bound") };
    if let Some(bound) = bound.filter(|b| *b < 1.0) {
        call.wrong_but(
            format!(
                "{} must be at least 1, not {bound}: it is a factor of the mean load",
                call.describe("bound")
            ),
            "write `bound=1.25` for a quarter more than the mean",
        );
    }
    (Some(key), bound)
}

/// `error_hold`, ns; `None` switches it off.
pub(super) fn hold(call: &mut Call<'_, '_, '_, '_>) -> u64 {
    if call.is_none("error_hold") { 0 } else { call.duration("error_hold").unwrap_or(0) }
}
