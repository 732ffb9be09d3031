//! The kinds of nodes, with every default explicit.

use super::{Faulty, Fleet, KeySource, Lb, Line, NodeId};
use crate::listen::{Connecting, Listen, Origin, Rewrite};
use serde::{Deserialize, Serialize};
use weir_model::{Dist, OnCancel, warmup};
use weir_policy::Kind;
use weir_policy::config::{Budget, GateArgs, Hedge, Rate, Retry};

/// A kind of node with its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
#[allow(clippy::large_enum_variant, reason = "interned: there are few, and they are read in place")]
pub enum Spec {
    /// Where a request ends.
    #[serde(rename = "server")]
    Server {
        /// Where the real one listens.
        addr: Option<String>,
        /// How it behaves in simulation and when built in: the root of its model.
        model: Option<NodeId>,
        /// How the real one is spoken to.
        #[serde(default)]
        origin: Origin,
    },
    /// Where requests enter; behind another listener it is a separate hop.
    #[serde(rename = "listen")]
    Listen(Listen),
    /// A fixed answer: a leaf.
    #[serde(rename = "respond")]
    Respond {
        /// 200 to 599; 500 and above is `status_5xx`.
        status: u16,
        /// Its body.
        body: String,
        /// Its fields (names in lower case), beside those that weir frames by.
        headers: Vec<(String, String)>,
    },
    /// An answer that sends the client elsewhere: a leaf.
    #[serde(rename = "redirect")]
    Redirect {
        /// The value of Location, a template; see [`crate::template`].
        to: String,
        /// 300 to 399, but not 304.
        status: u16,
    },
    /// Another path, other fields.
    #[serde(rename = "rewrite")]
    Rewrite(Rewrite),
    /// Requests and responses up to a size are taken whole.
    #[serde(rename = "buffered")]
    Buffered {
        /// How large, bytes; 1 to 1 GiB.
        bytes: u64,
    },
    /// Work or waiting before the node behind.
    #[serde(rename = "delay")]
    Delay {
        /// How long.
        time: Dist,
    },
    /// A link: `time` each way.
    #[serde(rename = "cable")]
    Cable {
        /// One crossing.
        time: Dist,
        /// The share of crossings that are lost, 0 to 1.
        loss: f64,
        /// A lost crossing is sent again after this, then twice, four times it, ns; `None`: it is gone.
        resend_ns: Option<u64>,
    },
    /// At most `concurrency` inside, the rest in order of arrival.
    #[serde(rename = "queue")]
    Queue {
        /// How many are inside at once; at least 1.
        concurrency: u32,
        /// How many may wait; `None`: any number.
        capacity: Option<u64>,
        /// The longest wait, ns; `None`: any.
        timeout_ns: Option<u64>,
        /// The treatment of a request after its client has left.
        on_cancel: OnCancel,
    },
    /// The whole response comes within this time, or the request behind is cancelled.
    #[serde(rename = "timeout")]
    Timeout {
        /// The limit, ns; `None`: none.
        time_ns: Option<u64>,
    },
    /// A server that shares its cores among the requests inside: a leaf.
    #[serde(rename = "concurrent")]
    Concurrent {
        /// The work of a request.
        work: Dist,
        /// How many requests progress at full rate; positive, finite.
        cores: f64,
        /// The cost of each further request to all of them (the Universal Scalability Law's sigma); not negative.
        contention: f64,
        /// The cost of each pair of requests to all of them (its kappa); not negative.
        coherency: f64,
        /// How many are inside at once, at least 1; `None`: all.
        threads: Option<u32>,
        /// How many threads there are when the process begins, 1 to `threads`; `None`: all.
        #[serde(default)]
        min_threads: Option<u32>,
        /// What making a further thread adds to the work of the request that finds all busy, ns.
        #[serde(default)]
        thread_cost_ns: u64,
        /// The treatment of a request after its client has left.
        on_cancel: OnCancel,
    },
    /// The work behind it takes longer at first.
    #[serde(rename = "warmup")]
    Warmup(warmup::Law),
    /// A health check that passes there is answered by the age of the process, or by its work.
    #[serde(rename = "gate")]
    Gate(GateArgs),
    /// Each request fails with this probability, after the node behind has done its work.
    #[serde(rename = "flaky")]
    Flaky {
        /// 0 to 1.
        p: f64,
        /// How it fails.
        #[serde(rename = "error")]
        kind: Kind,
    },
    /// One after another, to the first error.
    #[serde(rename = "sequence")]
    Sequence,
    /// All at once.
    #[serde(rename = "fanout")]
    Fanout {
        /// How many must be ok; 1 to the number of nodes.
        need: u32,
    },
    /// A target's weight at the balancer above.
    #[serde(rename = "weight")]
    Weight {
        /// Not negative, finite; 0: never picked.
        weight: f64,
    },
    /// The first rule that matches; the list's nodes are the rules' in order, then `otherwise`.
    #[serde(rename = "route")]
    Route {
        /// The rules.
        rules: Vec<RouteCondition>,
        /// Whether the list ends with a node for what no rule matches.
        otherwise: bool,
    },
    /// One of the list's nodes, by draw or by key.
    #[serde(rename = "split")]
    Split {
        /// Shares of the nodes; not negative, not all 0.
        weights: Vec<f64>,
        /// The key that decides; `None`: a new draw for each attempt.
        key: Option<KeySource>,
    },
    /// A token bucket, full at the start.
    #[serde(rename = "limit.rate")]
    Rate {
        /// Rate and burst.
        rate: Rate,
        /// One bucket per value of it; `None`: one.
        key: Option<KeySource>,
    },
    /// A further attempt after a while.
    #[serde(rename = "hedge")]
    Hedge(HedgeSpec),
    /// Further attempts.
    #[serde(rename = "retry")]
    Retry(Retry),
    /// Alternates between up and down.
    #[serde(rename = "faulty")]
    Faulty(Faulty),
    /// A balancer.
    #[serde(rename = "lb")]
    Lb(Lb),
    /// Members that come and go, as a template; only in a plan as it is written.
    #[serde(rename = "fleet")]
    Fleet(Fleet),
    /// A connection to the server behind it is taken or opened; only in a simulation, where no file puts it
    /// ([`crate::connections`]).
    #[serde(rename = "connection")]
    Connection(Box<Connecting>),
}

