//! The answer in a few figures.

use super::shown::Shown;
use crate::number::{count, percentage, quantile, with_interval};
use crate::page;
use std::io::{self, Write};
use weir_sim::{Results, ScenarioResult};
use weir_stats::Estimate;

pub(super) fn write(results: &Results, shown: &Shown, out: &mut dyn Write) -> io::Result<()> {
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
    page::section("Summary", &requests, out)?;
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
fn several(all: &[ScenarioResult], shown: &Shown) -> Vec<(String, String)> {
    let mut tiles = Vec::new();
    let mut extreme =
        |what: &str, of: fn(&ScenarioResult) -> Estimate, words: fn(&Estimate) -> String, low| {
            let known = all.iter().enumerate().filter_map(|(at, s)| Some((at, of(s), of(s).value?)));
            let ordered = |a: &(usize, Estimate, f64), b: &(usize, Estimate, f64)| a.2.total_cmp(&b.2);
            // Of equals the first.
            let found = if low { known.min_by(ordered) } else { known.rev().max_by(ordered) };
            if let Some((at, e, _)) = found {
                tiles.push((words(&e), format!("{what}: {}", shown.labels[at])));
            }
        };
    extreme("lowest p50, ms", |s| s.latency_all.p50, quantile, true);
    extreme("highest p50, ms", |s| s.latency_all.p50, quantile, false);
    extreme("lowest p99, ms", |s| s.latency_all.p99, quantile, true);
    extreme("highest p99, ms", |s| s.latency_all.p99, quantile, false);
    if all.iter().all(|s| s.requests.failed == 0) {
        tiles.push(("100 %".to_owned(), "succeeded, in each".to_owned()));
    } else {
        extreme("highest p99 of successes, ms", |s| s.latency_ok.p99, quantile, false);
        extreme("lowest success", |s| s.success, percentage, true);
        extreme("highest success", |s| s.success, percentage, false);
    }
    tiles
}
