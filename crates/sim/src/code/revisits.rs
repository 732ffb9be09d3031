//! Counters of visits for nodes that one request can pass several times on one way (behind a `sequence`).

use std::collections::BTreeMap;

/// The visit counter of each balancer, choosing node and retry that one way can pass more than once, by its number
/// among nodes of its kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct VisitCounters {
    pub lbs: BTreeMap<u32, u32>,
    pub choices: BTreeMap<u32, u32>,
    pub retries: BTreeMap<u32, u32>,
}
