//! The members of a fleet, as a source lists them, and how far a list is believed.
//!
//! - Idea: a registry that fails shows by short lists. A list that lacks too many at once is doubted: the members
//!   that it lacks are picked as before for a while, until something else says that they are gone.
//! - Signal: whole lists; what the source states of single members; checks and connections that fail. State per member:
//!   weight, whether it drains, until when it is withdrawn. Cost: O(n log n) for a list of n, O(log n) for each member
//!   whose grace ends.
//! - Formula: doubted with n < (1 − shrink) · m, where m counts all members before: up, draining and withdrawn.
//! - Pathologies: a fleet that is scaled down by more than `shrink` in one step keeps its leavers for `grace`, unless
//!   they drained before, or fail; one that is lost step by step, each smaller than `shrink`, is believed.
//! - Source: Eureka's self-preservation, with a bound in time; Envoy Gateway 6463. In the language: `find.*` and
//!   `change.unlist`, with `shrink` and `grace`.
//!
//! [`Members`] is the state machine. The runtimes read sources and apply its [`MemberChange`]s; what a removed member
//! still has inside is theirs too.

use serde::{Deserialize, Serialize};

mod draw;
#[cfg(test)]
mod liveness;
mod members;
#[cfg(test)]
mod naive;
mod places;
mod record;
#[cfg(test)]
mod rules;

pub use draw::draw;
pub use members::Members;
pub use record::MemberRecord;

/// How far lists are believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// A list that is shorter than the members before by more than this share of them is doubted. From 0 (every shorter
    /// list) to 1 (none), in billionths, to which it is rounded. `None`: every list is believed.
    pub shrink: Option<f64>,
    /// How long a withdrawn member is picked, ns from when it was withdrawn.
    pub grace_ns: u64,
}

impl Doubt {
    /// Whether a list of `n` members is doubted where there were `before`, draining and withdrawn ones included. The
    /// first list of a fleet never is.
    pub fn is_doubted(&self, n: usize, before: usize) -> bool {
        const WHOLE: u128 = 1_000_000_000;
        let Some(shrink) = self.shrink else { return false };
        // In whole numbers: with floats 3 of 10 would be fewer than (1 − 0.7) · 10.
        let missing = (shrink * WHOLE as f64).round() as u128;
        (n as u128) * WHOLE < WHOLE.saturating_sub(missing) * before as u128
    }
}

/// The state of a listed member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is picked.
    Up,
    /// No new picks; requests inside go on.
    Drain,
}

/// One entry of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<K> {
    /// The member: its number in a simulation; its address and id when served.
    pub key: K,
    /// The state that the source gives it.
    pub state: State,
    /// Its weight; 0 drains. An entry with a negative, infinite or undefined weight is left out.
    pub weight: f64,
}

impl<K> Entry<K> {
    /// Whether the member gets no new picks, by its state or its weight.
    pub fn is_draining(&self) -> bool {
        self.state == State::Drain || self.weight == 0.0
    }

    /// Whether the weight is a number from 0 that is finite.
    fn is_valid(&self) -> bool {
        self.weight.is_finite() && self.weight >= 0.0
    }
}

/// A change of a fleet's members, for the balancers that have them as targets.
#[derive(Clone, Debug, PartialEq)]
pub enum MemberChange<K> {
    /// A new member; it was none before.
    Add {
        /// The member.
        key: K,
        /// Its weight; 0 only if it drains.
        weight: f64,
        /// Whether it gets no new picks.
        drain: bool,
    },
    /// A member that is none any more: no new picks; requests inside go on.
    Remove {
        /// The member.
        key: K,
    },
    /// A member with another weight, or that begins or ceases to drain.
    Set {
        /// The member.
        key: K,
        /// Its weight; 0 only if it drains.
        weight: f64,
        /// Whether it gets no new picks.
        drain: bool,
    },
}

/// What a list was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Believed; it changed a member.
    Changed,
    /// Believed; it changed nothing for the balancers. Withdrawn members may have been listed again.
    Same,
    /// Too short: members that were up and that it lacks are withdrawn. Draining ones are removed, and what it lists is
    /// believed.
    Doubted,
}

impl Verdict {
    /// The `result` of a list in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Changed => "changed",
            Verdict::Same => "same",
            Verdict::Doubted => "doubted",
        }
    }
}

/// The number of members by state. Each member is in one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberCounts {
    /// Listed, and picked.
    pub up: usize,
    /// Listed without new picks.
    pub drain: usize,
    /// Missing from a doubted list, and picked.
    pub withdrawn: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound is exact for every share and count, as the decimal number says that was written.
    #[test]
    fn the_bound_is_exact() {
        for percent in 0..=100u64 {
            let doubt = Doubt { shrink: Some(percent as f64 / 100.0), grace_ns: 0 };
            for before in 0..=200u64 {
                for n in 0..=before + 1 {
                    let want = 100 * n < (100 - percent) * before;
                    assert_eq!(doubt.is_doubted(n as usize, before as usize), want, "{n} {before} {percent}");
                }
            }
        }
    }

    #[test]
    fn every_share_is_safe() {
        let doubted = |shrink, n| Doubt { shrink, grace_ns: 0 }.is_doubted(n, 10);
        assert!(!doubted(None, 0));
        // As 1 and as 0.
        assert!(!doubted(Some(7.0), 0) && !doubted(Some(f64::INFINITY), 0));
        assert!(doubted(Some(-1.0), 9) && doubted(Some(f64::NAN), 9) && !doubted(Some(f64::NAN), 10));
        assert!(Doubt { shrink: Some(0.5), grace_ns: 0 }.is_doubted(0, usize::MAX));
    }
}
