//! `retry(attempts, node, on=[...], exclude="tried"|"connect_failed"|"none", backoff=0*s, ...)`: further attempts.
//!
//! - In virtual time: after an error of a kind in `on`, the request goes through the node behind again, at once or after
//!   a backoff.
//! - In the proxy: the same, as long as nothing of the response went on.
//! - Draws: each backoff; with `work="redraw"` each attempt is a way of its own.

use super::{Default, Function, later, may, need};
use crate::call::{Call, Outcome, describe, list};
use crate::plan::{Spec, To};
use crate::suggest;
use starlark::values::ValueLike;
use weir_policy::Kind;
use weir_policy::config::{Exclude, Methods, Retry, Work};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "retry",
    args: &[
        need("attempts"),
        need("node"),
        may("on"),
        may("exclude"),
        may("methods"),
        may("backoff"),
        may("backoff_max"),
        later("budget", Default::None),
        may("work"),
        later("replay", Default::Int(64 * 1024)),
        may("name"),
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (attempts, node) = (call.count("attempts", 1, 1_000_000), call.node_at("node"));
    let on = on(call);
    let exclude = call
        .choice(
            "exclude",
            &[
                ("tried", Some(Exclude::Tried)),
                ("connect_failed", Some(Exclude::ConnectFailed)),
                ("none", Some(Exclude::None)),
            ],
        )
        .unwrap_or_default();
    let methods = call
        .choice("methods", &[("idempotent", Some(Methods::Idempotent)), ("any", Some(Methods::Any))])
        .unwrap_or_default();
    let work = call
        .choice("work", &[("redraw", Some(Work::Redraw)), ("same", Some(Work::Same))])
        .unwrap_or_default();
    let (backoff_ns, backoff_max_ns) = backoff(call);
    let (Some(attempts), Some(node)) = (attempts, node) else { return Ok(None) };
    let (on_status, budget, replay_bytes) = (Vec::new(), None, 64 * 1024);
    let retry = Retry {
        attempts,
        on,
        exclude,
        methods,
        work,
        backoff_ns,
        backoff_max_ns,
        on_status,
        budget,
        replay_bytes,
    };
    call.node(Spec::Retry(retry), To::Node(node))
}

/// `backoff` and `backoff_max`, ns; both 0: at once. Ten times the one is the default of the other.
fn backoff(call: &mut Call<'_, '_, '_, '_>) -> (u64, u64) {
    let each = if call.is_none("backoff") { 0 } else { call.duration("backoff").unwrap_or(0) };
    let most = if call.is_none("backoff_max") { None } else { call.positive_duration("backoff_max") };
    if each == 0 {
        if most.is_some() && !call.failed() {
            call.warn(
                "`backoff_max` of `retry` has no effect: without `backoff` attempts follow at once",
                "say how long the first backoff is at most, as in `backoff=10*ms`",
            );
        }
        return (0, 0);
    }
    (each, most.unwrap_or(each.saturating_mul(10).min(i64::MAX as u64)))
}

/// The kinds of `on`, each once, in the order of the contract's table.
fn on(call: &mut Call<'_, '_, '_, '_>) -> Vec<Kind> {
    let Some(value) = call.value("on") else { return vec![Kind::ConnectFailed, Kind::Refused, Kind::Reset] };
    let Some(items) = list(value) else {
        call.unfit("on", "a list of kinds of error", value);
        return Vec::new();
    };
    let mut kinds = Vec::new();
    for item in items {
        match item.unpack_str().map(|t| (t, Kind::from_name(t))) {
            Some((_, Some(kind))) => kinds.push(kind),
            Some((text, None)) => {
                let names = Kind::ALL.map(Kind::name);
                let help = suggest::nearest(text, names).map(|n| format!("did you mean \"{n}\"?"));
                let help = help.unwrap_or_else(|| format!("take {}", suggest::either(&names)));
                call.wrong_but(format!("`on` of `retry`: \"{text}\" is no kind of error"), help);
            }
            None if item.get_type() == "int" => {
                call.wrong("`on` of `retry`: status numbers are not built yet")
            }
            None if item.downcast_ref::<crate::value::Poison>().is_some() => call.poison(),
            None => call.wrong(format!(
                "`on` of `retry` must be a list of kinds of error, and holds {}",
                describe(item)
            )),
        }
    }
    Kind::ALL.into_iter().filter(|k| kinds.contains(k)).collect()
}
