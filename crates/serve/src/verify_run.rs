//! A run of a verification, as one process of it serves: its draws, its beginning, and the events that it reports.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use weir_plan::NodeId;
use weir_plan::fleets::Timetable;
use weir_policy::config::Balance;
use weir_policy::health::HealthConfig;
use weir_policy::snapshot::Snapshot;
use weir_policy::upstream::UpstreamConfig;
use weir_policy::{Operation, Outcome, TargetId, TargetNames, Upstream};
use weir_stats::Key;

/// A run that is paired with a replication of the simulation.
#[derive(Debug)]
pub struct VerifyRun {
    /// The key of seed and replication, from which everything is drawn.
    pub key: Key,
    /// A secret that the processes of the run share.
    pub secret: u64,
    /// The node that the scenario's requests enter: nodes are numbered from it, as in the simulation.
    pub root: NodeId,
    /// The instant 0 of the run on `CLOCK_MONOTONIC`, ns.
    pub begins_ns: u64,
    /// The part that this process plays.
    pub role: RunRole,
    /// What balancers see of changes of fleets, and when members join; empty where nothing changes.
    pub timetable: Timetable,
    /// Whether every operation on a balancer is reported.
    pub records: bool,
    /// Receives the events of the run.
    pub events: Sender<RunEvent>,
    /// The way to the thread that plays the changes.
    pub player: PlayerMailbox,
}

/// The way to the thread that plays the changes of a run; without such a thread messages are lost.
#[derive(Debug, Default)]
pub struct PlayerMailbox(OnceLock<Sender<PlayerMessage>>);

/// A message to the thread that plays the changes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlayerMessage {
    /// A target has failed.
    Failed(TargetFailure),
    /// Nothing changes any more.
    Stop,
}

/// A failure that ends a target which only a doubted list lacks: a connection to it or a check of it has failed, or it was
/// ejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetFailure {
    /// The node of the balancer.
    pub lb: NodeId,
    /// The target at which it failed.
    pub target: TargetId,
    /// When, ns from the start of the run.
    pub at_ns: u64,
}

/// The part that a process plays in a run.
#[derive(Debug)]
pub enum RunRole {
    /// It routes; the built-in servers with these roots are in another process.
    Routes {
        /// The address of each of them.
        servers: BTreeMap<NodeId, SocketAddr>,
        /// The addresses of listeners behind this one that have a process of their own.
        listeners: BTreeMap<NodeId, SocketAddr>,
    },
    /// It is the built-in servers with these roots.
    Serves(Vec<NodeId>),
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// A request has ended.
    RequestEnded(RequestEnded),
    /// A request was sent to a server outside of weir.
    RequestSent {
        /// The server.
        server: NodeId,
        /// Whether the request is measured.
        selected: bool,
    },
    /// A connection to a server or to a listener behind others was opened.
    ConnectionOpened {
        /// When it was open, ns.
        at_ns: u64,
        /// How long that took, ns.
        took_ns: u64,
    },
    /// Such a connection has closed.
    ConnectionClosed {
        /// When, ns.
        at_ns: u64,
    },
    /// A balancer has ejected this number of targets.
    Ejected(u64),
    /// A timer fired this much later than it was set for, ns.
    TimerLate(u64),
    /// A balancer was created.
    BalancerCreated(BalancerCreated),
    /// An operation on the balancer of a node.
    BalancerOperation {
        /// The balancer's node.
        lb: NodeId,
        /// The loop that the balancer belongs to.
        on_loop: u32,
        /// The operation.
        deed: Operation,
    },
}

/// The state of a balancer at its creation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BalancerCreated {
    /// The balancer's node.
    pub lb: NodeId,
    /// The loop that it belongs to.
    pub on_loop: u32,
    /// When it was created, ns.
    pub at_ns: u64,
    /// The bits of the key from which it draws.
    pub draw: u64,
    /// Its policy.
    pub balance: Balance,
    /// How long a target is passed over after a failed connection, ns.
    pub pass_over_ns: u64,
    /// The weights of its targets.
    pub weights: Vec<f64>,
    /// The names of its targets, where its policy hashes them.
    pub names: TargetNames,
    /// The health of its targets.
    pub health: Snapshot,
}

impl BalancerCreated {
    /// A new balancer in this state.
    pub fn upstream(&self) -> Upstream {
        let (health, max_in_flight) = (HealthConfig::default(), None);
        let around = UpstreamConfig { health, max_in_flight, pass_over_ns: self.pass_over_ns, counts: false };
        let draw = Key::from_bits(self.draw);
        let mut upstream = Upstream::new(&self.balance, around, &self.weights, &self.names, self.at_ns, draw);
        upstream.follow(self.at_ns, &self.health);
        upstream
    }
}

/// A request that has ended, reported by the process that received it.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestEnded {
    /// Its number in the run.
    pub ordinal: u64,
    /// Whether it is measured.
    pub selected: bool,
    /// The server that received it; `None`: a listener did.
    pub server: Option<NodeId>,
    /// Whether that listener is behind another.
    pub inner: bool,
    /// When it arrived, ns.
    pub begun_ns: u64,
    /// When it ended, ns.
    pub ended_ns: u64,
    /// Attempts that were made.
    pub attempts: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The status of its answer.
    pub status: u16,
}

impl VerifyRun {
    /// Reports an event; ignored if the receiver is gone.
    pub(crate) fn report(&self, event: RunEvent) {
        let _ = self.events.send(event);
    }

    /// Whether this process plays changes of which some depend on targets that fail.
    pub(crate) fn has_doubts(&self) -> bool {
        matches!(self.role, RunRole::Routes { .. }) && !self.timetable.doubts.is_empty()
    }
}

impl PlayerMailbox {
    /// Begins to take messages; `None`: another thread takes them. Unbounded: a message for each failure, at most one for
    /// each request of the run and each check.
    pub(crate) fn open(&self) -> Option<Receiver<PlayerMessage>> {
        let (out, inbox) = channel();
        self.0.set(out).ok().map(|()| inbox)
    }

    /// Sends a message.
    pub(crate) fn send(&self, message: PlayerMessage) {
        if let Some(out) = self.0.get() {
            let _ = out.send(message);
        }
    }
}
