//! The operations on an [`Upstream`], as data. A verification records them in the proxy and applies them again later:
//! the picks are the same, since nothing but these operations and the configuration decides them.

use crate::balance::prequal::Reading;
use crate::health::snapshot::Snapshot;
use crate::{Ask, Outcome, PickOutcome, SubsetTable, TargetChange, TargetId, Ticket, Upstream};
use serde::{Deserialize, Serialize};
use weir_stats::Key;

/// An operation on an upstream, with its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Everything due by this time happens.
    Tick {
        /// When, ns.
        #[serde(rename = "now")]
        now_ns: u64,
    },
    /// A pick.
    Pick {
        /// When, ns.
        #[serde(rename = "now")]
        now_ns: u64,
        /// The key of its draws.
        draw: u64,
        /// The hash of the request's key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<u64>,
        /// Targets that are left out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        exclude: Vec<TargetId>,
        /// The target that it should return to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sticky: Option<TargetId>,
        /// The result.
        picked: Choice,
    },
    /// A target was picked and could not be reached.
    GiveUp {
        /// The hold that was given back.
        ticket: Ticket,
    },
    /// A request has come back.
    Done {
        /// When, ns.
        #[serde(rename = "now")]
        now_ns: u64,
        /// The ticket of its pick.
        ticket: Ticket,
        /// How it ended.
        outcome: Outcome,
        /// The status of its answer.
        status: Option<u16>,
        /// Whether a balancer behind passed the error on.
        relayed: bool,
    },
    /// A request was cancelled.
    Cancelled {
        /// When, ns.
        #[serde(rename = "now")]
        now_ns: u64,
        /// The ticket of its pick.
        ticket: Ticket,
        /// Whether a `timeout` around the balancer cut it off.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        late: bool,
    },
    /// An answer reports the load of its target.
    Loaded {
        /// When, ns.
        #[serde(rename = "now")]
        now_ns: u64,
        /// The target.
        target: TargetId,
        /// 0 to 1.
        load: f32,
    },
    /// A hold after a failure ends.
    Release {
        /// The target.
        target: TargetId,
    },
    /// A target became full, or is no longer.
    Full {
        /// The target.
        target: TargetId,
        /// Whether it is full.
        full: bool,
    },
    /// A target is being tried, or no longer.
    Probing {
        /// The target.
        target: TargetId,
        /// Whether it is being tried.
        probing: bool,
    },
    /// Targets were probed (`lb.prequal`).
    Probed {
        /// When, ns.
        #[serde(rename = "now")]
        now_ns: u64,
        /// The key of its draws.
        draw: u64,
        /// The probed targets: requests in flight, and a latency, ns.
        busy: Vec<(TargetId, u32, u64)>,
    },
    /// Targets are being probed, and answer later.
    Asked {
        /// The key of its draws.
        draw: u64,
    },
    /// A probed target has answered.
    Answered {
        /// When, ns.
        #[serde(rename = "now")]
        now_ns: u64,
        /// The key of its draws.
        draw: u64,
        /// The target.
        target: TargetId,
        /// Requests in flight there, and a latency, ns.
        busy: (u32, u64),
    },
    /// The health of the targets has changed.
    Follow {
        /// When, ns.
        #[serde(rename = "now")]
        now_ns: u64,
        /// The new health.
        health: Snapshot,
    },
    /// Targets were added and removed, in one step.
    Change {
        /// When, ns.
        #[serde(rename = "now")]
        now_ns: u64,
        /// The changes, in their order.
        changes: Vec<Change>,
        /// The health of all targets after them, if another thread keeps it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        health: Option<Snapshot>,
    },
    /// What a loop sees of all loops' requests at a target.
    Counted {
        /// The target.
        target: TargetId,
        /// Requests in flight there.
        count: u32,
    },
    /// A loop has another subset.
    Prefer {
        /// When, ns.
        #[serde(rename = "now")]
        now_ns: u64,
        /// The subsets of all loops; `None`: the loop prefers no target to another.
        table: Option<SubsetTable>,
        /// The number of the loop.
        on: u32,
    },
}

/// A target that was added or removed: a [`TargetChange`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The target, with its weight and the name by which it is hashed.
    Add(TargetId, f64, String),
    /// The target.
    Remove(TargetId),
}

impl From<TargetChange<'_>> for Change {
    fn from(change: TargetChange<'_>) -> Change {
        match change {
            TargetChange::Add { target, weight, name } => Change::Add(target, weight, name.to_owned()),
            TargetChange::Remove(target) => Change::Remove(target),
        }
    }
}

impl<'a> From<&'a Change> for TargetChange<'a> {
    fn from(change: &'a Change) -> TargetChange<'a> {
        match change {
            Change::Add(target, weight, name) => TargetChange::Add { target: *target, weight: *weight, name },
            Change::Remove(target) => TargetChange::Remove(*target),
        }
    }
}

/// The result of a pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// This target.
    Target(TargetId),
    /// All targets that may be picked are full.
    Full,
    /// No target is left.
    Empty,
}

