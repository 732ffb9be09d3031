//! Warnings about settings that have no effect at their position.

use super::{Draft, Findings, index};
use crate::loops::most_loops;
use crate::{Edge, Lb, NodeId, Point, Spec};
use weir_policy::config::{Balance, Outlier, SlowStartLike, Subset};

/// The balancers, with the number of their targets.
fn balancers(point: &Point) -> impl Iterator<Item = (u32, &Lb, usize)> {
    let of = |(id, node): (NodeId, &crate::Node)| match (point.spec(id), node.to) {
        (Some(Spec::Lb(lb)), Edge::List(list)) => {
            Some((node.site, lb, point.lists.get(list as usize)?.len()))
        }
        _ => None,
    };
    point.nodes.iter().enumerate().filter_map(move |(id, node)| of((index(id), node)))
}

/// Outlier detection among too few targets: it lets none go, or compares none.
pub(super) fn outliers(draft: &Draft<'_>, found: &mut Findings) {
    for (site, lb, n) in balancers(draft.point) {
        let Some(outlier) = &lb.outlier else { continue };
        let targets = if n == 1 { "target".to_owned() } else { format!("{n} targets") };
        let Outlier { max_ejection_percent, always_eject_one_host, .. } = *outlier;
        if !always_eject_one_host && 100.0 / n as f64 > max_ejection_percent {
            found.hint(
                site,
                format!(
                    "`outlier` does nothing here: one of {targets} is {:.0} % of them, but at most \
                        {max_ejection_percent} % may be ejected",
                    100.0 / n as f64
                ),
                "give it `always_eject_one_host=True`, or a `max_ejection_percent` that allows one ejection",
            );
            continue;
        }
        let mut idle = |enforcing: f64, least: u32, does: &str, help: &str| {
            if enforcing > 0.0 && (n as u64) < u64::from(least) {
                let why = format!("that takes at least {least} targets, and there are {n}");
                found.hint(site, format!("this `outlier` {does}: {why}"), help);
            }
        };
        idle(
            outlier.enforcing_success_rate,
            outlier.success_rate_minimum_hosts,
            "does not compare success rates",
            "give it a smaller `success_rate_minimum_hosts`, or `enforcing_success_rate=0`",
        );
        idle(
            outlier.enforcing_failure_percentage,
            outlier.failure_percentage_minimum_hosts,
            "does not check failure percentages",
            "give it a smaller `failure_percentage_minimum_hosts`",
        );
    }
}

/// Slow starts that change nothing: of hashes, whose keys they would move; of a policy that does not look at weights; of
/// limits that are not there.
pub(super) fn slow_starts(draft: &Draft<'_>, found: &mut Findings) {
    for (site, lb, _) in balancers(draft.point) {
        let Some(slow_start) = &lb.slow_start else { continue };
        let is_limited = lb.max_in_flight.is_some() || lb.max_connections.is_some();
        let lowers_limits = slow_start.scales_limits() && is_limited;
        // A target without any share is not picked by any policy.
        let is_first =
            lb.balance == Balance::First && !lowers_limits && slow_start.like != Some(SlowStartLike::Nginx);
        let hashes = lb.balance.traits().hashes;
        if hashes || is_first {
            let why = if hashes {
                "keys stay with their targets, regardless of weights"
            } else {
                "the first eligible target is picked, regardless of its weight"
            };
            found.hint(
                site,
                format!("`slow_start` does nothing at this `{}`: {why}", lb.balance.name()),
                "leave it out, or use a policy that picks by load or in turn",
            );
        } else if slow_start.limits && !is_limited {
            found.hint(
                site,
                format!(
                    "`limits=True` of `slow_start` does nothing at this `{}`: it has no limit",
                    lb.balance.name()
                ),
                "give the balancer a `max_in_flight`, or leave `limits` out",
            );
        }
    }
}

/// Subsets that divide nothing.
pub(super) fn subsets(draft: &Draft<'_>, found: &mut Findings) {
    let point = draft.point;
    let has_subset = |spec: &Spec| matches!(spec, Spec::Lb(Lb { subset: Some(_), .. }));
    if !point.specs.iter().any(has_subset) {
        return;
    }
    let loops = most_loops(point);
    for (id, node) in point.nodes.iter().enumerate() {
        let (Some(Spec::Lb(Lb { subset: Some(subset), .. })), Edge::List(list)) =
            (point.spec(index(id)), node.to)
        else {
            continue;
        };
        if matches!(subset, Subset::Loops(_)) && loops[id] == Some(1) {
            found.hint(
                node.site,
                "this `subset.loops` divides nothing: there is one event loop".to_owned(),
                "put the balancer behind a `listen(..., loops=n)`, or leave the subset out",
            );
        }
        let n = point.lists.get(list as usize).and_then(|targets| count(point, targets));
        if let (Some(size), Some(n)) = (subset.size(), n)
            && u64::from(size) >= n
        {
            found.hint(
                node.site,
                format!("a subset of {size} is no subset: there are {n} targets"),
                "use a smaller `size`, or leave the subset out",
            );
        }
    }
}

/// How many targets there are at the start; `None`: that depends on a source.
fn count(point: &Point, targets: &[NodeId]) -> Option<u64> {
    let count = |target: &NodeId| match point.spec(*target) {
        Some(Spec::Fleet(fleet)) => fleet.source.is_none().then_some(u64::from(fleet.size)),
        _ => Some(1),
    };
    targets.iter().map(count).sum()
}
