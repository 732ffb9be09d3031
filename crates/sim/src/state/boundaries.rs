//! The ends of the parts of a run with results over time: when the next one comes, and what is counted there.

use crate::code::Code;
use crate::state::connections::Connections;
use crate::state::source::Source;
use crate::state::watch::{Watch, WatchSample};
use weir_plan::over_time::MOST_PARTS;
use weir_policy::{TargetId, Upstream};
use weir_workload::parts::ConnectionCount;

/// When the part of a run ends that begins then, ns: with the arrivals, if those end before. The end of time, if nothing is
/// counted there.
pub(crate) fn boundary_after(code: &Code, source: &Source, at_ns: u64) -> u64 {
    let Some(every_ns) = code.every_ns.filter(|_| code.connections.is_some() || code.watch.is_some()) else {
        return u64::MAX;
    };
    let next_ns = at_ns.saturating_add(every_ns);
    let end_ns = source.load.until_ns.min(source.over_ns);
    if at_ns >= end_ns || next_ns / every_ns > MOST_PARTS + 1 { u64::MAX } else { next_ns.min(end_ns) }
}

/// The last instant that counts in the part of a run that ends then: the instant itself belongs to the next part, if there is
/// one.
pub(crate) fn last_instant(source: &Source, end_ns: u64) -> u64 {
    let is_last = end_ns >= source.load.until_ns.min(source.over_ns);
    if is_last { end_ns } else { end_ns - 1 }
}

/// What is counted at the end of a part.
#[derive(Clone, Debug)]
pub(crate) struct BoundaryCount {
    pub connections: Option<ConnectionCount>,
    pub watch: Option<WatchSample>,
}

impl BoundaryCount {
    /// What there is at an instant; `share` as in [`Watch::sample`](crate::state::watch::Watch::sample).
    pub fn new(
        code: &Code,
        connections: Option<&mut Connections>,
        watch: Option<&mut Watch>,
        at_ns: u64,
        share: impl Fn(usize, u32) -> Option<f64>,
    ) -> BoundaryCount {
        let counts = connections.map(|of| of.pools.counts(at_ns));
        // The first group has all connections.
        let all = counts.as_ref().and_then(|counts| counts.groups.first());
        let servers_ns = counts.as_ref().map_or(&[][..], |counts| &counts.servers_ns);
        BoundaryCount {
            connections: all.map(|all| ConnectionCount { at_ns, open_ns: all.open_ns, opened: all.opened }),
            watch: watch.map(|watch| watch.read(code, at_ns, servers_ns, share)),
        }
    }
}

/// The share of its weight that a target has: 0 while it may not be picked.
pub(crate) fn share_of(upstream: &Upstream, target: TargetId) -> f64 {
    let health = upstream.health();
    if health.view(target).may_be_picked { health.ramp(target) } else { 0.0 }
}
