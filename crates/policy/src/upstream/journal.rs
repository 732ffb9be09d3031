//! The operations on an [`Upstream`], as data. A verification records them in the proxy and applies them again later:
//! the picks are the same, since nothing but these operations and the configuration decides them.

use crate::balance::prequal::Reading;
use crate::health::snapshot::Snapshot;
use crate::{Ask, Outcome, PickOutcome, TargetId, Ticket, Upstream};
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
            Operation::Cancelled { now_ns, ticket } => self.cancelled(*now_ns, *ticket),
            Operation::Release { target } => self.release(*target),
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
        }
        None
    }
}
