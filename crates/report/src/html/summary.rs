//! The answer: the verdict in words, and a few figures.

use super::shown::Selection;
use crate::number::{count, percentage, quantile, with_interval};
use crate::page;
use std::io::{self, Write};
use weir_sim::{Results, ScenarioResult};
use weir_stats::Estimate;

pub(super) fn write(
    results: &Results,
    shown: &Selection,
    verdict: &[String],
    out: &mut dyn Write,
) -> io::Result<()> {
    let all = &results.scenarios;
    let Some(first) = all.first() else { return Ok(()) };
    let of = |what: fn(&ScenarioResult) -> u64| count(all.iter().map(what).sum());
    let requests = format!(
        "{} of {} requests count, in {} of {}",
        of(|s| s.requests.selected),
        of(|s| s.requests.total),
        many(results.replications as usize, "replication"),
        many(all.len(), "scenario")
    );
    page::section("Summary", "", out)?;
    if !verdict.is_empty() {
        writeln!(out, "<p class=\"verdict\">{}</p>", crate::escaped(&verdict.join(" ")))?;
    }
    writeln!(out, "<p class=\"note\">{requests}</p>")?;
    let tiles = if all.len() == 1 { one(first) } else { several(all, shown) };
    writeln!(out, "<div class=\"tiles\">")?;
    for (value, what) in tiles {
        let (value, what) = (crate::escaped(&value), crate::escaped(&what));
        writeln!(out, "<div class=\"tile\"><b>{value}</b><span>{what}</span></div>")?;
    }
    writeln!(out, "</div>\n</section>")
}

fn many(n: usize, what: &str) -> String {
    format!("{} {what}{}", count(n as u64), if n == 1 { "" } else { "s" })
}

fn one(s: &ScenarioResult) -> Vec<(String, String)> {
    let l = &s.latency_all;
    let mut tiles = vec![
        (percentage(&s.success), "succeeded".to_owned()),
        (with_interval(&l.mean), "mean, ms".to_owned()),
        (quantile(&l.p50), "p50, ms".to_owned()),
        (quantile(&l.p95), "p95, ms".to_owned()),
        (quantile(&l.p99), "p99, ms".to_owned()),
    ];
    if s.requests.failed > 0 {
        tiles.push((quantile(&s.latency_ok.p99), "p99 of the successes, ms".to_owned()));
    }
    tiles.push((with_interval(&s.goodput_per_s), "goodput per second".to_owned()));
    tiles
}

/// Where the extremes are.
fn several(all: &[ScenarioResult], shown: &Selection) -> Vec<(String, String)> {
    let mut tiles = Vec::new();
    let mut extremes = |what: &str, of: fn(&ScenarioResult) -> Estimate, words: fn(&Estimate) -> String| {
        let known = || all.iter().enumerate().filter_map(|(at, s)| Some((at, of(s), of(s).value?)));
        let ordered = |a: &(usize, Estimate, f64), b: &(usize, Estimate, f64)| a.2.total_cmp(&b.2);
        // Of equals the first.
        let (low, high) = (known().min_by(ordered), known().rev().max_by(ordered));
        let (Some((least, low, _)), Some((most, high, _))) = (low, high) else { return };
        let apart = low.high.zip(high.low).is_none_or(|(low, high)| low < high);
        if apart {
            tiles.push((words(&low), format!("lowest {what}: {}", shown.labels[least])));
            tiles.push((words(&high), format!("highest {what}: {}", shown.labels[most])));
        } else {
            tiles.push((words(&low), format!("{what}: no measurable difference")));
        }
    };
    extremes("p50, ms", |s| s.latency_all.p50, quantile);
    extremes("p99, ms", |s| s.latency_all.p99, quantile);
    if all.iter().all(|s| s.requests.failed == 0) {
        tiles.push(("100 %".to_owned(), "succeeded, in each".to_owned()));
    } else {
        extremes("p99 of successes, ms", |s| s.latency_ok.p99, quantile);
        extremes("success", |s| s.success, percentage);
    }
    tiles
}
