//! A histogram of latencies: how many requests took how long, successes and failures on each other.

use super::Axis;
use crate::number::{count, plain};
use crate::table::escaped;
use std::fmt::Write as _;

/// Bars of a histogram.
const BARS: usize = 50;
/// Beyond this factor between the longest and the shortest the axis is logarithmic.
const WIDE: f64 = 20.0;

/// What is shorter than this part of the median is in the first bar.
const LONGER: f64 = 200.0;

/// How many requests took between these times, ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LatencyCount {
    pub from_ms: f64,
    pub to_ms: f64,
    pub ok: u64,
    pub failed: u64,
}

/// Those of a bar.
#[derive(Clone, Copy, Debug)]
struct Bar {
    from_ms: f64,
    to_ms: f64,
    ok: u64,
    failed: u64,
}

/// The figure; nothing where fewer than two requests ended. `counts`: in ascending order.
pub(crate) fn histogram(counts: &[LatencyCount]) -> Option<String> {
    let total: u64 = counts.iter().map(|c| c.ok + c.failed).sum();
    let (first, last) = (counts.first()?, counts.last().filter(|_| total > 1)?);
    // The few shortest of a logarithmic axis would take half of it: they are in its first bar.
    let low = first.from_ms.max(median_ms(counts, total) / LONGER).max(1e-6);
    let x = if last.to_ms > WIDE * low { Axis::log(low, last.to_ms) } else { Axis::around(low, last.to_ms) };
    let bars = bars(counts, &x);
    let share = |n: u64| n as f64 / total as f64 * 100.0;
    let most = bars.iter().flatten().map(|bar| share(bar.ok + bar.failed)).fold(0.0, f64::max);
    let y = Axis::from_zero(most);
    let scale = if x.is_log() { ", logarithmic" } else { "" };
    let mut svg = format!(
        "<figure class=\"chart\">\n<figcaption>Share of requests, %, over latency, ms{scale}</figcaption>\n<svg class=\"plot low\" role=\"img\" aria-label=\"Histogram of latencies\">\n"
    );
    grid(&mut svg, &x, &y);
    for (at, bar) in bars.iter().enumerate().filter_map(|(at, bar)| Some((at, (*bar)?))) {
        let width = 100.0 / BARS as f64;
        let failed =
            if bar.failed > 0 { format!(", {} of them failed", count(bar.failed)) } else { String::new() };
        let title = format!(
            "{} to {} ms: {} requests, {} %{failed}",
            plain(Some(bar.from_ms)),
            plain(Some(bar.to_ms)),
            count(bar.ok + bar.failed),
            plain(Some(share(bar.ok + bar.failed)))
        );
        let ok = y.position(share(bar.ok)) * 100.0;
        let both = y.position(share(bar.ok + bar.failed)) * 100.0;
        for (class, from, to) in [("column", 0.0, ok), ("column failed", ok, both)] {
            if to > from {
                let _ = writeln!(
                    svg,
                    "<rect class=\"{class}\" x=\"{:.2}%\" width=\"{:.2}%\" y=\"{:.2}%\" height=\"{:.2}%\"><title>{}</title></rect>",
                    at as f64 * width,
                    width * 0.94,
                    100.0 - to,
                    to - from,
                    escaped(&title)
                );
            }
        }
    }
    Some(svg + "</svg>\n</figure>\n")
}

/// The class of the median begins here.
fn median_ms(counts: &[LatencyCount], total: u64) -> f64 {
    let mut seen = 0;
    let middle = counts.iter().find(|c| {
        seen += c.ok + c.failed;
        seen * 2 >= total
    });
    middle.map_or(0.0, |c| c.from_ms)
}

fn grid(svg: &mut String, x: &Axis, y: &Axis) {
    for (at, label) in &y.ticks {
        let y = (1.0 - at) * 100.0;
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{y:.2}%\" y2=\"{y:.2}%\"/><text class=\"tick\" x=\"0\" dx=\"-6\" y=\"{y:.2}%\" dy=\"4\" text-anchor=\"end\">{label}</text>"
        );
    }
    for (at, label) in &x.ticks {
        let x = at * 100.0;
        let _ = writeln!(
            svg,
            "<text class=\"tick\" x=\"{x:.2}%\" y=\"100%\" dy=\"21\" text-anchor=\"middle\">{label}</text>"
        );
    }
}

/// Bars of equal width on the axis.
fn bars(counts: &[LatencyCount], x: &Axis) -> Vec<Option<Bar>> {
    let mut bars: Vec<Option<Bar>> = vec![None; BARS];
    for c in counts {
        let middle = (c.from_ms + c.to_ms) / 2.0;
        let at = ((x.position(middle) * BARS as f64) as usize).min(BARS - 1);
        let LatencyCount { from_ms, to_ms, ok, failed } = *c;
        let bar = bars[at].get_or_insert(Bar { from_ms, to_ms, ok: 0, failed: 0 });
        (bar.to_ms, bar.ok, bar.failed) = (to_ms, bar.ok + ok, bar.failed + failed);
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_in_a_bar() {
        let counts: Vec<LatencyCount> = (1..=1000)
            .map(|n| LatencyCount {
                from_ms: f64::from(n),
                to_ms: f64::from(n + 1),
                ok: 2,
                failed: u64::from(n > 990),
            })
            .collect();
        let figure = histogram(&counts).expect("there are requests");
        assert!(figure.contains("logarithmic") && figure.contains("class=\"column failed\""));
        let x = Axis::log(1.0, 1001.0);
        let all: u64 = bars(&counts, &x).iter().flatten().map(|bar| bar.ok + bar.failed).sum();
        assert_eq!(all, 2_010);
        assert!(histogram(&[]).is_none() && histogram(&counts[..1]).is_some());
    }
}