/// A condition of a route: each field that is not empty must match, by any of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteCondition {
    /// Exact, or ending in `*`; in normal form ([`crate::path`]).
    pub path: Vec<String>,
    /// Methods.
    pub method: Vec<String>,
    /// Exact, or `*.example.com`.
    pub host: Vec<String>,
    /// Name (lower case), and value: exact, or ending in `*`.
    pub header: Vec<(String, String)>,
    /// Client addresses or networks (CIDR).
    pub client: Vec<String>,
    /// Names of a verified client certificate: exact, or ending in `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_name: Vec<String>,
}

/// `hedge(after, node, ...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HedgeSpec {
    /// When attempts begin, and how many.
    pub hedge: Hedge,
    /// The budget that further attempts are charged to; `None`: none.
    pub budget: Option<Budget>,
    /// Bytes of a request's body that are kept for further attempts.
    pub replay_bytes: u64,
}

impl Spec {
    /// The node that it leads to beside [`Node::to`]: the root of a server's model, a balancer's `on_empty`.
    pub fn aside(&self) -> Option<NodeId> {
        match self {
            Spec::Server { model, .. } => *model,
            Spec::Lb(lb) => lb.spare,
            _ => None,
        }
    }

    /// The function's name in the language: `server`, `lb.least_conn`.
    pub fn kind(&self) -> &'static str {
        match self {
            Spec::Server { .. } => "server",
            Spec::Listen(_) => "listen",
            Spec::Respond { .. } => "respond",
            Spec::Redirect { .. } => "redirect",
            Spec::Rewrite(_) => "rewrite",
            Spec::Buffered { .. } => "buffered",
            Spec::Delay { .. } => "delay",
            Spec::Cable { .. } => "cable",
            Spec::Queue { .. } => "queue",
            Spec::Weight { .. } => "weight",
            Spec::Retry(_) => "retry",
            Spec::Faulty(Faulty { line: Line::Block(_), .. }) => "block",
            Spec::Faulty(_) => "faulty",
            Spec::Lb(lb) => lb.balance.name(),
            Spec::Route { .. } => "route",
            Spec::Split { .. } => "split",
            Spec::Rate { .. } => "limit.rate",
            Spec::Hedge(_) => "hedge",
            Spec::Timeout { .. } => "timeout",
            Spec::Concurrent { .. } => "concurrent",
            Spec::Warmup(_) => "warmup",
            Spec::Gate(_) => "gate",
            Spec::Flaky { .. } => "flaky",
            Spec::Sequence => "sequence",
            Spec::Fanout { .. } => "fanout",
            Spec::Connection(_) => "connection",
            Spec::Fleet(Fleet { source: None, .. }) => "fleet",
            Spec::Fleet(Fleet { source: Some(source), .. }) => source.from.function(),
        }
    }
}
