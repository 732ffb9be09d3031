//! The plan: a topology file evaluated to a typed, serialisable graph with every default explicit.
//!
//! A plan has one [`Point`] for each combination of swept parameters. A point holds an arena of nodes; a node is its
//! *site* (where in the text, and through which calls, it was made), its *spec* (kind and arguments, interned) and what
//! it leads *to*. Target lists are interned too, so ten routers over one pool name one list.

use serde::{Deserialize, Serialize};
use weir_model::{Dist, Traffic};
use weir_policy::config::{Balance, Retry};

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
    /// What can be run.
    pub scenarios: Vec<Scenario>,
    /// What is surely a mistake though it can be run, one sentence each with its place.
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
    /// The place in words, unique among sites: `dyno/cable`, `<file>/lb.random#2`, with the calls where needed.
    pub label: String,
    /// Where the call stands, `file:line:column`; not part of the hash.
    pub span: String,
}

/// A node of the graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Index in [`Point::sites`].
    pub site: u32,
    /// Index in [`Point::specs`].
    pub spec: u32,
    /// What it leads to.
    #[serde(default, skip_serializing_if = "To::is_none")]
    pub to: To,
    /// Its `name=`; a server's first argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What a node leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum To {
    /// A leaf.
    #[default]
    None,
    /// One node.
    Node(NodeId),
    /// The targets of a balancer: index in [`Point::lists`].
    List(u32),
}

impl To {
    /// Whether it is a leaf's.
    pub fn is_none(&self) -> bool {
        *self == To::None
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

/// A kind of node with its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Spec {
    /// Where a request ends.
    #[serde(rename = "server")]
    Server {
        /// Where the real one listens.
        addr: Option<String>,
        /// How it behaves in simulation and when built in: the root of its model.
        model: Option<NodeId>,
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
    },
    /// At most `concurrency` inside, the rest in order of arrival.
    #[serde(rename = "queue")]
    Queue {
        /// How many are inside at once; at least 1.
        concurrency: u32,
        /// How many may wait; `None`: any number.
        capacity: Option<u64>,
    },
    /// A target's weight at the balancer above.
    #[serde(rename = "weight")]
    Weight {
        /// Not negative, finite; 0: never picked.
        weight: f64,
    },
    /// Further attempts.
    #[serde(rename = "retry")]
    Retry(Retry),
    /// Up and down by turns; refuses while down.
    #[serde(rename = "faulty")]
    Faulty {
        /// Mean time between failures (a mean up period).
        mtbf_ns: u64,
        /// Mean time to repair (a mean down period).
        mttr_ns: u64,
        /// How its state follows time.
        clock: Clock,
        /// Whether it starts up.
        starts_up: bool,
    },
    /// A balancer.
    #[serde(rename = "lb")]
    Lb(Balance),
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
    /// How many.
    pub requests: Option<u64>,
    /// Which of them count.
    pub window: Window,
    /// What counts as goodput, ns.
    pub deadline_ns: u64,
    /// Where the call stands, `file:line:column`; not part of the hash.
    pub span: String,
}

/// Which requests count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    /// Without the first and the last quarter (n/4, rounded down) in order of arrival.
    #[default]
    Middle,
    /// All.
    All,
}

impl Spec {
    /// The function's name in the language: `server`, `lb.least_conn`.
    pub fn kind(&self) -> &'static str {
        match self {
            Spec::Server { .. } => "server",
            Spec::Delay { .. } => "delay",
            Spec::Cable { .. } => "cable",
            Spec::Queue { .. } => "queue",
            Spec::Weight { .. } => "weight",
            Spec::Retry(_) => "retry",
            Spec::Faulty { .. } => "faulty",
            Spec::Lb(balance) => balance.name(),
        }
    }
}
