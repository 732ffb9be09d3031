//! Counts of a balancer and its targets on one thread: attempts, from the pick to their end.
//!
//! A series belongs to its labels: balancers of one site, and targets with the same name, share their counters, in
//! every graph.

use super::connected::PoolTotals;
use super::counts::{Count, OutcomeLabel, Outcomes};
use super::histogram::Histogram;
use super::recent::{Brief, Recent, is_failure};
use crate::sync::shared_list::SharedList;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use weir_policy::{Outcome, TargetId};

/// The counters of a pool.
#[derive(Default)]
pub(crate) struct PoolCounts {
    pub label: Arc<str>,
    /// From the pick to the head of the answer.
    pub duration: Histogram,
    /// The last minutes.
    pub recent: Recent,
    /// What those targets have counted of their connections that are there no more.
    pub left: Cell<PoolTotals>,
    seen: ScrapeRound,
}

/// The counters of a target of a pool.
#[derive(Default)]
pub(crate) struct TargetCounts {
    pub label: Arc<str>,
    begun: Count,
    pub ended: Outcomes,
    /// The last 10 s.
    pub brief: Brief,
    seen: ScrapeRound,
}

impl PoolCounts {
    /// Without counts.
    pub fn new(label: Arc<str>) -> PoolCounts {
        PoolCounts { label, ..PoolCounts::default() }
    }

    /// Whether this round reads it for the first time.
    pub fn is_new_in(&self, round: u64) -> bool {
        self.seen.is_new_in(round)
    }
}

impl TargetCounts {
    /// Without counts.
    pub fn new(label: Arc<str>) -> TargetCounts {
        TargetCounts { label, ..TargetCounts::default() }
    }

    /// Attempts so far, and failed ones.
    pub fn attempts(&self) -> (u64, u64) {
        (self.begun.get(), self.ended.sum().wrapping_sub(self.ended.get(OutcomeLabel(None))))
    }

    /// Attempts in progress.
    pub fn in_flight(&self) -> u64 {
        self.begun.get().wrapping_sub(self.ended.sum())
    }

    /// Whether this round reads it for the first time.
    pub fn is_new_in(&self, round: u64) -> bool {
        self.seen.is_new_in(round)
    }
}

/// The last round of gathering that has read it: counters that several nodes share are read once.
#[derive(Default)]
pub(super) struct ScrapeRound(Cell<u64>);

impl ScrapeRound {
    pub(super) fn is_new_in(&self, round: u64) -> bool {
        self.0.replace(round) != round
    }
}

/// The counters of a balancer.
pub(crate) struct LbCounts {
    pub pool: Rc<PoolCounts>,
    /// By the number of the target.
    pub targets: SharedList<Rc<TargetCounts>>,
}

impl LbCounts {
    /// Counts an attempt that begins at this target.
    #[inline]
    pub fn begins(&self, target: TargetId) {
        if let Some(target) = self.targets.get(target.index()) {
            target.begun.one();
        }
    }

    /// The head of its answer came after this time.
    #[inline]
    pub fn headed(&self, now_ns: u64, target: TargetId, ns: u64) {
        self.pool.duration.observe(ns);
        self.pool.recent.took(now_ns, ns);
        if let Some(target) = self.targets.get(target.index()) {
            target.brief.took(now_ns, ns);
        }
    }

    /// The attempt is over.
    #[inline]
    pub fn ended(&self, now_ns: u64, target: TargetId, outcome: Outcome) {
        let failed = is_failure(0, outcome);
        self.pool.recent.ended(now_ns, failed);
        if let Some(target) = self.targets.get(target.index()) {
            target.brief.ended(now_ns, failed);
            target.ended.one(OutcomeLabel(outcome));
        }
    }
}
