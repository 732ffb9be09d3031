//! Warnings about combinations of faults, losses, timeouts and retries: one function for each finding.

use super::{Draft, Findings, index, roots};
use crate::duration::show_ns;
use crate::ways::down;
use crate::{Faulty, Mode, NodeId, Point, Scenario, Spec};
use std::collections::BTreeSet;
use weir_model::{Dist, Traffic};
use weir_policy::Kind;
use weir_policy::config::Retry;

/// More attempts than this for one request are hardly meant.
const MANY_ATTEMPTS: u64 = 100;

/// Nothing.
const NONE: u32 = u32::MAX;

/// The nodes whose spec satisfies a predicate, by their index.
fn nodes<'g, T>(
    point: &'g Point,
    of: impl Fn(&'g Spec) -> Option<T>,
) -> impl Iterator<Item = (NodeId, u32, T)> {
    point.nodes.iter().enumerate().filter_map(move |(id, node)| {
        let id = index(id);
        Some((id, node.site, of(point.spec(id)?)?))
    })
}

/// Nodes that swallow requests and that a scenario reaches without a `timeout` on the way.
pub(super) fn lost(draft: &Draft<'_>, found: &mut Findings) {
    let point = draft.point;
    let silent = |spec: &Spec| match spec {
        Spec::Faulty(Faulty { mode: Mode::Blackhole, .. }) => Some("swallows while it is down"),
        Spec::Cable { loss, resend_ns: None, .. } if *loss > 0.0 => Some("loses"),
        _ => None,
    };
    if !point.specs.iter().any(|s| silent(s).is_some()) {
        return;
    }
    // The first scenario that comes there with nothing to end its wait.
    let mut first = vec![NONE; point.nodes.len()];
    for (i, scenario) in draft.point.scenarios.iter().enumerate().filter(|(_, s)| s.patience_ns.is_none()) {
        if let Some(root) = first.get_mut(scenario.root as usize) {
            *root = (*root).min(index(i));
        }
    }
    let ends = |spec: &Spec| matches!(spec, Spec::Timeout { time_ns: Some(_) });
    let first = down(point, first, |_, spec, by| if ends(spec) { NONE } else { by }, u32::min);
    for (id, site, does) in nodes(point, silent) {
        let Some(scenario) = draft.point.scenarios.get(first[id as usize] as usize) else { continue };
        let kind = draft.describe(site).0;
        let message = format!(
            "a request that this `{kind}` {does} ends as `lost`, without a latency: scenario \"{}\" \
                reaches it without a `timeout`",
            scenario.name
        );
        let resend = if kind == "cable" { ", or let the cable send again: `resend=200*ms`" } else { "" };
        let help = format!("put a `timeout` around it, or give the scenario `patience`{resend}");
        found.warn(site, message, help);
    }
}

/// Retries inside retries that multiply to very many attempts. Said at the innermost one.
pub(super) fn attempts(draft: &Draft<'_>, found: &mut Findings) {
    let point = draft.point;
    let retry = |spec: &Spec| match spec {
        Spec::Retry(retry) if retry.attempts > 1 => Some(retry.attempts),
        _ => None,
    };
    if !point.specs.iter().any(|s| retry(s).is_some()) {
        return;
    }
    // The attempts of the retries above, multiplied, and the nearest of these, on the way with the most.
    let pass = |id, spec: &Spec, (above, under): (u64, NodeId)| match retry(spec) {
        Some(n) => (above.saturating_mul(u64::from(n)), id),
        None => (above, under),
    };
    let at = down(point, vec![(1, NONE); point.nodes.len()], pass, Ord::max);
    let around: Vec<NodeId> = nodes(point, retry).map(|(id, ..)| at[id as usize].1).collect();
    let outer: BTreeSet<u32> = around.iter().filter_map(|id| point.node(*id)).map(|n| n.site).collect();
    for (id, site, n) in nodes(point, retry).filter(|(_, site, _)| !outer.contains(site)) {
        let (above, mut up) = at[id as usize];
        let total = above.saturating_mul(u64::from(n));
        if up == NONE || total <= MANY_ATTEMPTS {
            continue;
        }
        let mut factors = vec![n.to_string()];
        while let Some(n) = point.spec(up).and_then(retry) {
            factors.push(n.to_string());
            up = at[up as usize].1;
        }
        factors.reverse();
        found.warn(
            site,
            format!(
                "one request may make {total} attempts here: this `retry` is inside another, and their \
                    attempts multiply ({})",
                factors.join(" x ")
            ),
            "retry in one place on the path only, or fewer times",
        );
    }
}

