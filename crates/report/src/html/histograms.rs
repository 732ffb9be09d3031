//! Histograms of latencies, one for each scenario of a page: open where there is one scenario.

use super::shown::Selection;
use crate::chart::{LatencyCount, histogram};
use crate::{escaped, page};
use std::io::{self, Write};
use weir_sim::{LatencyClass, Results};

/// The most scenarios that have one.
const MOST: usize = 12;

const NOTE: &str = "All requests of the first replication, by latency.";
const NOTE_FAILED: &str = "All requests of the first replication, by latency; red: those that failed.";

pub(super) fn write(results: &Results, shown: &Selection, out: &mut dyn Write) -> io::Result<()> {
    let ms = |ns: u64| ns as f64 / 1e6;
    let count = |c: &LatencyClass| LatencyCount {
        from_ms: ms(c.from_ns),
        to_ms: ms(c.to_ns),
        ok: c.ok,
        failed: c.failed,
    };
    let explained = results.scenarios.iter().zip(&shown.labels).filter_map(|(s, label)| {
        let counts: Vec<LatencyCount> = s.explained.as_ref()?.series.latencies.iter().map(count).collect();
        Some((label, counts.iter().any(|c| c.failed > 0), histogram(&counts)?))
    });
    let drawn: Vec<(&String, bool, String)> = explained.take(MOST).collect();
    if drawn.is_empty() {
        return Ok(());
    }
    let note = if drawn.iter().any(|(_, failed, _)| *failed) { NOTE_FAILED } else { NOTE };
    page::section("How long requests take", note, out)?;
    for (label, _, figure) in &drawn {
        if results.scenarios.len() == 1 {
            write!(out, "{figure}")?;
        } else {
            writeln!(out, "<details><summary>{}</summary>\n{figure}</details>", escaped(label))?;
        }
    }
    writeln!(out, "</section>")
}
