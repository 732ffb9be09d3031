//! Traces whose instants are not counted from the start of the run: `start="epoch"` of a log in Unix time.

use super::warning;
use crate::diagnostic::Diagnostic;
use crate::duration::show_ns;
use crate::{Point, Scenario};
use weir_model::Traffic;

const DAY_NS: u64 = 86_400_000_000_000;
/// A trace that begins later than this, ns, waits for nothing that anyone meant.
const LATE_NS: u64 = DAY_NS;

/// Warnings for scenarios whose trace begins so late that the run is nothing but a wait.
pub fn late_traces(point: &Point) -> Vec<Diagnostic> {
    point.scenarios.iter().filter_map(late).collect()
}

fn late(scenario: &Scenario) -> Option<Diagnostic> {
    let Traffic::Trace { arrivals_ns, .. } = &scenario.traffic else { return None };
    let first_ns = *arrivals_ns.first()?;
    let begins = format!(
        "the trace of scenario \"{}\" begins {} after the start of the run",
        scenario.name,
        shown(first_ns)
    );
    let what = match scenario.duration_ns {
        Some(end_ns) if first_ns > end_ns => {
            format!("{begins}, when its `duration` of {} is over: no request arrives", shown(end_ns))
        }
        _ if first_ns > LATE_NS => {
            format!("{begins}: checks and faults run all that time, and `weir load` waits for it")
        }
        _ => return None,
    };
    Some(warning(what).help(
        "leave `start=\"epoch\"` of `traffic.trace` out: the first instant is then the start of the run",
    ))
}

/// A time in words; days where there are many.
fn shown(ns: u64) -> String {
    match ns / DAY_NS {
        0 => show_ns(i128::from(ns)),
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted() {
        let said = [1, DAY_NS, 2 * DAY_NS - 1, 3 * DAY_NS].map(shown);
        assert_eq!(said, ["1ns", "1 day", "1 day", "3 days"]);
    }
}
