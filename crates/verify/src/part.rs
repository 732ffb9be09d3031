//! The messages between the processes of a run: lines of JSON; the setup in, the addresses and then the report out.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use weir_plan::fleets::{Fleets, Timetable};
use weir_plan::{NodeId, Point};
use weir_policy::{Kind, Operation};
use weir_serve::{BalancerCreated, RequestEnded};

/// The first message to a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub point: Point,
    /// The fleets in it.
    pub fleets: Option<Fleets>,
    /// What balancers see of their changes.
    pub timetable: Timetable,
    /// What listens for the scenario's requests.
    pub listener: NodeId,
    /// Where they enter.
    pub root: NodeId,
    /// Of seed and replication: what all is drawn by.
    pub key: u64,
    /// What only the processes of the run know.
    pub secret: u64,
    /// The instant 0 of the run, as `CLOCK_MONOTONIC` tells it, ns.
    pub begins_ns: u64,
    /// Whether operations on balancers are reported.
    pub records: bool,
    pub part: Part,
}

/// The role of a process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    /// It routes to servers that are another process.
    Routes {
        servers: Vec<(NodeId, SocketAddr)>,
        /// Where listeners behind this one are that are processes of their own.
        listeners: Vec<(NodeId, SocketAddr)>,
    },
    /// It is the built-in servers with these roots.
    Serves(Vec<NodeId>),
}

/// The first message of a process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChildAddresses {
    /// Where each loop of the listener is reached.
    pub loops: Vec<SocketAddr>,
    /// Where each server is reached.
    pub servers: Vec<(NodeId, SocketAddr)>,
}

/// The last message of a process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ChildReport {
    /// Each request that came to it.
    pub ended: Vec<Row>,
    /// For how long its threads have waited for a core, ns.
    pub waited_ns: Option<u64>,
    /// How much later than wanted its timers rang, ns.
    pub late_ns: Vec<u64>,
    /// The number of requests that count which it sent to each server that is not weir's own.
    pub sent: Vec<(NodeId, u64)>,
    /// How often its balancers ejected a target.
    pub ejections: u64,
    /// When connections to servers and other processes were open, how long that took in all, s, and when such
    /// connections closed; ns after the instant 0.
    pub opened: Vec<u64>,
    pub connecting_s: f64,
    pub closed: Vec<u64>,
    /// The balancers as they were made.
    pub made: Vec<BalancerCreated>,
    /// All that was done to them: the balancer's node, its loop, the deed.
    pub did: Vec<(NodeId, u32, Operation)>,
}

impl FromIterator<weir_serve::RunEvent> for ChildReport {
    fn from_iter<I: IntoIterator<Item = weir_serve::RunEvent>>(all: I) -> ChildReport {
        let (mut told, mut sent) = (ChildReport::default(), BTreeMap::new());
        for one in all {
            match one {
                weir_serve::RunEvent::RequestEnded(ended) => told.ended.push(ended.into()),
                weir_serve::RunEvent::RequestSent { server, selected } => {
                    *sent.entry(server).or_default() += u64::from(selected);
                }
                weir_serve::RunEvent::ConnectionOpened { at_ns, took_ns } => {
                    told.opened.push(at_ns);
                    told.connecting_s += took_ns as f64 / 1e9;
                }
                weir_serve::RunEvent::ConnectionClosed { at_ns } => told.closed.push(at_ns),
                weir_serve::RunEvent::Ejected(n) => told.ejections += n,
                weir_serve::RunEvent::TimerLate(ns) => told.late_ns.push(ns),
                weir_serve::RunEvent::BalancerCreated(made) => told.made.push(made),
                weir_serve::RunEvent::BalancerOperation { lb, on_loop, deed } => {
                    told.did.push((lb, on_loop, deed))
                }
            }
        }
        told.sent = sent.into_iter().collect();
        told
    }
}

/// A request that has ended, where it came in.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Its number in the run, and whether it counts.
    pub request: (u64, bool),
    /// The server that it came to; `None`: the listener.
    pub server: Option<NodeId>,
    /// Whether it came to a listener behind another.
    pub inner: bool,
    /// Since when and until when it was there, ns after the instant 0.
    pub between_ns: (u64, u64),
    pub attempts: u32,
    pub error: Option<Kind>,
    pub status: u16,
}

impl From<RequestEnded> for Row {
    fn from(e: RequestEnded) -> Row {
        Row {
            request: (e.ordinal, e.selected),
            server: e.server,
            inner: e.inner,
            between_ns: (e.begun_ns, e.ended_ns),
            attempts: e.attempts,
            error: e.outcome,
            status: e.status,
        }
    }
}