/// Faults that last longer than the run.
pub(super) fn repairs(draft: &Draft<'_>, found: &mut Findings) {
    let point = draft.point;
    let mttr = |spec: &Spec| match spec {
        Spec::Faulty(law) if !is_meant_to_last(law) => Some(law.mttr_ns),
        _ => None,
    };
    if !point.specs.iter().any(|s| mttr(s).is_some()) {
        return;
    }
    // The shortest run that comes there, and its scenario.
    let never = (u64::MAX, NONE);
    let mut at = vec![never; point.nodes.len()];
    for (i, scenario) in draft.point.scenarios.iter().enumerate() {
        if let (Some(root), Some(length)) = (at.get_mut(scenario.root as usize), length_ns(scenario)) {
            *root = (*root).min((length, index(i)));
        }
    }
    let at = down(point, at, |_, _, shortest| shortest, Ord::min);
    for (id, site, mttr_ns) in nodes(point, mttr) {
        let (length, scenario) = at[id as usize];
        let Some(scenario) = draft.point.scenarios.get(scenario as usize).filter(|_| mttr_ns > length) else {
            continue;
        };
        found.warn(
            site,
            format!(
                "a node that goes down here is unlikely to come back within the run: repair takes {} on \
                    average, but scenario \"{}\" lasts {}",
                roughly(mttr_ns),
                scenario.name,
                roughly(length)
            ),
            "use a shorter `mttr`, or a longer run",
        );
    }
}

/// Whether the file itself says when the outage is: at a fixed time, or from the start for a fixed time. If it is not
/// over by the end, that is meant.
fn is_meant_to_last(law: &Faulty) -> bool {
    law.is_scheduled() || !law.starts_up && law.down.as_ref().is_some_and(Dist::is_fixed)
}

