//! `retry(attempts, node, on=[...], exclude="tried"|"connect_failed"|"none", backoff=0*s, ...)`: further attempts.

use super::{Description, Function, Group, NAME, examples, may, maybe, need};
use crate::language::call::{Call, Outcome, describe, list};
use starlark::values::{Value, ValueLike};
use std::collections::BTreeSet;
use weir_plan::ranges::{can_retry_on, why_never_retried};
use weir_plan::suggest;
use weir_plan::{Edge, Spec};
use weir_policy::Kind;
use weir_policy::config::{Exclude, Retry, Work};

pub(super) static FUNCTIONS: [Function; 1] = [Function {
    name: "retry",
    about: Description {
        group: Group::Pass,
        meaning: "Retries after certain errors.",
        simulated: "after an error of a kind in `on` the request goes through the node behind it \
                again, at once or after a backoff; the last error is the answer",
        served: "the same, until the first byte of a response has been sent to the client",
        draws: "each backoff; with `work=\"redraw\"` each attempt draws new work",
        example: examples::RETRY,
    },
    args: &[
        need("attempts", "1 or more", "how many attempts in all"),
        need("node", "a node", "the next node"),
        may(
            "on",
            "a list of kinds and statuses",
            "[\"connect_failed\", \"refused\", \"reset\"]",
            "which errors are retried: kinds of error, and status numbers such as `503`",
        ),
        may(
            "exclude",
            "\"tried\" | \"connect_failed\" | \"none\"",
            "\"tried\"",
            "which targets a balancer behind it avoids while others remain: all that this request has tried, \
                those it could not connect to, or none",
        ),
        may(
            "methods",
            "\"idempotent\" | \"any\"",
            "\"idempotent\"",
            "whether requests such as POST are retried once they may have been processed",
        ),
        may(
            "backoff",
            "a duration",
            "0*s",
            "before attempt k it waits for a uniform draw from 0 to \
                `backoff`·2^(k−2), at most `backoff_max`",
        ),
        maybe("backoff_max", "a duration", "10 × backoff", "the longest backoff"),
        may(
            "budget",
            "budget(...)",
            "None",
            "the budget to which further attempts are charged; `None`: no limit",
        ),
        may(
            "work",
            "\"redraw\" | \"same\"",
            "\"redraw\"",
            "whether each attempt draws new work \
                or repeats the work of the first",
        ),
        may(
            "replay",
            "a size",
            "64*KiB",
            "how much of a request's body is kept for further \
                attempts; a request with a longer one is not retried",
        ),
        NAME,
    ],
    more: &[],
    make,
}];

fn make<'v>(call: &mut Call<'v, '_, '_, '_>) -> Outcome<'v> {
    let (attempts, node) = (call.count("attempts", 1, 1_000_000), call.node_at("node"));
    let (on, on_status) = on(call);
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
    let methods = call.methods();
    let work = call
        .choice("work", &[("redraw", Some(Work::Redraw)), ("same", Some(Work::Same))])
        .unwrap_or_default();
    let (backoff_ns, backoff_max_ns) = backoff(call);
    let (budget, replay_bytes) = (call.budget(), call.replay());
    let (Some(attempts), Some(node)) = (attempts, node) else { return Ok(None) };
    if attempts == 1 && budget.is_some() && !call.failed() {
        call.warn(
            "`budget` of `retry` has no effect: with one attempt nothing is retried",
            "use `retry(2, ...)` or more, or leave `budget` out",
        );
    }
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
    call.node(Spec::Retry(retry), Edge::Node(node))
}

/// `backoff` and `backoff_max`, ns; both 0: at once. Ten times the one is the default of the other.
fn backoff(call: &mut Call<'_, '_, '_, '_>) -> (u64, u64) {
    let each = if call.is_none("backoff") { 0 } else { call.duration("backoff").unwrap_or(0) };
    let most = if call.is_none("backoff_max") { None } else { call.positive_duration("backoff_max") };
    if each == 0 {
        if most.is_some() && !call.failed() {
            call.warn(
                "`backoff_max` of `retry` has no effect: without `backoff` attempts follow at once",
                "set the longest first backoff, as in `backoff=10*ms`",
            );
        }
        return (0, 0);
    }
    (each, most.unwrap_or(each.saturating_mul(10).min(i64::MAX as u64)))
}

