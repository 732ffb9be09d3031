//! The results of a load run: the JSON of `docs/spec/language.md#load` (`weir.load/1`), a table, and each request as
//! CSV.

use crate::json::{Lines, Params};
use crate::number::{self, count};
use crate::table::{Side, Table};
use crate::{expected, over_time, wrap};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use weir_load::{Latency, Outcome, Verdict};
use weir_sim::{ExpectationResult, OverTime};
use weir_stats::Histogram;

pub(crate) fn json(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let Outcome { to, scenario, seed, requests, lag, .. } = outcome;
    let errors: Map<String, Value> =
        requests.errors.iter().map(|(kind, n)| (kind.name().to_owned(), json!(n))).collect();
    let ms = |ns: Option<f64>| ns.map(|ns| ns / 1e6);
    let mut document = json!({
        "schema": "weir.load/1",
        "version": env!("CARGO_PKG_VERSION"),
        "to": to,
        "scenario": scenario,
        "seed": seed,
        "requests": {
            "total": requests.total,
            "selected": requests.selected,
            "ok": requests.ok,
            "failed": requests.failed(),
            "errors": errors,
        },
        "success": success(outcome),
        "rate_per_s": outcome.rate_per_s,
        "latency_ms": { "all": latency(&outcome.all), "ok": latency(&outcome.ok) },
        "lag_ms": {
            "p50": ms(lag.p50_ns),
            "p99": ms(lag.p99_ns),
            "max": ms(lag.max_ns.map(|ns| ns as f64)),
        },
        "connections": outcome.connections,
        "void": outcome.void,
        "warnings": outcome.warnings,
    });
    if let (Value::Object(map), false) = (&mut document, outcome.expectations.is_empty()) {
        let judged =
            outcome.expectations.iter().map(|v| expectation(outcome, v)).collect::<Result<_, _>>()?;
        map.insert("expectations".to_owned(), Value::Array(judged));
    }
    if let (Value::Object(map), Some(of)) = (&mut document, parts(outcome)) {
        map.insert("over_time".to_owned(), serde_json::to_value(over_time::OneRun(&of))?);
    }
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Lines::indented());
    document.serialize(&mut serializer).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// The run part by part, if that was wanted.
pub(crate) fn parts(outcome: &Outcome) -> Option<OverTime> {
    outcome.over_time.as_ref().map(|of| OverTime::of_one_run(of.every_ns, &of.parts))
}

/// Its worst part, in words.
pub(crate) fn worst_part(of: &OverTime) -> Option<String> {
    over_time::worst_of(of, "peaks")
}

/// An expectation as in the JSON of a simulation.
fn expectation(outcome: &Outcome, v: &Verdict) -> serde_json::Result<Value> {
    Ok(json!({
        "scenario": outcome.scenario,
        "params": serde_json::to_value(Params(&outcome.params))?,
        "expect": v.expect,
        "value": { "value": v.value.value, "low": v.value.low, "high": v.value.high },
        "holds": v.holds,
    }))
}

fn latency(samples: &Histogram) -> Value {
    let of = Latency::new(samples);
    let mut map = Map::new();
    map.insert("min".to_owned(), json!(of.min));
    map.insert("mean".to_owned(), json!(of.mean));
    for ((name, _), value) in Latency::QUANTILES.iter().zip(of.quantiles) {
        map.insert((*name).to_owned(), json!(value));
    }
    map.insert("max".to_owned(), json!(of.max));
    Value::Object(map)
}

/// The share of requests that succeeded; `None`: none counts.
pub(crate) fn success(outcome: &Outcome) -> Option<f64> {
    let r = &outcome.requests;
    (r.selected > 0).then(|| r.ok as f64 / r.selected as f64)
}

pub(crate) fn table(outcome: &Outcome, width: usize, out: &mut dyn Write) -> io::Result<()> {
    if let Some(why) = &outcome.void {
        let line =
            format!("void: {why}; this machine was too busy for this rate, so the figures mean nothing");
        write!(out, "{}", wrap::wrapped_to(&line, width))?;
    }
    for warning in &outcome.warnings {
        write!(out, "{}", wrap::wrapped_to(&format!("warning: {warning}"), width))?;
    }
    if outcome.void.is_some() || !outcome.warnings.is_empty() {
        writeln!(out)?;
    }
    writeln!(out, "{} to {}", outcome.scenario, outcome.to)?;
    for line in lines(outcome) {
        writeln!(out, "  {line}")?;
    }
    if let Some(line) = parts(outcome).as_ref().and_then(worst_part) {
        write!(out, "{}", wrap::indented(&wrap::wrapped_to(&line, width - 2)))?;
    }
    writeln!(out, "\n{}", latencies(outcome).text(width))?;
    expected::write_rows(expected::rows_of(&judged(outcome)), width, out)?;
    writeln!(out, "weir {} · seed {}", env!("CARGO_PKG_VERSION"), outcome.seed)
}

