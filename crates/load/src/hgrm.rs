//! Latencies in the form that HdrHistogram's plotter reads: its percentile distribution, in ms.

use crate::outcome::Row;
use hdrhistogram::Histogram;
use std::io::{self, Write};

/// Significant digits of a latency.
const DIGITS: u8 = 3;
/// Lines between two halvings of the remainder.
const TICKS: u32 = 5;

/// Writes the distribution of the latencies of the requests that count.
///
/// # Errors
/// Errors of `out`.
pub fn hgrm(rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let mut latencies = Histogram::<u64>::new(DIGITS).map_err(io::Error::other)?;
    for row in rows.iter().filter(|row| row.selected) {
        latencies.record(row.ended_ns.saturating_sub(row.intended_ns)).map_err(io::Error::other)?;
    }
    let ms = |ns: f64| ns / 1e6;
    writeln!(out, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")?;
    let mut below = 0;
    for step in latencies.iter_quantiles(TICKS) {
        below += step.count_since_last_iteration();
        let (value, share) = (ms(step.value_iterated_to() as f64), step.quantile_iterated_to());
        if share < 1.0 {
            writeln!(out, "{value:>12.3} {share:>14.12} {below:>10} {:>14.2}", 1.0 / (1.0 - share))?;
        } else {
            writeln!(out, "{value:>12.3} {share:>14.12} {below:>10}")?;
        }
    }
    writeln!(
        out,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n#[Max     = {:>12.3}, Total count    = {:>12}]",
        ms(latencies.mean()),
        ms(latencies.stdev()),
        ms(latencies.max() as f64),
        latencies.len()
    )?;
    writeln!(
        out,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        latencies.buckets(),
        latencies.distinct_values()
    )
}
