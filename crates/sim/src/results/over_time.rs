//! Results over time: the parts of a run, pooled over replications, where the scenario has `every`.

use crate::account::members::MemberSlice;
use crate::code::watch::WatchTables;
use crate::results::watch;
use crate::state::acts;
use serde::{Deserialize, Serialize};
use weir_policy::Kind;
use weir_stats::Estimate;
use weir_workload::parts::{QUANTILES, SliceSums};

/// The figures of latencies that each part has: four quantiles and the greatest, by their names in the JSON.
pub const FIGURES: [&str; QUANTILES.len() + 1] = ["p50", "p95", "p99", "p999", "max"];
/// Their peaks, by their paths in the JSON.
pub const PEAKS: [&str; FIGURES.len()] = [
    "over_time.peak.p50",
    "over_time.peak.p95",
    "over_time.peak.p99",
    "over_time.peak.p999",
    "over_time.peak.max",
];

/// A scenario over time, one number a part: all requests, means over all replications.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// The length of a part, ns; the last one ends with the arrivals.
    pub every_ns: u64,
    /// Arrivals per second.
    pub arrivals_per_s: Vec<f64>,
    /// Answers per second, whenever their requests arrived.
    pub responses_per_s: Vec<f64>,
    /// Requests that arrived in the part and succeeded, per second.
    pub ok: Vec<f64>,
    /// Those that failed, by kind; only kinds that occurred.
    pub errors: Vec<(Kind, Vec<f64>)>,
    /// The latencies of requests that arrived in the part, ms, as [`FIGURES`] names them; quantiles are of all replications
    /// together, `None` where fewer than ten requests lie beyond.
    pub latency_ms: [Vec<Option<f64>>; FIGURES.len()],
    /// Requests in flight, on average.
    pub in_flight: Vec<f64>,
    /// Connections to all servers, on average; `None`: they are not simulated.
    pub connections: Option<Vec<f64>>,
    /// Openings per second.
    pub opened_per_s: Option<Vec<f64>>,
    /// The members that changes move, the first hundred.
    pub watched: Vec<WatchedOverTime>,
    /// The mean of members of the same fleets that run throughout and are not moved; without lines where there are none.
    pub others: OthersOverTime,
    /// The greatest of a replication's parts, as [`FIGURES`] names them, ms.
    pub peak: [Estimate; FIGURES.len()],
    /// How long after it runs (anew) each of those that do so has its share of the requests again, s.
    pub regained: Vec<Regained>,
    /// What happened in the course of changes, in the first replication.
    pub acts: Vec<Act>,
}

/// A member that changes move, one number a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WatchedOverTime {
    /// Its name.
    pub node: String,
    /// The state of its process at the end of the part, in the first replication: `runs`, `stops`, `stopped`, `boots`, `none`.
    pub process: Vec<&'static str>,
    /// Requests that balancers sent to it, per second.
    pub requests_per_s: Vec<f64>,
    /// Those of them that had not come back, on average.
    pub in_flight: Vec<f64>,
    /// Connections to its servers, on average; `None`: they are not simulated.
    pub connections: Option<Vec<f64>>,
    /// The share of its weight that it has at the end of the part, 0 to 1: the mean over balancers that see or saw it; 0: it may
    /// not be picked.
    pub share: Vec<f64>,
}

/// The mean of several members, one number a part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OthersOverTime {
    /// As [`WatchedOverTime::requests_per_s`].
    pub requests_per_s: Vec<f64>,
    /// As [`WatchedOverTime::in_flight`].
    pub in_flight: Vec<f64>,
    /// As [`WatchedOverTime::connections`].
    pub connections: Option<Vec<f64>>,
}

/// How long a member takes to have its share again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Regained {
    /// Its name.
    pub node: String,
    /// From when it runs (anew) to the end of the first of two parts in a row in which it gets 90 % of what the others do, s.
    pub value: Estimate,
}

/// Something that happened in the course of a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// When.
    pub at_ns: u64,
    /// The number of the change in the scenario's list.
    pub change: u32,
    /// The name of the member or node.
    pub node: String,
    /// What: `listed`, `seen` and the like.
    pub what: &'static str,
    /// The balancer that sees it.
    pub by: Option<String>,
    /// A number that belongs to it.
    pub value: Option<f64>,
}

/// The parts of a job's replications, added up.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct PooledSlices {
    pub all: Vec<SliceSums>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberSlice>,
}

impl PooledSlices {
    /// Those of one replication.
    pub fn new(all: Vec<SliceSums>, members: Vec<MemberSlice>) -> PooledSlices {
        PooledSlices { all, members }
    }

    /// Adds those of further replications.
    pub fn join(&mut self, more: PooledSlices) {
        let mut room = Vec::new();
        let PooledSlices { all, members } = more;
        let mut more = all.into_iter();
        for (own, more) in self.all.iter_mut().zip(more.by_ref()) {
            own.add(&more, &mut room);
        }
        self.all.extend(more);
        let mut members = members.into_iter();
        for (own, more) in self.members.iter_mut().zip(members.by_ref()) {
            own.add(&more);
        }
        self.members.extend(members);
    }