/// What a run was, in words.
pub(crate) fn lines(outcome: &Outcome) -> Vec<String> {
    let r = &outcome.requests;
    let share = success(outcome).map(|share| share * 100.0);
    let mut lines = vec![format!(
        "{} of {} requests count; {} % succeeded",
        count(r.selected),
        count(r.total),
        number::plain(share)
    )];
    if r.failed() > 0 {
        let kinds: Vec<String> =
            r.errors.iter().map(|(kind, n)| format!("{} {}", count(*n), kind.name())).collect();
        lines.push(format!("{} failed: {}", count(r.failed()), kinds.join(", ")));
    }
    let lag = |ns: Option<f64>| number::plain(ns.map(|ns| ns / 1e6));
    lines.push(format!(
        "{} requests/s on {} connections; sent late by {} ms (p50), {} ms (p99)",
        number::plain(outcome.rate_per_s),
        count(outcome.connections),
        lag(outcome.lag.p50_ns),
        lag(outcome.lag.p99_ns)
    ));
    lines
}

/// What does not hold, or cannot be decided: one sentence each.
pub(crate) fn unmet(outcome: &Outcome) -> Vec<String> {
    expected::unmet_of(&judged(outcome))
}

/// The verdicts on the scenario's expectations, as tables have them.
pub(crate) fn judged(outcome: &Outcome) -> Vec<(String, ExpectationResult)> {
    let result = |v: &Verdict| {
        let Verdict { expect, value, metric, holds, span } = v.clone();
        (outcome.scenario.clone(), ExpectationResult { expect, value, metric, holds, span })
    };
    outcome.expectations.iter().map(result).collect()
}

pub(crate) fn latencies(outcome: &Outcome) -> Table {
    let mut t = Table::new();
    t.column("latency ms", Side::Left);
    for heading in ["min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"] {
        t.column(heading, Side::Right);
    }
    let mut row = |name: &str, samples: &Histogram| {
        let of = Latency::new(samples);
        let cells = [of.min, of.mean].into_iter().chain(of.quantiles).chain([of.max]).map(number::plain);
        t.row(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    row("all", &outcome.all);
    if outcome.requests.failed() > 0 {
        row("ok", &outcome.ok);
    }
    t
}

pub(crate) fn rows(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "request,intended_ns,sent_ns,ended_ns,latency_ns,status,error,selected")?;
    for row in &outcome.rows {
        let sent = row.sent_ns.map_or_else(String::new, |ns| ns.to_string());
        let status = if row.status == 0 { String::new() } else { row.status.to_string() };
        let error = row.error.map_or("", |kind| kind.name());
        let latency = row.ended_ns.saturating_sub(row.intended_ns);
        let (request, intended, ended, selected) = (row.request, row.intended_ns, row.ended_ns, row.selected);
        writeln!(out, "{request},{intended},{sent},{ended},{latency},{status},{error},{selected}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(outcome: &Outcome) -> (String, Value) {
        let mut out = Vec::new();
        json(outcome, &mut out).expect("memory");
        let text = String::from_utf8(out).expect("UTF-8");
        let value = serde_json::from_str(&text).expect("JSON");
        (text, value)
    }

    #[test]
    fn without_parts_all_is_on_lines_of_its_own() {
        let warnings = vec!["one".to_owned(), "two".to_owned()];
        let (text, value) = written(&Outcome { warnings, ..Outcome::default() });
        assert_eq!(text, serde_json::to_string_pretty(&value).expect("JSON") + "\n");
        assert!(value.get("over_time").is_none());
    }

    #[test]
    fn parts_are_as_clients_see_them_with_their_numbers_on_one_line() {
        let parts = vec![Default::default(); 2];
        let over_time = Some(weir_load::OverTime { every_ns: 500_000_000, parts });
        let (text, value) = written(&Outcome { over_time, ..Outcome::default() });
        let of = value["over_time"].as_object().expect("an object");
        let keys: Vec<&str> = of.keys().map(String::as_str).collect();
        let known = ["arrivals_per_s", "connections", "errors", "every_s", "in_flight", "latency_ms", "ok"];
        assert_eq!(keys, [&known[..], &["opened_per_s", "peak", "responses_per_s"]].concat());
        assert_eq!((&of["every_s"], &of["latency_ms"]["p999"]), (&json!(0.5), &json!([null, null])));
        assert_eq!(of["peak"]["max"], json!({"value": null, "low": null, "high": null}));
        assert!(text.contains("    \"arrivals_per_s\": [0.0, 0.0],\n"), "{text}");
    }
}
