//! Scenarios: the traffic, the requests that it consists of, and the window that counts.

use super::{Change, NodeId};
use serde::{Deserialize, Serialize};
use weir_model::Traffic;

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
    /// The length of the parts in which the result over time is told, ns; `None`: it is not. 10 ms or more, and not more
    /// than [`MOST_PARTS`](crate::over_time::MOST_PARTS) parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ns: Option<u64>,
    /// The latency up to which a success counts as goodput, ns.
    pub deadline_ns: u64,
    /// When clients leave (`cancelled`), ns after their request began; `None`: never.
    pub patience_ns: Option<u64>,
    /// What changes during the run, in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Change>,
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
    /// The requests after the scenario has settled (MSER-5 on the average of its replications).
    Auto,
    /// All.
    All,
    /// Those that arrive from one instant on and before another, ns from the start of the run; the first is the earlier.
    Between(u64, u64),
}
