//! The words that all formats share: a scenario's parameters, label and metrics by name.

use crate::number::{count, duration};
use weir_plan::Value;
use weir_policy::Kind;
use weir_sim::{NodeResult, Results, ScenarioResult};
use weir_stats::{Estimate, Latency};

/// A parameter's value as one writes it after `-p name=`.
pub(crate) fn value(v: &Value) -> String {
    match v {
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(x) => format!("{x:?}"),
        Value::Duration { ns } => duration(*ns),
        Value::Text(s) => s.clone(),
    }
}

/// The parameters of a scenario, or of a point.
type Params = [(String, Value)];

/// How many replications a scenario has.
pub(crate) fn replications(s: &ScenarioResult, results: &Results) -> u32 {
    s.finished.unwrap_or(results.replications)
}

/// The names of all parameters of the scenarios, in order of first mention.
pub(crate) fn params(results: &Results) -> Vec<&str> {
    named(results.scenarios.iter().map(|s| &s.params[..]))
}

fn named<'a>(all: impl Iterator<Item = &'a Params>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in all.flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// The parameters that differ between scenarios: those that were swept.
pub(crate) fn swept(results: &Results) -> Vec<&str> {
    differing(results.scenarios.iter().map(|s| &s.params[..]))
}

/// The names of the parameters that differ, in order of first mention.
pub(crate) fn differing<'a>(all: impl Iterator<Item = &'a Params> + Clone) -> Vec<&'a str> {
    let mut names = named(all.clone());
    names.retain(|name| {
        let mut values = all.clone().map(|params| find(params, name));
        let first = values.next();
        values.any(|v| Some(v) != first)
    });
    names
}

/// A scenario's value of a parameter, if it has it.
pub(crate) fn param<'a>(s: &'a ScenarioResult, name: &str) -> Option<&'a Value> {
    find(&s.params, name)
}

fn find<'a>(params: &'a Params, name: &str) -> Option<&'a Value> {
    params.iter().find(|(n, _)| n == name).map(|(_, v)| v)
}

/// `routers=4, size=2`: a point of a sweep, by its swept parameters.
pub(crate) fn point(params: &Params, swept: &[&str]) -> String {
    let point: Vec<String> =
        swept.iter().filter_map(|name| Some(format!("{name}={}", value(find(params, name)?)))).collect();
    point.join(", ")
}

/// `bamboo (routers=4)`: the name with those parameters that were swept.
pub(crate) fn label(s: &ScenarioResult, swept: &[&str]) -> String {
    let point = point(&s.params, swept);
    if point.is_empty() { s.name.clone() } else { format!("{} ({point})", s.name) }
}

/// The quantiles of a result.
pub(crate) const QUANTILES: [&str; 5] = ["p50", "p90", "p95", "p99", "p99.9"];

/// Every warning once, with the labels of the scenarios that have it; in order of first mention. Warnings about quantiles
/// that are not `shown` are left out. Warnings that differ only in their numbers are one, with the numbers of the first.
pub(crate) fn warnings(results: &Results, shown: &[&str]) -> Vec<(String, Vec<String>)> {
    let swept = swept(results);
    let mut all: Vec<Warning> = Vec::new();
    for s in &results.scenarios {
        for text in s.warnings.iter().filter_map(|w| about_shown(w, s, shown)) {
            let kind = without_numbers(&text);
            let label = label(s, &swept);
            match all.iter_mut().find(|one| one.kind == kind) {
                Some(one) => {
                    one.differ |= one.text != text;
                    one.labels.push(label);
                }
                None => all.push(Warning { text, kind, labels: vec![label], differ: false }),
            }
        }
    }
    let told = |one: Warning| match one.labels.first().filter(|_| one.differ) {
        Some(first) => (format!("{} (numbers of {first})", one.text), one.labels),
        None => (one.text, one.labels),
    };
    all.into_iter().map(told).collect()
}

/// A warning of some scenarios.
struct Warning {
    /// In the words of the first.
    text: String,
    /// The same without its numbers.
    kind: String,
    labels: Vec<String>,
    /// Whether the numbers of the others are other ones.
    differ: bool,
}

/// A warning, as far as it is about quantiles that are shown.
fn about_shown(warning: &str, s: &ScenarioResult, shown: &[&str]) -> Option<String> {
    if weir_sim::too_short(&s.too_short).as_deref() != Some(warning) {
        return Some(warning.to_owned());
    }
    let seen: Vec<&str> = s.too_short.iter().copied().filter(|q| shown.contains(q)).collect();
    weir_sim::too_short(&seen)
}

