//! The plan: a topology file evaluated to a typed, serialisable graph with every default explicit.
//!
//! A plan has one [`Point`] for each combination of swept parameters. A point holds an arena of nodes; a node is its
//! *site* (where in the text, and through which calls, it was made), its *spec* (kind and arguments, interned) and what
//! it leads *to*. Target lists are interned too, so ten routers over one pool name one list.

use serde::{Deserialize, Serialize};
use weir_model::faulty::Law;
use weir_model::{Dist, OnCancel, Traffic};
use weir_policy::Kind;
use weir_policy::config::{Balance, Budget, Check, Eject, Hedge, OnEmpty, Outlier, Rate, Retry, SlowStart};

use crate::expectation::Expectation;
use crate::listen::{Listen, Origin, Rewrite};

/// Index of a node in [`Point::nodes`].
pub type NodeId = u32;

/// A whole topology file, evaluated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// `weir.plan/1`.
    pub schema: String,
    /// The version of weir that made it.
    pub version: String,
    /// The topology file's name, as given on the command line without its folders.
    pub file: String,
    /// Hash over the meaning (places included; not lines, comments or paths), hexadecimal.
    pub hash: String,
    /// Data files that were read.
    pub data_files: Vec<DataFile>,
    /// One per combination of swept parameters, in order of the sweep.
    pub points: Vec<Point>,
}

/// A data file that the topology read; its values are in the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataFile {
    /// Its path as written in the topology file.
    pub path: String,
    /// Its hash, hexadecimal.
    pub hash: String,
}

/// One evaluation of the file: the graph for one set of parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Every parameter of the file with its value, in order of first mention.
    pub params: Vec<(String, Value)>,
    /// Where in the text nodes are made.
    pub places: Vec<Place>,
    /// Places with the calls that led to them.
    pub sites: Vec<Site>,
    /// Kinds with arguments; equal ones once.
    pub specs: Vec<Spec>,
    /// Target lists; equal ones once.
    pub lists: Vec<Vec<NodeId>>,
    /// The graph. A node comes after all that it leads to.
    pub nodes: Vec<Node>,
    /// The scenarios that can be run.
    pub scenarios: Vec<Scenario>,
    /// The file's expectations of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Expectation>,
    /// Warnings about probable mistakes, one sentence each with its location.
    pub warnings: Vec<String>,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A duration.
    Duration {
        /// In ns.
        ns: i64,
    },
    /// A string.
    Text(String),
}

/// Where in the text a node is made. Draws are keyed by it, so it survives comments and other functions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// 0: the topology file; loaded files in the order of their first `load`.
    pub file: u32,
    /// The top-level `def` around it, or `<file>`.
    pub def: String,
    /// The function's name: `cable`, `lb.least_conn`.
    pub kind: String,
    /// The callee as written, where that is not the function's own name (an alias, or `pool`); else empty.
    pub via: String,
    /// Its number among the calls of that kind (and `via`) in that `def`, in the order of the text.
    pub number: u32,
}

/// A place and the calls through which it was reached: one line of a report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Index in [`Point::places`].
    pub place: u32,
    /// The place in words, unique among sites: `dyno/cable`, `apps`, `apps/queue`, `lb.random#2`, after the calls where needed.
    pub label: String,
    /// The call's location, `file:line:column`; not part of the hash.
    pub span: String,
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Index in [`Point::sites`].
    pub site: u32,
    /// Index in [`Point::specs`].
    pub spec: u32,
    /// The nodes that it leads to.
    #[serde(default, skip_serializing_if = "Edge::is_none")]
    pub to: Edge,
    /// Its `name=`; a server's first argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The nodes that a node leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// A leaf.
    #[default]
    None,
    /// One node.
    Node(NodeId),
    /// The targets of a balancer, the nodes of a `sequence` or `fanout`: index in [`Point::lists`].
    List(u32),
}

impl Edge {
    /// Whether it is a leaf's.
    pub fn is_none(&self) -> bool {
        *self == Edge::None
    }
}

/// Which clock a `faulty` node follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Alternating exponential periods on the node's own time-line.
    #[default]
    Eager,
    /// Looked at only when a request enters (the posts').
    Lazy,
}

