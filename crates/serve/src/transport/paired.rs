//! A run of a verification, as a process of it serves: what it believes, when it began, and what it tells of each request.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;
use weir_plan::NodeId;
use weir_policy::config::Balance;
use weir_policy::health::HealthConfig;
use weir_policy::snapshot::Snapshot;
use weir_policy::upstream::Around;
use weir_policy::{Deed, Outcome, Upstream};
use weir_stats::Key;

/// A run that is paired with a replication of the simulation.
#[derive(Debug)]
pub struct Paired {
    /// Of seed and replication: what all of it is drawn by.
    pub key: Key,
    /// What only the processes of the run know.
    pub secret: u64,
    /// Where the scenario's requests enter: its nodes are numbered from there, as in the simulation.
    pub root: NodeId,
    /// The instant 0 of the run, as `CLOCK_MONOTONIC` tells it, ns.
    pub begins_ns: u64,
    /// What this process is in it.
    pub part: Part,
    /// Whether all that is done to balancers is told.
    pub records: bool,
    /// What hears of what happens.
    pub told: Sender<Told>,
}

/// What a process of a run is.
#[derive(Debug)]
pub enum Part {
    /// It routes; built-in servers are a process of their own, with these roots.
    Routes {
        /// Where each of them is.
        servers: BTreeMap<NodeId, SocketAddr>,
        /// Where listeners are that are processes of their own, behind this one.
        listeners: BTreeMap<NodeId, SocketAddr>,
    },
    /// It is the built-in servers with these roots.
    Serves(Vec<NodeId>),
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A request has ended.
    Ended(Ended),
    /// A request was sent to a server that is not weir's own.
    Sent {
        /// Which.
        server: NodeId,
        /// Whether it counts.
        selected: bool,
    },
    /// A balancer has ejected so many targets.
    Ejected(u64),
    /// A timer rang so much later than wanted, ns.
    Late(u64),
    /// A balancer was made.
    Made(Made),
    /// Something was done to the balancer of that node, on that loop.
    Did(NodeId, u32, Deed),
}

/// A balancer's state as it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The balancer's node.
    pub lb: NodeId,
    /// On which loop.
    pub on_loop: u32,
    /// When, ns.
    pub at_ns: u64,
    /// What it draws by.
    pub draw: u64,
    /// Its policy.
    pub balance: Balance,
    /// For how long a target to which a connection failed is passed over, ns.
    pub pass_over_ns: u64,
    /// Its targets: weights, and what hashes know them by.
    pub weights: Vec<f64>,
    /// The names.
    pub names: Vec<String>,
    /// The health of its targets.
    pub health: Snapshot,
}

impl Made {
    /// The same anew.
    pub fn upstream(&self) -> Upstream {
        let (health, max_in_flight) = (HealthConfig::default(), None);
        let around = Around { health, max_in_flight, pass_over_ns: self.pass_over_ns, counts: false };
        let draw = Key::from_bits(self.draw);
        let mut upstream = Upstream::new(&self.balance, around, &self.weights, &self.names, self.at_ns, draw);
        upstream.follow(self.at_ns, &self.health);
        upstream
    }
}

/// A request that has ended, where it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// Its number in the run.
    pub ordinal: u64,
    /// Whether it counts.
    pub selected: bool,
    /// The server that it came to; `None`: a listener.
    pub server: Option<NodeId>,
    /// Whether it came to a listener behind another.
    pub inner: bool,
    /// Since when it was here, ns.
    pub begun_ns: u64,
    /// Until when.
    pub ended_ns: u64,
    /// Attempts; 0: none was made.
    pub attempts: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The status of its answer.
    pub status: u16,
}

impl Paired {
    /// Tells of something; who does not listen any more need not hear it.
    pub(crate) fn tell(&self, what: Told) {
        let _ = self.told.send(what);
    }
}
