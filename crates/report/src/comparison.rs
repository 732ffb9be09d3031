//! The table of scenarios: one row each, swept parameters as columns, then what is asked for, with intervals.

use crate::column::Column;
use crate::entry;
use crate::table::{Side, Table};
use weir_plan::Metric;
use weir_sim::Results;

/// The columns where `--columns` names none.
const USUAL: [Metric; 5] = [Metric::Success, Metric::Mean, Metric::P50, Metric::P95, Metric::P99];

/// Those of successes, where something failed: errors that come at once make latencies of all requests look better.
const OF_SUCCESSES: [Metric; 2] = [Metric::OkP50, Metric::OkP99];

/// All scenarios side by side, latencies in ms.
pub(crate) fn table(results: &Results, columns: &[Column]) -> Table {
    let swept = entry::swept(results);
    let mut t = Table::new();
    t.column("scenario", Side::Left);
    for p in &swept {
        t.key_column(p, Side::Right);
    }
    for column in columns {
        t.column(column.heading(), column.side());
    }
    let figures: Vec<Vec<String>> = columns.iter().map(|column| column.cells(&results.scenarios)).collect();
    for (at, s) in results.scenarios.iter().enumerate() {
        let mut cells = vec![s.name.clone()];
        cells.extend(swept.iter().map(|p| entry::param(s, p).map(entry::value).unwrap_or_default()));
        cells.extend(figures.iter().map(|column| column[at].clone()));
        t.row(cells);
    }
    t
}

/// These columns, or the usual ones if there are none.
pub(crate) fn chosen(columns: &[Column], results: &Results) -> Vec<Column> {
    if !columns.is_empty() {
        return columns.to_vec();
    }
    let of_successes = OF_SUCCESSES.into_iter().filter(|_| some_failed(results));
    USUAL.into_iter().chain(of_successes).map(Column::Metric).collect()
}

/// Whether a request failed in any scenario.
pub(crate) fn some_failed(results: &Results) -> bool {
    results.scenarios.iter().any(|s| s.requests.failed > 0)
}

/// The quantiles that these columns show, as [`entry::QUANTILES`] names them.
pub(crate) fn quantiles(columns: &[Column]) -> Vec<&'static str> {
    let is_shown = |q: &&str| columns.iter().any(|column| column.name().trim_start_matches("ok_") == *q);
    entry::QUANTILES.into_iter().filter(is_shown).collect()
}