    /// Adds them to those that there may be.
    pub fn join_to(self, all: &mut Option<PooledSlices>) {
        match all {
            Some(all) => all.join(self),
            None => *all = Some(self),
        }
    }

    /// Of each figure the greatest of a part, ms; `None` where no part has it.
    pub fn peaks(&self) -> [Option<f64>; FIGURES.len()] {
        let mut peaks = [None::<f64>; FIGURES.len()];
        for slice in &self.all {
            for (peak, ms) in peaks.iter_mut().zip(slice.latency_ms()) {
                *peak = [*peak, ms].into_iter().flatten().reduce(f64::max);
            }
        }
        peaks
    }
}

impl OverTime {
    /// The parts of a run that was measured once, by its clients.
    pub fn of_one_run(every_ns: u64, slices: &[SliceSums]) -> OverTime {
        let mut of = OverTime::of_slices(every_ns, slices, true);
        let greatest = |figure: usize| of.latency_ms[figure].iter().flatten().copied().reduce(f64::max);
        of.peak = std::array::from_fn(|figure| Estimate { value: greatest(figure), low: None, high: None });
        of
    }

    /// What was counted of each part. `is_connected`: whether connections were.
    pub(crate) fn of_slices(every_ns: u64, all: &[SliceSums], is_connected: bool) -> OverTime {
        let rate = |of: &dyn Fn(&SliceSums) -> u64| -> Vec<f64> {
            all.iter().map(|slice| per_s(of(slice), slice.length_ns)).collect()
        };
        let latencies: Vec<_> = all.iter().map(SliceSums::latency_ms).collect();
        let failed = |kind: Kind| {
            let some = all.iter().any(|slice| slice.errors[kind as usize] > 0);
            some.then(|| (kind, rate(&|slice| slice.errors[kind as usize])))
        };
        let connected = |of: &dyn Fn(&SliceSums) -> f64| -> Option<Vec<f64>> {
            is_connected.then(|| all.iter().map(of).collect())
        };
        OverTime {
            every_ns,
            arrivals_per_s: rate(&|slice| slice.arrivals),
            responses_per_s: rate(&|slice| slice.responses),
            ok: rate(&|slice| slice.ok),
            errors: Kind::ALL.into_iter().filter_map(failed).collect(),
            latency_ms: std::array::from_fn(|figure| latencies.iter().map(|of| of[figure]).collect()),
            in_flight: all.iter().map(SliceSums::in_flight).collect(),
            connections: connected(&SliceSums::connections),
            opened_per_s: connected(&|slice| per_s(slice.opened, slice.connected_ns)),
            ..OverTime::default()
        }
    }
}

/// The parts of one replication.
pub(crate) struct RunParts {
    slices: PooledSlices,
    own: PartFigures,
}

/// What is kept of one replication's parts by itself.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PartFigures {
    /// The greatest of a part, as [`FIGURES`] names them, ms.
    pub peaks_ms: [Option<f64>; FIGURES.len()],
    /// By watched member, as [`watch::regained_s`] has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regained_s: Vec<Option<f64>>,
    /// What happened in the course of changes; of the first replication only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acts: Vec<acts::Act>,
}

impl RunParts {
    /// From what a replication counted.
    pub fn new(
        slices: PooledSlices,
        acts: Vec<acts::Act>,
        tables: Option<&WatchTables>,
        every_ns: u64,
    ) -> RunParts {
        let regained = |tables| watch::regained_s(tables, &acts, &slices.members, every_ns);
        let regained_s = tables.map(regained).unwrap_or_default();
        RunParts { own: PartFigures { peaks_ms: slices.peaks(), regained_s, acts }, slices }
    }

    /// The parts, which are added to those of other replications, and what is kept beside them.
    pub fn kept(mut self, with_acts: bool) -> (PooledSlices, PartFigures) {
        if !with_acts {
            self.own.acts = Vec::new();
        }
        (self.slices, self.own)
    }
}

fn per_s(count: u64, ns: u64) -> f64 {
    if ns > 0 { count as f64 / (ns as f64 / 1e9) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_workload::parts::Slices;

    #[test]
    fn the_peaks_of_one_run_are_the_greatest_of_its_parts() {
        const MS: u64 = 1_000_000;
        let mut slices = Slices::new_live(1_000 * MS);
        for n in 0..2_000 {
            slices.end(n * MS, Some(if n < 1_000 { 30 * MS } else { 10 * MS }), None);
        }
        let of = OverTime::of_one_run(1_000 * MS, &slices.finish(2_000 * MS));
        assert_eq!((of.arrivals_per_s, of.ok, of.errors), (vec![1e3; 2], vec![1e3; 2], Vec::new()));
        let [p50, _, p99, p999, max] = of.latency_ms;
        assert_eq!([p50, p99, max], [(); 3].map(|()| vec![Some(30.0), Some(10.0)]));
        assert_eq!(p999, [None, None], "of 1,000 requests one lies beyond");
        assert_eq!(of.peak.map(|e| e.value), [Some(30.0), Some(30.0), Some(30.0), None, Some(30.0)]);
        assert!(of.peak.iter().all(|e| e.low.is_none() && e.high.is_none()));
        assert_eq!((of.connections, of.opened_per_s), (Some(vec![0.0; 2]), Some(vec![0.0; 2])));
    }
}
