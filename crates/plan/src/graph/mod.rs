//! The plan: a topology file evaluated to a typed, serialisable graph with every default explicit.
//!
//! A plan has one [`Point`] for each combination of swept parameters. A point holds an arena of nodes; a node is its
//! *site* (where in the text, and through which calls, it was made), its *spec* (kind and arguments, interned) and what
//! it leads *to*. Target lists are interned too, so ten routers over one pool name one list.

mod balancer;
mod connected;
mod faulty;
mod fleet;
mod members;
mod scenario;
mod spec;

pub use balancer::{HealthCheck, HttpCheck, KeySource, LEAST_LAG_NS, Lb, Scope};
pub use connected::Connected;
pub(crate) use connected::WithConnections;
pub use faulty::{Clock, Faulty, Line, Mode};
pub use fleet::{Change, ChangeKind, First, Fleet, FleetSource, Leavers, Rollout, TargetState, Wait};
pub use members::{DrivenNodes, Fleets, ListedMember, Member, Members};
pub use scenario::{Keys, Recording, RequestShape, Scenario, Window};
pub use spec::{HedgeSpec, RouteCondition, Spec};

use crate::expectation::Expectation;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// Its fleets, if their members are made ([`Plan::expand`]). It is never written: a plan has the templates.
    #[serde(skip)]
    pub fleets: Option<Arc<Fleets>>,
    /// The same with connections to servers, once it is asked for ([`Point::connected`]).
    #[serde(skip)]
    pub connected: Connected,
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
    /// The place in words, unique among sites: `dyno/cable`, `apps`, `apps/queue`, `lb.random#2`, after the calls where
    /// needed.
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