/// The effect of a node that is down on requests that enter and on those inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Requests that enter are `refused`; those inside finish.
    #[default]
    Refuse,
    /// A killed process: what enters gets `connect_failed`, what is inside `reset`.
    Crash,
    /// Requests that enter are swallowed; those inside finish.
    Blackhole,
    /// The work of what enters takes longer.
    Slow,
}

/// The time-line that a faulty node follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// Its own.
    #[default]
    Own,
    /// The timeline of all nodes with the same `together` (then clock, mtbf, mttr and starts are equal as well).
    Together(String),
    /// The timeline of the `block(...)` with this number, counted through the file as it is evaluated.
    Block(u32),
}

/// `faulty(...)`, or one of the nodes that `block(...)` returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Faulty {
    /// Mean time between failures (a mean up period).
    pub mtbf_ns: u64,
    /// Mean time to repair (a mean down period).
    pub mttr_ns: u64,
    /// How up periods are drawn, where that is no exponential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<Dist>,
    /// The same of down periods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<Dist>,
    /// How its state follows time.
    pub clock: Clock,
    /// The effect of being down.
    pub mode: Mode,
    /// How many times longer work takes while down, in mode `slow`; positive, finite.
    pub slow: f64,
    /// Whether it starts up.
    pub starts_up: bool,
    /// Whether health checks pass while it is down (`checks="pass"`).
    pub checks_pass: bool,
    /// Whose time-line it follows.
    pub line: Line,
}

impl Faulty {
    /// How it fails and is repaired.
    pub fn law(&self) -> Law {
        Law::new(self.mtbf_ns, self.mttr_ns, self.clock == Clock::Lazy, self.starts_up)
            .with(self.up.as_ref(), self.down.as_ref())
    }
}

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
        /// The treatment of a request after its client has left.
        on_cancel: OnCancel,
    },
    /// The work behind it takes longer at first.
    #[serde(rename = "warmup")]
    Warmup {
        /// How many times longer, at the start; positive, finite.
        factor: f64,
        /// The requests over which the factor falls to 1.
        requests: Option<u64>,
        /// The time over which it does, ns. At least one of the two is given.
        time_ns: Option<u64>,
    },
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
}

/// A balancer: its policy, and what all policies have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lb {
    /// Which target is picked.
    pub balance: Balance,
    /// The key that is hashed; only for policies that hash.
    pub key: Option<KeySource>,
    /// How long a target is passed over after a failed connection, ns; 0: not at all.
    pub pass_over_ns: u64,
    /// Active checks.
    pub health: Option<HealthCheck>,
    /// Ejection for failures in a row; never with `outlier`.
    pub eject: Option<Eject>,
    /// Outlier detection.
    pub outlier: Option<Outlier>,
    /// How targets that come back get their share.
    pub slow_start: Option<SlowStart>,
    /// Below this share of eligible targets health is ignored; 0: never.
    pub panic: f64,
    /// The treatment of a request when no target is left.
    pub on_empty: OnEmpty,
    /// The node that it gets then, with [`OnEmpty::Node`].
    pub spare: Option<NodeId>,
    /// The cookie by which clients return to their target.
    pub sticky: Option<String>,
    /// The file of the key under which its value is made ([`crate::sticky`]), as seen from the working directory; `None`:
    /// the cookie's name is the key. Never without `sticky`; its path is not part of the hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sticky_key: Option<String>,
    /// Whether all event loops share one state.
    pub scope: Scope,
    /// Requests in flight at a target at most.
    pub max_in_flight: Option<u32>,
    /// Connections to a target at most.
    pub max_connections: Option<u32>,
    /// Requests that wait while all targets are full at most; `None`: any number.
    pub max_waiting: Option<u64>,
    /// How long, ns; `None`: without limit.
    pub wait_timeout_ns: Option<u64>,
    /// The cost of a probe to a target's server, ns; `lb.prequal` in simulation only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub probe_cost_ns: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Lb {
    /// A balancer with nothing around it.
    pub fn plain(balance: Balance) -> Lb {
        Lb {
            balance,
            key: None,
            pass_over_ns: 1_000_000_000,
            health: None,
            eject: None,
            outlier: None,
            slow_start: None,
            panic: 0.5,
            on_empty: OnEmpty::Fail,
            spare: None,
            sticky: None,
            sticky_key: None,
            scope: Scope::Loop,
            max_in_flight: None,
            max_connections: None,
            max_waiting: None,
            wait_timeout_ns: None,
            probe_cost_ns: 0,
        }
    }
}