impl From<PickOutcome> for Choice {
    fn from(picked: PickOutcome) -> Choice {
        match picked {
            PickOutcome::Target(ticket) => Choice::Target(ticket.target),
            PickOutcome::Full => Choice::Full,
            PickOutcome::Empty => Choice::Empty,
        }
    }
}

impl Operation {
    /// A pick with its result.
    pub fn pick(ask: &Ask, picked: PickOutcome) -> Operation {
        let Ask { draw, key, now_ns, exclude, sticky } = *ask;
        let exclude = exclude.to_vec();
        Operation::Pick { now_ns, draw: draw.bits(), key, exclude, sticky, picked: picked.into() }
    }
}

impl Upstream {
    /// Applies an operation again. For a pick: the result now.
    pub fn act(&mut self, deed: &Operation) -> Option<Choice> {
        match deed {
            Operation::Tick { now_ns } => self.tick(*now_ns),
            Operation::Pick { now_ns, draw, key, exclude, sticky, .. } => {
                let draw = Key::from_bits(*draw);
                let ask = Ask { draw, key: *key, now_ns: *now_ns, exclude, sticky: *sticky };
                return Some(self.pick(&ask).into());
            }
            Operation::GiveUp { ticket } => self.give_up(*ticket),
            Operation::Done { now_ns, ticket, outcome, status, relayed: false } => {
                self.done(*now_ns, *ticket, *outcome, *status);
            }
            Operation::Done { now_ns, ticket, outcome, status, relayed: true } => {
                self.relayed(*now_ns, *ticket, *outcome, *status);
            }
            Operation::Cancelled { now_ns, ticket, late: false } => self.cancelled(*now_ns, *ticket),
            Operation::Cancelled { now_ns, ticket, late: true } => self.timed_out(*now_ns, *ticket),
            Operation::Loaded { now_ns, target, load } => self.loaded(*now_ns, *target, *load),
            Operation::Release { target } => self.release(0, *target),
            Operation::Counted { target, count } => self.see_count(*target, *count),
            Operation::Full { target, full } => self.set_full(*target, *full),
            Operation::Probing { target, probing } => self.set_probing(*target, *probing),
            Operation::Probed { now_ns, draw, busy } => {
                let answer = |target| {
                    let of = busy.iter().find(|(other, ..)| *other == target);
                    of.map_or(Reading::default(), |&(_, in_flight, latency_ns)| Reading {
                        in_flight,
                        latency_ns,
                    })
                };
                if let Some(prequal) = self.balancer().prequal() {
                    prequal.probe(*now_ns, Key::from_bits(*draw), answer);
                }
            }
            Operation::Asked { draw } => {
                if let Some(prequal) = self.balancer().prequal() {
                    prequal.whom(Key::from_bits(*draw), &mut Vec::new());
                }
            }
            Operation::Answered { now_ns, draw, target, busy: (in_flight, latency_ns) } => {
                let reading = Reading { in_flight: *in_flight, latency_ns: *latency_ns };
                if let Some(prequal) = self.balancer().prequal() {
                    prequal.probed(*now_ns, Key::from_bits(*draw), *target, reading);
                }
            }
            Operation::Follow { now_ns, health } => self.follow(*now_ns, health),
            Operation::Change { now_ns, changes, health } => {
                let changes: Vec<TargetChange<'_>> = changes.iter().map(TargetChange::from).collect();
                let names = self.balancer().names_after(&changes);
                self.change_named(*now_ns, changes.iter().copied(), &names, health.as_ref());
            }
            Operation::Prefer { now_ns, table: Some(table), on } => self.follow_subsets(*now_ns, table, *on),
            Operation::Prefer { now_ns, table: None, .. } => self.drop_subsets(*now_ns),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TargetNames;
    use crate::config::Balance;
    use crate::health::Health;
    use crate::upstream::UpstreamConfig;

    /// Made again from a record, changes of targets are the same: with health of one's own and of another thread.
    #[test]
    fn changes_can_be_made_again() {
        let new = || {
            let config = UpstreamConfig::default();
            Upstream::new(&Balance::Random, config, &[1.0; 3], &["a", "b", "c"], 0, Key::new(1))
        };
        let changes = [
            TargetChange::Add { target: TargetId(3), weight: 2.0, name: "d" },
            TargetChange::Remove(TargetId(1)),
        ];
        let mut owner = Health::new(UpstreamConfig::default().health, &[1.0; 3], 0, Key::new(2));
        owner.change_targets(5, changes);
        for health in [None, Some(Snapshot::new(&owner))] {
            let (mut first, mut again) = (new(), new());
            let names = TargetNames::default();
            first.change_named(5, changes.iter().copied(), &names, health.as_ref());
            let record = Operation::Change { now_ns: 5, changes: changes.map(Change::from).into(), health };
            assert_eq!(again.act(&record), None);
            for n in 0..200 {
                let ask = Ask::new(Key::new(n), 6);
                let picks = [&mut first, &mut again].map(|upstream| Choice::from(upstream.pick(&ask)));
                assert_eq!(picks[0], picks[1]);
                assert_ne!(picks[0], Choice::Target(TargetId(1)));
            }
        }
    }
}