const ON: &str = "write `on=[\"connect_failed\", \"timeout\", 503]`";

/// The kinds and the status numbers of `on`, each once: kinds in the order of `docs/spec/language.md#kinds`, numbers
/// ascending.
fn on(call: &mut Call<'_, '_, '_, '_>) -> (Vec<Kind>, Vec<u16>) {
    let (mut kinds, mut statuses) = (Vec::new(), BTreeSet::new());
    let Some(value) = call.value("on") else {
        return (vec![Kind::ConnectFailed, Kind::Refused, Kind::Reset], Vec::new());
    };
    let Some(items) = list(value) else {
        let one = value.unpack_str().is_some() || value.get_type() == "int";
        let help = match value.unpack_str().map(|text| (text, kind_near(text))) {
            Some((_, Some(kind))) => format!("write `on=[\"{kind}\"]`"),
            _ if one => format!("put it in brackets: `on=[{}]`", value.to_repr()),
            _ => ON.to_owned(),
        };
        call.unfit_but("on", "a list of kinds of error and status numbers", value, &help);
        return (kinds, Vec::new());
    };
    for item in items {
        match item.unpack_str().map(|t| (t, Kind::from_name(t))) {
            Some((_, Some(kind))) => match why_never_retried(kind) {
                Some((why, help)) => {
                    call.wrong_but(
                        format!("`on` of `retry`: \"{}\" is never retried: {why}", kind.name()),
                        help,
                    );
                }
                None => kinds.push(kind),
            },
            Some((text, None)) => no_kind(call, text),
            None if item.get_type() == "int" => statuses.extend(status(call, item)),
            None if item.downcast_ref::<crate::language::value::Poison>().is_some() => call.poison(),
            None => call.wrong(format!(
                "`on` of `retry` must be a list of kinds of error and status numbers, but holds {}",
                describe(item)
            )),
        }
    }
    (Kind::ALL.into_iter().filter(|k| kinds.contains(k)).collect(), statuses.into_iter().collect())
}

fn no_kind(call: &mut Call<'_, '_, '_, '_>, text: &str) {
    let shown = weir_plan::http::short(text);
    if text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit()) {
        let message = format!("`on` of `retry`: \"{shown}\" is not a kind of error");
        return call.wrong_but(message, format!("for the status write it as a number: {shown}"));
    }
    let help = kind_near(text).map(|n| format!("did you mean \"{n}\"?"));
    let retried = || Kind::ALL.into_iter().filter(|kind| why_never_retried(*kind).is_none()).map(Kind::name);
    let help = help.unwrap_or_else(|| format!("use {}", suggest::either(&retried().collect::<Vec<_>>())));
    call.wrong_but(format!("`on` of `retry`: \"{shown}\" is not a kind of error"), help);
}

/// The kind that a word means or resembles: `5xx` is a part of `status_5xx`.
fn kind_near(text: &str) -> Option<&'static str> {
    let names = Kind::ALL.map(Kind::name);
    let word = text.to_ascii_lowercase();
    let part = || names.into_iter().find(|n| word.len() > 2 && n.contains(&word));
    names.into_iter().find(|n| *n == word).or_else(part).or_else(|| suggest::nearest(&word, names))
}

/// A status that an answer can have.
fn status<'v>(call: &mut Call<'v, '_, '_, '_>, item: Value<'v>) -> Option<u16> {
    let number = item.to_str().parse::<u16>().ok().filter(|n| can_retry_on(*n));
    if number.is_none() {
        call.wrong_but(
            format!("`on` of `retry`: {} is not the status of an error or a redirection", describe(item)),
            "statuses are 300 to 599, such as 503",
        );
    }
    number
}
