//! Hints at what can never happen: that a request succeeds within a `timeout` which is over before the fixed times inside it
//! are.

use super::{Draft, Findings, index};
use crate::duration::show_ns;
use crate::{Edge, Faulty, Mode, Node, Point, Spec};
use weir_model::Dist;

/// Timeouts that end before any request behind them can have succeeded.
pub(super) fn short_timeouts(draft: &Draft<'_>, found: &mut Findings) {
    let point = draft.point;
    let limit = |id: usize| match point.spec(index(id)) {
        Some(Spec::Timeout { time_ns: Some(time_ns) }) => Some(*time_ns),
        _ => None,
    };
    // A factor that shortens work goes with the request, so it reaches times behind a `timeout`, too.
    if !(0..point.nodes.len()).any(|id| limit(id).is_some()) || point.specs.iter().any(is_quicker) {
        return;
    }
    let least = least_times(point);
    for (id, node) in point.nodes.iter().enumerate() {
        let (Some(limit_ns), Edge::Node(next)) = (limit(id), node.to) else { continue };
        let least_ns = least.get(next as usize).copied().unwrap_or_default();
        if least_ns > limit_ns {
            let show = |ns: u64| show_ns(i128::from(ns));
            found.hint(
                node.site,
                format!(
                    "no request can succeed within this `timeout` of {}: what is inside takes at least {}",
                    show(limit_ns),
                    show(least_ns)
                ),
                "make it longer than the fixed times inside it",
            );
        }
    }
}

/// Whether work behind it may take less than its own time.
fn is_quicker(spec: &Spec) -> bool {
    match spec {
        Spec::Warmup(law) => law.factor < 1.0,
        Spec::Faulty(Faulty { mode: Mode::Slow, slow, .. }) => *slow < 1.0,
        _ => false,
    }
}

/// The least time in which a request that comes to each node can succeed, ns; a lower bound.
fn least_times(point: &Point) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::with_capacity(point.nodes.len());
    // By list: the least of its nodes, and the sum of all.
    let mut lists: Vec<Option<(u64, u64)>> = vec![None; point.lists.len()];
    // A node comes after all that it leads to.
    for node in &point.nodes {
        let spec = point.specs.get(node.spec as usize);
        let behind = behind(point, node, spec, &all, &mut lists);
        let own = match spec {
            Some(Spec::Delay { time }) => least_of(time),
            Some(Spec::Cable { time, .. }) => least_of(time).saturating_mul(2),
            Some(Spec::Concurrent { work, .. }) => least_of(work),
            _ => 0,
        };
        all.push(own.saturating_add(behind));
    }
    all
}

fn behind(
    point: &Point,
    node: &Node,
    spec: Option<&Spec>,
    all: &[u64],
    lists: &mut [Option<(u64, u64)>],
) -> u64 {
    let of = |id: u32| all.get(id as usize).copied().unwrap_or_default();
    let aside = spec.and_then(Spec::aside).map(of);
    match node.to {
        Edge::None => aside.unwrap_or_default(),
        Edge::Node(next) => of(next).min(aside.unwrap_or(u64::MAX)),
        Edge::List(list) => {
            let (least, sum) = match lists.get_mut(list as usize) {
                Some(known) => *known.get_or_insert_with(|| {
                    let times = || point.lists[list as usize].iter().map(|id| of(*id));
                    (times().min().unwrap_or_default(), times().fold(0, u64::saturating_add))
                }),
                None => (0, 0),
            };
            let of_list = if matches!(spec, Some(Spec::Sequence)) { sum } else { least };
            of_list.min(aside.unwrap_or(u64::MAX))
        }
    }
}

/// The least value of a distribution, ns.
fn least_of(dist: &Dist) -> u64 {
    match dist {
        Dist::Fixed { ns } => *ns,
        Dist::Uniform { low_ns, .. } => *low_ns,
        Dist::Pareto { minimum_ns, .. } => *minimum_ns,
        Dist::Empirical { values_ns, .. } => values_ns.iter().min().copied().unwrap_or_default(),
        Dist::Sum { a, b } => least_of(a).saturating_add(least_of(b)),
        Dist::Rounded { of, to_ns } => {
            let to_ns = (*to_ns).max(1);
            (least_of(of).saturating_add(to_ns / 2) / to_ns).saturating_mul(to_ns)
        }
        Dist::Exponential { .. }
        | Dist::Lognormal { .. }
        | Dist::Erlang { .. }
        | Dist::Hyperexponential { .. } => 0,
    }
}