/// How long a scenario lasts, as far as that is known beforehand, ns.
fn length_ns(scenario: &Scenario) -> Option<u64> {
    let by_number = scenario.requests.and_then(|n| match &scenario.traffic {
        Traffic::Trace { arrivals_ns, .. } => {
            let n = usize::try_from(n).unwrap_or(usize::MAX).min(arrivals_ns.len());
            arrivals_ns.get(n.checked_sub(1)?).copied()
        }
        traffic => traffic
            .rate_per_s()
            .filter(|r| *r > 0.0)
            .map(|rate| (n as f64 / rate * 1e9).min(i64::MAX as f64) as u64),
    });
    match (by_number, scenario.duration_ns) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// A duration as one would say it: three digits or so, in hours and minutes where it is long.
fn roughly(ns: u64) -> String {
    const MINUTE_NS: f64 = 60e9;
    let (unit, each) = match ns as f64 / MINUTE_NS {
        minutes if minutes >= 120.0 => (" hours", 60.0 * MINUTE_NS),
        minutes if minutes >= 2.0 => (" minutes", MINUTE_NS),
        _ => {
            let step = 10u64.pow(ns.max(1).ilog10().saturating_sub(2));
            let near = (ns + step / 2) / step * step;
            let about = if near == ns { "" } else { "about " };
            return format!("{about}{}", show_ns(i128::from(near)));
        }
    };
    let number = ns as f64 / each;
    let step = if number >= 100.0 { 1.0 } else { 10.0 };
    let near = (number * step).round() / step;
    let about = if near == number { "" } else { "about " };
    format!("{about}{near}{unit}")
}

/// Hedges that wait longer than a `timeout` around them lasts, on every way that a scenario takes there.
pub(super) fn late(draft: &Draft<'_>, found: &mut Findings) {
    let point = draft.point;
    let hedge = |spec: &Spec| match spec {
        Spec::Hedge(h) if h.hedge.attempts > 1 => Some(h.hedge.after_ns),
        _ => None,
    };
    if !point.specs.iter().any(|s| hedge(s).is_some()) {
        return;
    }
    // The shortest timeout around, on the way where it is longest; 0: no scenario comes there.
    let mut at = vec![(0, NONE); point.nodes.len()];
    for root in roots(draft) {
        if let Some(root) = at.get_mut(root as usize) {
            *root = (u64::MAX, NONE);
        }
    }
    let pass = |id, spec: &Spec, (limit, by)| match spec {
        Spec::Timeout { time_ns: Some(time) } if *time < limit => (*time, id),
        _ => (limit, by),
    };
    let at = down(point, at, pass, Ord::max);
    for (id, site, after) in nodes(point, hedge) {
        let (limit, by) = at[id as usize];
        if limit == 0 || after <= limit {
            continue;
        }
        let there = point.node(by).and_then(|n| draft.describe(n.site).1);
        let there = there.map_or(String::new(), |at| format!(" (at {})", at.span()));
        let show = |ns: u64| show_ns(i128::from(ns));
        found.warn(
            site,
            format!(
                "this `hedge` never sends a second attempt beside an open one: it waits {}, but the \
                    `timeout` around it{there} ends everything after {}",
                show(after),
                show(limit)
            ),
            "use a shorter `after`, or put the `timeout` inside the hedge",
        );
    }
}

/// Failures inside a `retry` that it does not retry: a `timeout`, a `flaky`. A hint: it may be meant.
pub(super) fn untried(draft: &Draft<'_>, found: &mut Findings) {
    let timeout = |spec: &Spec| matches!(spec, Spec::Timeout { time_ns: Some(_) }).then_some(());
    untried_after(draft, found, Kind::Timeout, timeout, "a request that this `timeout` ends");
    for kind in [Kind::Status5xx, Kind::Timeout, Kind::Overloaded, Kind::BadResponse] {
        let flaky = |spec: &Spec| match spec {
            Spec::Flaky { p, kind: fails_by } => (*p > 0.0 && *fails_by == kind).then_some(()),
            _ => None,
        };
        untried_after(draft, found, kind, flaky, "a request that fails at this `flaky`");
    }
}

fn untried_after(
    draft: &Draft<'_>,
    found: &mut Findings,
    kind: Kind,
    fails: impl Fn(&Spec) -> Option<()>,
    what: &str,
) {
    let point = draft.point;
    if !point.specs.iter().any(|s| fails(s).is_some()) {
        return;
    }
    let tries =
        |retry: &Retry| retry.on.contains(&kind) || kind == Kind::Status5xx && !retry.on_status.is_empty();
    let pass = |id, spec: &Spec, above| match spec {
        Spec::Retry(retry) if retry.attempts > 1 && tries(retry) => NONE,
        Spec::Retry(retry) if retry.attempts > 1 => id,
        // Behind a listener it is what it is, before it an answer.
        Spec::Listen(_) => NONE,
        _ => above,
    };
    let at = down(point, vec![NONE; point.nodes.len()], pass, u32::min);
    for (id, site, ()) in nodes(point, fails) {
        let Some(Spec::Retry(retry)) = point.spec(at[id as usize]) else { continue };
        let there = point.node(at[id as usize]).and_then(|n| draft.describe(n.site).1);
        let there = there.map_or(String::new(), |at| format!(" (at {})", at.span()));
        let on: Vec<String> = retry.on.iter().map(|k| format!("\"{}\", ", k.name())).collect();
        let name = kind.name();
        found.hint(
            site,
            format!("{what} is not tried again: the `retry` around it{there} lacks \"{name}\" in `on`"),
            format!("if it should be, write `on=[{}\"{name}\"]` there", on.concat()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::roughly;

    #[test]
    fn durations_are_said_to_three_digits() {
        for (ns, said) in [
            (0, "0s"),
            (7, "7ns"),
            (1_234_567, "about 1.23ms"),
            (99_990_000_000, "about 100s"),
            (60_000_000_000, "60s"),
            (333_333_333_333, "about 5.6 minutes"),
            (600_000_000_000, "10 minutes"),
            (360_000_000_000_000_000, "100000 hours"),
            (i64::MAX as u64, "about 2562048 hours"),
        ] {
            assert_eq!(roughly(ns), said, "{ns}");
        }
    }
}
