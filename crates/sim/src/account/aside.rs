//! What few runs count of a request when it ends: one place for all of it, so that other runs look once.

use super::settle::Series;
use crate::state::acts::{Act, Acts};
use crate::state::boundaries::BoundaryCount;
use crate::state::watch::WatchSample;
use weir_policy::Outcome;
use weir_workload::parts::Slices;

/// What is counted beside the figures of every run.
#[derive(Clone, Debug, Default)]
pub(crate) struct SideBooks {
    /// Latencies by batch of arrivals, in runs that look for where the replication has settled.
    pub series: Option<Series>,
    /// What happened in each part of the run, where the scenario asks for it.
    pub slices: Option<Slices>,
    /// What was counted of members at the ends of these parts.
    pub watched: Vec<WatchSample>,
    /// What was counted at the latest arrival of a closed loop.
    pub latest: Option<Box<BoundaryCount>>,
    /// What happened in the course of changes.
    pub acts: Vec<Act>,
}

impl SideBooks {
    /// A request with this number that arrived then has ended. `selected`: whether it counts in the figures.
    #[cold]
    pub fn end(&mut self, ordinal: u64, selected: bool, arrived_ns: u64, latency: u64, outcome: Outcome) {
        if let Some(series) = self.series.as_mut().filter(|_| selected) {
            series.record(ordinal, latency);
        }
        if let Some(slices) = &mut self.slices {
            slices.end(arrived_ns, Some(latency), outcome);
        }
    }

    /// What was counted at the end of a part.
    pub fn count(&mut self, count: BoundaryCount) {
        let BoundaryCount { connections, watch } = count;
        if let Some((slices, connections)) = self.slices.as_mut().zip(connections) {
            slices.count_connections(connections);
        }
        self.watched.extend(watch);
    }

    /// What was counted at an arrival, which may be the last.
    pub fn count_at_arrival(&mut self, count: BoundaryCount) {
        self.latest = Some(Box::new(count));
    }

    /// The run is over: its last part ends with the last arrival, and what was counted after it counts nowhere, since it depends
    /// on how long it is waited for those that never end.
    pub fn end_counts(&mut self) {
        let Some(slices) = &mut self.slices else { return };
        let last_ns = slices.last_arrival_ns();
        slices.drop_connections_after(last_ns);
        self.watched.retain(|sample| sample.at_ns <= last_ns);
        self.acts.retain(|act| act.at_ns <= last_ns);
        if let Some(latest) = self.latest.take() {
            let BoundaryCount { connections, watch } = *latest;
            connections.into_iter().for_each(|count| slices.count_connections(count));
            self.watched.extend(watch);
        }
    }

    /// The run is over, and this happened in it.
    pub fn take_acts(&mut self, acts: &mut Option<Box<Acts>>) {
        self.acts = acts.take().map(|acts| acts.all).unwrap_or_default();
    }

    /// A request that arrived then will never end.
    #[cold]
    pub fn lose(&mut self, arrived_ns: u64) {
        if let Some(slices) = &mut self.slices {
            slices.end(arrived_ns, None, None);
        }
    }
}
