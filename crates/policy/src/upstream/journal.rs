//! What is done to an [`Upstream`], one deed after another: recorded in the proxy and acted again later, the picks are the same,
//! since nothing but its deeds and what it was made of decides what it picks.

use crate::balance::prequal::Busy;
use crate::health::snapshot::Snapshot;
use crate::{Ask, Outcome, Picked, Ticket, Upstream};
use serde::{Deserialize, Serialize};
use weir_stats::Key;

/// Something that is done to an upstream, with what it did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// What is due by itself is done.
    Tick {
        /// When, ns.
        now: u64,
    },
    /// A target is asked for.
    Pick {
        /// When, ns.
        now: u64,
        /// What is drawn by.
        draw: u64,
        /// The hash of the request's key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<u64>,
        /// Who is left out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        exclude: Vec<u32>,
        /// To whom it should return.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sticky: Option<u32>,
        /// What was picked.
        picked: Choice,
    },
    /// A target was picked and could not be had.
    GiveUp {
        /// What was given back.
        ticket: Ticket,
    },
    /// A request is back.
    Done {
        /// When, ns.
        now: u64,
        /// What it held.
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
        now: u64,
        /// What it held.
        ticket: Ticket,
    },
    /// What was held after a failure ends.
    Release {
        /// Where.
        target: u32,
    },
    /// A target is full, or no longer.
    Full {
        /// Which.
        target: u32,
        /// Which of the two.
        full: bool,
    },
    /// A target is being tried, or no longer.
    Probing {
        /// Which.
        target: u32,
        /// Which of the two.
        probing: bool,
    },
    /// Targets were asked how busy they are (`lb.prequal`).
    Probed {
        /// When, ns.
        now: u64,
        /// What is drawn by.
        draw: u64,
        /// Those that were asked: in flight, and how long one takes alone, ns.
        busy: Vec<(u32, u32, u64)>,
    },
    /// Targets are being asked how busy they are, and answer later.
    Asked {
        /// What is drawn by.
        draw: u64,
    },
    /// One of them has answered.
    Answered {
        /// When, ns.
        now: u64,
        /// What is drawn by.
        draw: u64,
        /// Which.
        target: u32,
        /// In flight there, and how long one takes alone, ns.
        busy: (u32, u64),
    },
    /// The health of the targets is another.
    Follow {
        /// When, ns.
        now: u64,
        /// What it is.
        health: Snapshot,
    },
}

/// What was picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// This target.
    Target(u32),
    /// All that may be picked are full.
    Full,
    /// Nobody is left.
    Empty,
}

impl From<Picked> for Choice {
    fn from(picked: Picked) -> Choice {
        match picked {
            Picked::Target(ticket) => Choice::Target(ticket.target),
            Picked::Full => Choice::Full,
            Picked::Empty => Choice::Empty,
        }
    }
}

impl Deed {
    /// A pick as it went.
    pub fn pick(ask: &Ask, picked: Picked) -> Deed {
        let Ask { draw, key, now_ns, exclude, sticky } = *ask;
        let exclude = exclude.to_vec();
        Deed::Pick { now: now_ns, draw: draw.bits(), key, exclude, sticky, picked: picked.into() }
    }
}

impl Upstream {
    /// Does a deed again. Of a pick: what is picked now.
    pub fn act(&mut self, deed: &Deed) -> Option<Choice> {
        match deed {
            Deed::Tick { now } => self.tick(*now),
            Deed::Pick { now, draw, key, exclude, sticky, .. } => {
                let draw = Key::from_bits(*draw);
                let ask = Ask { draw, key: *key, now_ns: *now, exclude, sticky: *sticky };
                return Some(self.pick(&ask).into());
            }
            Deed::GiveUp { ticket } => self.give_up(*ticket),
            Deed::Done { now, ticket, outcome, status, relayed: false } => {
                self.done(*now, *ticket, *outcome, *status);
            }
            Deed::Done { now, ticket, outcome, status, relayed: true } => {
                self.relayed(*now, *ticket, *outcome, *status);
            }
            Deed::Cancelled { now, ticket } => self.cancelled(*now, *ticket),
            Deed::Release { target } => self.release(*target),
            Deed::Full { target, full } => self.set_full(*target, *full),
            Deed::Probing { target, probing } => self.set_probing(*target, *probing),
            Deed::Probed { now, draw, busy } => {
                let answer = |target| {
                    let of = busy.iter().find(|(other, ..)| *other == target);
                    of.map_or(Busy::default(), |(_, in_flight, alone_ns)| Busy {
                        in_flight: *in_flight,
                        alone_ns: *alone_ns,
                    })
                };
                if let Some(prequal) = self.balancer().prequal() {
                    prequal.probe(*now, Key::from_bits(*draw), answer);
                }
            }
            Deed::Asked { draw } => {
                if let Some(prequal) = self.balancer().prequal() {
                    prequal.whom(Key::from_bits(*draw), &mut Vec::new());
                }
            }
            Deed::Answered { now, draw, target, busy: (in_flight, alone_ns) } => {
                let busy = Busy { in_flight: *in_flight, alone_ns: *alone_ns };
                if let Some(prequal) = self.balancer().prequal() {
                    prequal.probed(*now, Key::from_bits(*draw), *target, busy.in_flight, busy.latency_ns());
                }
            }
            Deed::Follow { now, health } => self.follow(*now, health),
        }
        None
    }
}