/// A text with `#` for each number; digits of a name stay (`p99`, `app2`).
fn without_numbers(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut is_name = false;
    for c in text.chars() {
        is_name = c.is_alphabetic() || c == '_' || (is_name && c.is_ascii_digit());
        match c {
            '0'..='9' if !is_name && masked.ends_with('#') => {}
            '0'..='9' if !is_name => masked.push('#'),
            '.' | ',' if masked.ends_with('#') => {}
            c => masked.push(c),
        }
    }
    masked
}

/// `12 refused, 1 timeout`.
pub(crate) fn errors(errors: &[(Kind, u64)]) -> String {
    let kinds: Vec<String> =
        errors.iter().map(|(kind, n)| format!("{} {}", count(*n), kind.name())).collect();
    kinds.join(", ")
}

/// At most four labels; how many more there are.
pub(crate) fn listed(labels: &[String]) -> String {
    const SHOWN: usize = 4;
    let mut s = labels[..labels.len().min(SHOWN)].join(", ");
    if labels.len() > SHOWN {
        s.push_str(&format!(" and {} more", labels.len() - SHOWN));
    }
    s
}

/// The metrics of a scenario as (name, estimate): the paths of the JSON.
pub(crate) fn metrics(s: &ScenarioResult) -> Vec<(String, Estimate)> {
    let r = &s.requests;
    let mut all: Vec<(String, Estimate)> = [
        ("requests.total", r.total),
        ("requests.selected", r.selected),
        ("requests.ok", r.ok),
        ("requests.failed", r.failed),
    ]
    .map(|(name, n)| (name.to_owned(), sum(n)))
    .into();
    all.extend(r.errors.iter().map(|(kind, n)| (format!("requests.errors.{}", kind.name()), sum(*n))));
    all.extend(
        [
            ("success", s.success),
            ("goodput_per_s", s.goodput_per_s),
            ("request_rate_per_s", s.request_rate_per_s),
            ("response_rate_per_s", s.response_rate_per_s),
            ("attempts_per_request", s.attempts_per_request),
        ]
        .map(|(name, e)| (name.to_owned(), e)),
    );
    for (set, latency) in [("all", &s.latency_all), ("ok", &s.latency_ok)] {
        all.extend(quantiles(latency).into_iter().map(|(q, e)| (format!("latency_ms.{set}.{q}"), e)));
    }
    all
}

/// The metrics of a node as (name, estimate): the paths of the JSON.
pub(crate) fn node_metrics(n: &NodeResult) -> Vec<(String, Estimate)> {
    let mut all = vec![("requests".to_owned(), sum(n.requests))];
    all.extend(n.errors.iter().map(|(kind, k)| (format!("errors.{}", kind.name()), sum(*k))));
    all.extend(
        [
            ("utilisation", n.utilisation),
            ("queue.mean", n.queue_mean),
            ("queue.max", number(n.queue_max.map(|n| n as f64))),
            ("wait_ms", n.wait_ms),
            ("service_ms", n.service_ms),
            ("latency_part_ms", n.latency_part_ms),
            ("spread.min", number(n.spread_min)),
            ("spread.max", number(n.spread_max)),
            ("spread.cv", n.spread_cv),
        ]
        .map(|(name, e)| (name.to_owned(), e)),
    );
    all
}

fn quantiles(l: &Latency) -> [(&'static str, Estimate); 8] {
    [
        ("min", number(l.min)),
        ("mean", l.mean),
        ("p50", l.p50),
        ("p90", l.p90),
        ("p95", l.p95),
        ("p99", l.p99),
        ("p999", l.p999),
        ("max", number(l.max)),
    ]
}

/// A number over all replications: it has no interval.
fn number(x: Option<f64>) -> Estimate {
    Estimate { value: x, low: None, high: None }
}

fn sum(n: u64) -> Estimate {
    number(Some(n as f64))
}

/// The line every result ends with.
pub(crate) fn signature(results: &Results) -> String {
    format!("weir {} · seed {} · plan {}", results.version, results.seed, results.plan)
}

/// The parameters that are the same in all scenarios, and what the command line said instead of the file.
pub(crate) fn settings(results: &Results) -> Option<String> {
    // Those that vary are in the labels.
    let swept = swept(results);
    let mut fixed = named(results.scenarios.iter().map(|s| &s.params[..]));
    fixed.retain(|name| !swept.contains(name));
    let params = results.scenarios.first().map(|s| point(&s.params, &fixed)).filter(|p| !p.is_empty());
    let requests = results.requests.map(|n| format!("--requests {n}"));
    let all: Vec<String> = params.into_iter().chain(requests).collect();
    (!all.is_empty()).then(|| format!("with {}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_not_those_of_names() {
        assert_eq!(without_numbers("lost: 17 of 4,000 in 1.5 s"), "lost: # of # in # s");
        assert_eq!(without_numbers("too short for p99 of app_2"), "too short for p99 of app_2");
    }
}
