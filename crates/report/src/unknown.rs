//! Why a figure is unknown: how many requests of each replication a quantile needs, and how many there are; that no connections
//! are simulated.

use crate::number::count;
use weir_plan::Metric;
use weir_sim::ScenarioResult;
use weir_stats::{Estimate, samples_needed};

/// The quantiles, and the requests that they are of: all, or the successes.
const QUANTILES: [(Metric, f64, bool); 10] = [
    (Metric::P50, 0.5, false),
    (Metric::P90, 0.9, false),
    (Metric::P95, 0.95, false),
    (Metric::P99, 0.99, false),
    (Metric::P999, 0.999, false),
    (Metric::OkP50, 0.5, true),
    (Metric::OkP90, 0.9, true),
    (Metric::OkP95, 0.95, true),
    (Metric::OkP99, 0.99, true),
    (Metric::OkP999, 0.999, true),
];

/// Why a figure of a scenario is unknown: `needs 1 000 requests a replication, has 977`. `None`: it is known, or neither a
/// quantile nor about connections.
pub(crate) fn reason(
    s: &ScenarioResult,
    replications: u32,
    metric: Metric,
    value: &Estimate,
) -> Option<String> {
    let is_of_connections = matches!(metric, Metric::Connections | Metric::OpenedPerS);
    if is_of_connections && s.connections.is_none() {
        return Some("needs `connect=` at a server, or --connections".to_owned());
    }
    let (_, q, of_successes) = QUANTILES.into_iter().find(|(of, ..)| *of == metric)?;
    if value.value.is_some() {
        return None;
    }
    let needed = samples_needed(q);
    let (what, all) =
        if of_successes { ("successes", s.requests.ok) } else { ("requests", s.requests.selected) };
    let has = all / u64::from(replications.max(1));
    let needed_of = format!("needs {} {what} a replication", count(needed));
    Some(if has < needed {
        format!("{needed_of}, has {}", count(has))
    } else {
        format!("{needed_of}, and some have fewer")
    })
}
