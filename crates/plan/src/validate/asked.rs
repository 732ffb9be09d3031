//! Checks of requests and of what depends on them: conditions, keys, budgets, further attempts.

use super::around::{above_0, between};
use super::spec::{duration, not_negative};
use crate::http::{self, InvalidWord};
use crate::path;
use crate::ranges::{MOST_HEDGES, MOST_KEYS, STEEPEST, can_retry_on, why_never_retried};
use crate::{HedgeSpec, KeySource, Keys, Recording, RequestShape, RouteCondition, Scenario};
use weir_model::Traffic;
use weir_policy::config::{Budget, Rate, Retry};

type Checked = Result<(), String>;

/// A word that passes a check.
pub(super) fn word(what: &str, text: &str, check: fn(&str) -> Result<(), InvalidWord>) -> Checked {
    check(text).map_err(|e| format!("{what}: {e}"))
}

/// The name of a header: in lower case.
pub(super) fn lower(what: &str, name: &str, check: fn(&str) -> Result<(), InvalidWord>) -> Checked {
    word(what, name, check)?;
    if name.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(format!("{what}: \"{name}\" must be in lower case"));
    }
    Ok(())
}

/// Where a key comes from.
pub(super) fn key(source: &KeySource) -> Checked {
    match source {
        KeySource::Header(name) => lower("key", name, http::seen_field),
        KeySource::Cookie(name) => word("key", name, http::field_name),
        KeySource::Path | KeySource::Client => Ok(()),
    }
}

/// The conditions of a route.
pub(super) fn rules(rules: &[RouteCondition]) -> Checked {
    if rules.is_empty() {
        return Err("there must be at least one rule".to_owned());
    }
    rules.iter().enumerate().try_for_each(|(i, r)| rule(r).map_err(|why| format!("rules[{i}].{why}")))
}

fn rule(rule: &RouteCondition) -> Checked {
    rule.path.iter().try_for_each(|p| compared(p, path::written::pattern))?;
    rule.method.iter().try_for_each(|m| word("method", m, http::routed_method))?;
    rule.host.iter().try_for_each(|h| lower("host", h, http::host_pattern))?;
    for (name, value) in &rule.header {
        lower("header", name, http::seen_field)?;
        word("header", value, http::value_pattern)?;
    }
    rule.client_name.iter().try_for_each(|name| word("client_name", name, http::client_name))?;
    rule.client.iter().try_for_each(|c| word("client", c, |text| http::network(text).map(|_| ())))
}

/// A path, or its beginning, that requests are compared with: in normal form.
pub(super) fn compared(text: &str, check: fn(&str) -> Result<(), InvalidWord>) -> Checked {
    word("path", text, check)?;
    match path::normal(text) {
        normal if normal == text => Ok(()),
        normal => Err(format!("path: \"{text}\" is compared as \"{normal}\": write it like that")),
    }
}

/// The weights of a split, or of a mix.
pub(super) fn weights(mut all: impl Iterator<Item = f64> + Clone) -> Checked {
    all.clone().try_for_each(|w| not_negative("a weight", w))?;
    if all.all(|w| w == 0.0) { Err("all weights are 0".to_owned()) } else { Ok(()) }
}

/// A token bucket.
pub(super) fn rate(rate: &Rate) -> Checked {
    super::spec::positive("per_s", rate.per_s)?;
    if rate.burst.is_finite() && rate.burst >= 1.0 {
        Ok(())
    } else {
        Err(format!("burst must be finite and at least 1, not {}", rate.burst))
    }
}

/// A hedge.
pub(super) fn hedge(h: &HedgeSpec) -> Checked {
    duration(h.hedge.after_ns)?;
    between("attempts", u64::from(h.hedge.attempts), 1, u64::from(MOST_HEDGES))?;
    bytes("replay_bytes", h.replay_bytes)?;
    budget(h.budget.as_ref())
}

/// A retry.
pub(super) fn retry(retry: &Retry) -> Checked {
    duration(retry.backoff_ns)?;
    duration(retry.backoff_max_ns)?;
    if retry.attempts == 0 || retry.attempts > 1_000_000 {
        return Err("attempts must be 1 to 1000000".to_owned());
    }
    if (retry.backoff_ns == 0) != (retry.backoff_max_ns == 0) {
        return Err("backoff_ns and backoff_max_ns must both be 0, or both above 0".to_owned());
    }
    if let Some(status) = retry.on_status.iter().find(|s| !can_retry_on(**s)) {
        return Err(format!("on_status: {status} is not the status of an error or a redirection"));
    }
    if let Some((kind, (why, _))) = retry.on.iter().find_map(|kind| Some((kind, why_never_retried(*kind)?))) {
        return Err(format!("on: \"{}\" is never retried: {why}", kind.name()));
    }
    bytes("replay_bytes", retry.replay_bytes)?;
    budget(retry.budget.as_ref())
}

fn budget(budget: Option<&Budget>) -> Checked {
    let Some(budget) = budget else { return Ok(()) };
    not_negative("budget.ratio", budget.ratio)?;
    not_negative("budget.min_per_s", budget.min_per_s)?;
    above_0("budget.window_ns", budget.window_ns)
}

fn bytes(what: &str, n: u64) -> Checked {
    if i64::try_from(n).is_ok() { Ok(()) } else { Err(format!("{what}: {n} bytes are too many")) }
}

/// Checks the arrivals.
pub(super) fn mix(mix: &[RequestShape]) -> Checked {
    for (i, shape) in mix.iter().enumerate() {
        request(shape).map_err(|why| format!("[{i}].{why}"))?;
    }
    if mix.is_empty() { Ok(()) } else { weights(mix.iter().map(|s| s.weight)) }
}

/// Checks the rows of a trace.
pub(super) fn recorded(recorded: &Recording, scenario: &Scenario) -> Checked {
    let Traffic::Trace { arrivals_ns, .. } = &scenario.traffic else {
        return Err("only a trace has rows".to_owned());
    };
    let Recording { kinds, keys, senders } = recorded;
    let (rows, kinds_at_most) = (arrivals_ns.len(), scenario.mix.len() as u64);
    if kinds.len() != rows || !(senders.is_empty() || senders.len() == rows) {
        return Err("it must have as many rows as the trace has instants".to_owned());
    }
    let outside = |at: &u32, of: u64| u64::from(*at) >= of;
    if kinds.iter().any(|k| outside(k, kinds_at_most))
        || senders.iter().flatten().any(|k| outside(k, keys.len() as u64))
    {
        return Err("a row names a kind or a key that does not exist".to_owned());
    }
    Ok(())
}

fn request(shape: &RequestShape) -> Checked {
    word("method", &shape.method, http::method)?;
    word("path", &shape.path, path::written::target)?;
    shape.host.as_ref().map_or(Ok(()), |h| lower("host", h, http::host))?;
    for (name, value) in &shape.headers {
        lower("headers", name, http::field_name)?;
        word("headers", value, http::field_value)?;
    }
    bytes("body_bytes", shape.body_bytes)?;
    match shape.key {
        None => Ok(()),
        Some(Keys::Uniform(n)) => between("key", n, 1, MOST_KEYS),
        Some(Keys::Zipf(n, s)) => {
            between("key", n, 1, MOST_KEYS)?;
            if (0.0..=STEEPEST).contains(&s) {
                Ok(())
            } else {
                Err(format!("key: the exponent must be between 0 and {STEEPEST}, not {s}"))
            }
        }
    }
}
