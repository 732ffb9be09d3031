//! Health by work: a process that is checked but receives no requests has lost its clients.
//!
//! Each asker's checks divide time into parts, and in each of them at least `min_requests` must enter. Where they do not, all
//! askers are turned away for `hold`, twice as long each time in a row, since a process without requests could never show
//! that it gets any.

use super::Answer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The arguments of a gate's judgement by work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Requests that must have entered since an asker's last check; at least 1.
    pub min_requests: u64,
    /// Whether it counts only while the other gates of the place have four times as many on average.
    #[serde(rename = "relative")]
    pub is_relative: bool,
    /// Time after the clock's beginning in which requests are not judged, ns.
    pub grace_ns: u64,
    /// For how long all are turned away the first time, ns.
    pub hold_ns: u64,
    /// For how long at most: it doubles each time in a row.
    pub max_hold_ns: u64,
}

/// Another gate of the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherGate {
    /// Its number, the same each time.
    pub number: u32,
    /// The requests that have entered there.
    pub entered: u64,
}

/// How much more work the others must have.
const OTHERS_HAVE: f64 = 4.0;

/// The counts at an asker's last check.
#[derive(Clone, Debug)]
struct LastCheck {
    entered: u64,
    /// Those of other gates, by their number, ascending.
    others: Vec<OtherGate>,
}

/// What a gate knows of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Judge {
    pub entered: u64,
    first_check_ns: Option<u64>,
    askers: BTreeMap<u32, LastCheck>,
    held_until_ns: u64,
    /// Times in a row that all were turned away.
    holds: u32,
}

impl Judge {
    /// For how long all are still turned away, ns.
    pub fn held_ns(&self, now_ns: u64) -> Option<u64> {
        self.held_until_ns.checked_sub(now_ns).filter(|left| *left > 0)
    }

    /// Requests that have entered since an asker's last check.
    pub fn entered_since(&self, asker: u32) -> Option<u64> {
        self.askers.get(&asker).map(|before| self.entered.saturating_sub(before.entered))
    }

    /// An asker is forgotten: its next check is its first.
    pub fn forget(&mut self, asker: u32) {
        self.askers.remove(&asker);
    }

    /// Judges the time since this asker's last check. `began_ns`: the clock's beginning, if there is a ramp.
    pub fn judge(
        &mut self,
        work: &Work,
        now_ns: u64,
        began_ns: Option<u64>,
        asker: u32,
        others: &[OtherGate],
    ) -> Answer {
        let first_ns = *self.first_check_ns.get_or_insert(now_ns);
        if now_ns < self.held_until_ns {
            return Answer::Held;
        }
        let mut others = if work.is_relative { others.to_vec() } else { Vec::new() };
        others.sort_unstable_by_key(|other| other.number);
        let is_early = now_ns.saturating_sub(began_ns.unwrap_or(first_ns)) < work.grace_ns;
        let (had, others_had) = match self.askers.get(&asker) {
            Some(before) => (self.entered.saturating_sub(before.entered), before.mean(&others)),
            None => (u64::MAX, None),
        };
        let is_first = self.askers.insert(asker, LastCheck { entered: self.entered, others }).is_none();
        if is_first || is_early {
            return Answer::Healthy;
        }
        if had >= work.min_requests {
            self.holds = 0;
            return Answer::Healthy;
        }
        let enough = OTHERS_HAVE * work.min_requests as f64;
        if work.is_relative && others_had.is_none_or(|mean| mean < enough) {
            return Answer::Healthy;
        }
        self.hold(work, now_ns);
        Answer::Idle { had }
    }

    fn hold(&mut self, work: &Work, now_ns: u64) {
        let twice = 1u64.checked_shl(self.holds).unwrap_or(u64::MAX);
        // At least the first time is as long as it is to be.
        let hold_ns = work.hold_ns.saturating_mul(twice).min(work.max_hold_ns.max(work.hold_ns));
        self.holds = self.holds.saturating_add(1);
        self.held_until_ns = now_ns.saturating_add(hold_ns);
        // The next check of each asker is its first again.
        self.askers.clear();
    }
}

impl LastCheck {
    /// The mean of the requests that have entered since then at the others that were there all the time; `None`: there are
    /// none.
    fn mean(&self, now: &[OtherGate]) -> Option<f64> {
        // One that was not there then, or has begun anew since, says nothing of the whole time.
        let had = |other: &OtherGate| {
            let at = self.others.binary_search_by_key(&other.number, |before| before.number).ok()?;
            other.entered.checked_sub(self.others.get(at)?.entered)
        };
        let known: Vec<u64> = now.iter().filter_map(had).collect();
        (!known.is_empty()).then(|| known.iter().sum::<u64>() as f64 / known.len() as f64)
    }
}
