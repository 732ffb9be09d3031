//! The table of scenarios: one row each, swept parameters as columns, success and latency with their intervals.

use crate::entry;
use crate::number::{percentage, quantile, with_interval};
use crate::table::{Side, Table};
use weir_sim::Results;

/// The quantiles that the table shows.
pub(crate) const QUANTILES: [&str; 3] = ["p50", "p95", "p99"];

/// All scenarios side by side; latencies are those of all requests, in ms, and beside them those of successes wherever
/// something failed: errors that come at once make those of all requests look better.
pub(crate) fn table(results: &Results) -> Table {
    with(results, some_failed(results))
}

/// Whether a request failed in any scenario.
pub(crate) fn some_failed(results: &Results) -> bool {
    results.scenarios.iter().any(|s| s.requests.failed > 0)
}

fn with(results: &Results, successes: bool) -> Table {
    let swept = entry::swept(results);
    let mut t = Table::new();
    t.column("scenario", Side::Left);
    for p in &swept {
        t.key_column(p, Side::Right);
    }
    for heading in ["success", "mean"].into_iter().chain(QUANTILES) {
        t.column(heading, Side::Right);
    }
    if successes {
        t.column("p50 ok", Side::Right);
        t.column("p99 ok", Side::Right);
    }
    for s in &results.scenarios {
        let mut cells = vec![s.name.clone()];
        cells.extend(swept.iter().map(|p| entry::param(s, p).map(entry::value).unwrap_or_default()));
        cells.push(percentage(&s.success));
        let l = &s.latency_all;
        cells.push(with_interval(&l.mean));
        cells.extend([&l.p50, &l.p95, &l.p99].map(quantile));
        if successes {
            cells.extend([&s.latency_ok.p50, &s.latency_ok.p99].map(quantile));
        }
        t.row(cells);
    }
    t
}
