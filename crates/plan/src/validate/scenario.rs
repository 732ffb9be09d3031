//! Scenarios and their traffic.

use super::asked;
use super::spec::{dist, duration, optional};
use crate::fleets::check::changes;
use crate::over_time::{self, Unfit};
use crate::ranges;
use crate::{Condition, Expectation, Metric, Point, Window};
use std::collections::HashSet;
use weir_model::Traffic;

/// Checks all scenarios of a point.
pub(super) fn check(p: &Point) -> Result<(), String> {
    let mut names = HashSet::new();
    for (i, s) in p.scenarios.iter().enumerate() {
        let wrong = |field: &str, why: String| Err(format!("scenarios[{i}].{field}: {why}"));
        if s.name.is_empty() || !names.insert(s.name.as_str()) {
            return wrong("name", format!("\"{}\" is empty or taken", s.name));
        }
        if s.root as usize >= p.nodes.len() {
            return wrong("root", format!("there is no node {}", s.root));
        }
        if s.requests.is_none() && s.duration_ns.is_none() {
            return wrong("requests", "there must be `requests` or `duration_ns`".to_owned());
        }
        if s.requests.is_some_and(|n| n == 0 || n > 1_000_000_000_000) {
            return wrong("requests", "must be 1 to 1000000000000".to_owned());
        }
        for (field, limit) in [("duration_ns", s.duration_ns), ("patience_ns", s.patience_ns)] {
            if let Err(why) = optional(limit) {
                return wrong(field, why);
            }
        }
        if let Window::Between(from_ns, to_ns) = s.window
            && from_ns >= to_ns
        {
            return wrong("window", "must end after it begins".to_owned());
        }
        if let Err(Unfit { why, .. }) = over_time::fits(s) {
            return wrong("every_ns", why);
        }
        if s.deadline_ns == 0 {
            return wrong("deadline_ns", "must be above 0".to_owned());
        }
        if let Err(why) = traffic(&s.traffic) {
            return wrong("traffic", why);
        }
        if let Err(why) = asked::mix(&s.mix) {
            return wrong("mix", why);
        }
        if let Some(recorded) = &s.recorded
            && let Err(why) = asked::recorded(recorded, s)
        {
            return wrong("recorded", why);
        }
        if let Err(all) = changes(p, s)
            && let Some((change, why)) = all.into_iter().next()
        {
            return wrong(&format!("events[{change}]"), why);
        }
    }
    p.expectations.iter().enumerate().try_for_each(|(i, e)| {
        let known = expectation(e, &names).and_then(|()| parts(p, e));
        known.map_err(|why| format!("expectations[{i}]: {why}"))
    })
}

fn expectation(e: &Expectation, scenarios: &HashSet<&str>) -> Result<(), String> {
    if !scenarios.contains(e.scenario.as_str()) {
        return Err(format!("there is no scenario \"{}\"", e.scenario));
    }
    if e.conditions.is_empty() {
        return Err("there is no condition".to_owned());
    }
    let fits = |c: &Condition| {
        let is_of_node = Metric::OF_NODES.contains(&c.metric);
        let fits = is_of_node == e.node.is_some() || Metric::OF_CONNECTIONS.contains(&c.metric);
        fits && c.bound.is_finite()
    };
    match e.conditions.iter().find(|c| !fits(c)) {
        Some(c) => Err(format!(
            "`{c}` is not a condition {}",
            if e.node.is_some() { "of a node" } else { "of requests" }
        )),
        None => Ok(()),
    }
}

/// Whether what an expectation asks about single parts of a run can be known.
fn parts(p: &Point, e: &Expectation) -> Result<(), String> {
    let is_told = p.scenarios.iter().any(|s| s.name == e.scenario && s.every_ns.is_some());
    match e.conditions.iter().find(|c| c.metric.needs_parts()) {
        Some(c) if !is_told => Err(format!("`{c}` needs a scenario with `every_ns`")),
        _ => Ok(()),
    }
}

fn traffic(traffic: &Traffic) -> Result<(), String> {
    match traffic {
        Traffic::Poisson { gap_ns } | Traffic::Constant { gap_ns } => {
            if *gap_ns > 0.0 && *gap_ns <= 1e19 {
                Ok(())
            } else {
                Err(format!("the gap must be above 0 and at most 1e19 ns, not {gap_ns}"))
            }
        }
        Traffic::Renewal { gap } => {
            dist(gap)?;
            if gap.mean_ns() == Some(0.0) { Err("the gap is always 0".to_owned()) } else { Ok(()) }
        }
        Traffic::Mmpp { states } => {
            for (per_s, stay_ns) in states {
                rate(*per_s)?;
                duration(*stay_ns)?;
                if *stay_ns == 0 {
                    return Err("a mean stay must be longer than 0".to_owned());
                }
            }
            let some = states.iter().any(|(per_s, _)| *per_s > 0.0);
            if some { Ok(()) } else { Err("all rates are 0: no request would ever arrive".to_owned()) }
        }
        Traffic::Schedule { points, repeat } => {
            for (time_ns, per_s) in points {
                duration(*time_ns)?;
                rate(*per_s)?;
            }
            if points.is_empty() {
                Err("a schedule needs at least one point".to_owned())
            } else if points.windows(2).any(|w| w[0].0 > w[1].0) {
                Err("the points of a schedule must not go back in time".to_owned())
            } else if let Some(why) = ranges::never(points, *repeat) {
                Err(format!("no request would ever arrive: {why}"))
            } else {
                Ok(())
            }
        }
        Traffic::Closed { users, think } => {
            dist(think)?;
            if (1..=ranges::MOST_USERS).contains(users) {
                Ok(())
            } else {
                Err(format!("users must be 1 to {}, not {users}", ranges::MOST_USERS))
            }
        }
        Traffic::Trace { arrivals_ns, .. } => {
            if arrivals_ns.is_empty() {
                return Err("a trace needs at least one instant".to_owned());
            }
            arrivals_ns.iter().try_for_each(|at| duration(*at))?;
            if arrivals_ns.is_sorted() {
                Ok(())
            } else {
                Err("the instants of a trace must be ascending".to_owned())
            }
        }
    }
}

/// Arrivals per second, none included.
fn rate(per_s: f64) -> Result<(), String> {
    if per_s == 0.0 || (1e-10..=1e15).contains(&per_s) {
        Ok(())
    } else {
        Err(format!("a rate must be 0, or between 1e-10 and 1e15 per second, not {per_s}"))
    }
}
