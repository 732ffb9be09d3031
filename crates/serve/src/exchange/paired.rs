//! A run of a verification, as a process of it serves: what it believes, when it began, and what it tells of each request.

use super::NodeId;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::Sender;
use weir_policy::Outcome;
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
    /// What hears of each request that has ended.
    pub ended: Sender<Ended>,
}

/// What a process of a run is.
#[derive(Debug)]
pub enum Part {
    /// It routes; built-in servers are a process of their own, where they listen by their roots.
    Routes(BTreeMap<NodeId, SocketAddr>),
    /// It is the built-in servers with these roots.
    Serves(Vec<NodeId>),
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
    /// Tells of a request; who does not listen any more need not hear it.
    pub(crate) fn tell(&self, ended: Ended) {
        let _ = self.ended.send(ended);
    }
}