/// Where the key of a request comes from (`key.`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// A header of that name, lower case.
    Header(String),
    /// A cookie of that name.
    Cookie(String),
    /// The path.
    Path,
    /// The client's address.
    Client,
}

/// Whether a balancer's state is each event loop's or the process's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Each loop has its own.
    #[default]
    Loop,
    /// All loops share one.
    Process,
}

/// `health.http(...)` or `health.tcp(...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HealthCheck {
    /// When checks begin and what their results change.
    pub check: Check,
    /// The request; `None`: a connection is enough (`health.tcp`).
    pub http: Option<HttpCheck>,
    /// How long an answer may take, ns.
    pub timeout_ns: u64,
    /// Another port than the target's.
    pub port: Option<u16>,
    /// The cost of a check to a modelled server, in place of its work, ns.
    pub cost_ns: u64,
}

/// The request of an HTTP check, and the expected answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpCheck {
    /// The path.
    pub path: String,
    /// The method.
    pub method: String,
    /// The Host header; `None`: the target's address.
    pub host: Option<String>,
    /// Lowest and highest status that passes, for each range.
    pub expect: Vec<(u16, u16)>,
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

/// A request as `traffic.mix` describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestShape {
    /// Its share among the others of the mix; not negative, not all 0.
    pub weight: f64,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The host; `None`: none.
    pub host: Option<String>,
    /// Names (lower case) and values.
    pub headers: Vec<(String, String)>,
    /// Its key (the user that sends it); `None`: every request is a separate client.
    pub key: Option<Keys>,
    /// Bytes of its body.
    pub body_bytes: u64,
}

/// A trace's description of its requests, row by row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Which of the scenario's `mix` each arrival is.
    pub kinds: Vec<u32>,
    /// The keys, each once.
    pub keys: Vec<String>,
    /// The key of each arrival, as an index of `keys`; `None`: a separate client. Empty: every arrival is.
    pub senders: Vec<Option<u32>>,
}

/// How keys are drawn (`keys.`): numbers from 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// Each of `n` keys equally often.
    Uniform(u64),
    /// Key k of `n` with a share in proportion to 1/(k+1)^s.
    Zipf(u64, f64),
}

/// One run: what `sim` simulates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name, unique in the file.
    pub name: String,
    /// Where requests enter.
    pub root: NodeId,
    /// When they arrive.
    pub traffic: Traffic,
    /// The kinds of requests with their shares; empty: GET requests for `/`, each a separate client.
    pub mix: Vec<RequestShape>,
    /// Which of them each arrival is, where a trace says so; else it is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recording>,
    /// Their number; `None`: all that arrive in `duration_ns`.
    pub requests: Option<u64>,
    /// How long requests arrive, ns; `None`: until there are `requests`. At least one of the two is given.
    pub duration_ns: Option<u64>,
    /// Which of them count.
    pub window: Window,
    /// The latency up to which a success counts as goodput, ns.
    pub deadline_ns: u64,
    /// When clients leave (`cancelled`), ns after their request began; `None`: never.
    pub patience_ns: Option<u64>,
    /// The call's location, `file:line:column`; not part of the hash.
    pub span: String,
}

/// Which requests count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// Without the first and the last quarter (n/4, rounded down) in order of arrival.
    #[default]
    Middle,
    /// The requests after the run has settled (MSER-5), determined in each replication.
    Auto,
    /// All.
    All,
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
            Spec::Warmup { .. } => "warmup",
            Spec::Flaky { .. } => "flaky",
            Spec::Sequence => "sequence",
            Spec::Fanout { .. } => "fanout",
        }
    }
}

impl Point {
    /// The node of that index.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id as usize)
    }

    /// The spec of a node.
    pub fn spec(&self, id: NodeId) -> Option<&Spec> {
        self.node(id).and_then(|node| self.specs.get(node.spec as usize))
    }
}
