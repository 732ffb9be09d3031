//! What a topology file says of a policy: the arguments of the language, as plain data with every default explicit.

use crate::Kind;
use serde::{Deserialize, Serialize};

/// Which of several equally loaded targets is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ties {
    /// Uniformly among them.
    #[default]
    Random,
    /// The lowest index (what the Timelike posts do).
    First,
    /// The next after the last chosen, starting at random (HAProxy, nginx).
    Rotate,
}

/// Where a round robin begins its cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// After a drawn number of steps: 0 to the sum of weights less one.
    #[default]
    Random,
    /// At the first target.
    First,
}

/// A balancing policy with its arguments. Weights belong to the targets and are not part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
pub enum Balance {
    /// A target drawn in proportion to the weights.
    Random,
    /// Each in turn; weighted: smooth, as nginx.
    RoundRobin {
        /// Where the cycle begins.
        start: Start,
    },
    /// The target with the fewest requests in flight (by weight: the least (in flight + 1) / weight).
    LeastConn {
        /// Among equals.
        ties: Ties,
        /// How much longer a failed request keeps counting, ns.
        error_hold_ns: u64,
    },
    /// The least loaded of a few drawn targets.
    P2c {
        /// How many are drawn.
        choices: u32,
        /// Whether one target may be drawn twice.
        replacement: bool,
        /// Among equals; never `Rotate`.
        ties: Ties,
        /// As for `LeastConn`.
        error_hold_ns: u64,
        /// Exponent of the load: (in flight + 1)^bias / weight.
        bias: f64,
    },
    /// The first that is eligible.
    First,
    /// The cheaper of two drawn targets by latency that rises at once and falls slowly.
    PeakEwma {
        /// After this time a cost has fallen to 1/e, ns.
        decay_ns: u64,
        /// What a target costs of which nothing is known, ns.
        default_rtt_ns: u64,
    },
    /// The target of the request's key on a ring (ketama).
    RingHash {
        /// Greatest load as a factor of the mean; at least 1.
        bound: Option<f64>,
    },
    /// The target of the request's key in Maglev's table.
    Maglev {
        /// Slots; a prime.
        table_size: u32,
        /// Greatest load as a factor of the mean; at least 1.
        bound: Option<f64>,
    },
    /// By asynchronous probes of requests in flight and latency.
    Prequal {
        /// Probes per request.
        probes: f64,
        /// Answers kept.
        pool: u32,
        /// How long one is used, ns.
        age_ns: u64,
        /// The quantile of requests in flight above which a target is hot.
        q_rif: f64,
        /// Answers removed per request.
        remove: f64,
        /// How much more often than they are removed answers may be used.
        delta: f64,
    },
    /// The target with the least work left (clairvoyant).
    LeastWork,
}

/// Which targets a further attempt leaves out, as long as others remain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exclude {
    /// Those that this request has tried at this balancer.
    #[default]
    Tried,
    /// Those among them that could not be connected to.
    ConnectFailed,
    /// None (the posts' code).
    None,
}

/// Whether a further attempt draws its work anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Each attempt brings its own work.
    #[default]
    Redraw,
    /// Each attempt brings the work of the first.
    Same,
}

/// Which methods may be tried again after an outcome that could have had effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Methods {
    /// Idempotent ones (RFC 9110, 9.2.2).
    #[default]
    Idempotent,
    /// Any.
    Any,
}

/// `retry(attempts, node, on=..., exclude=..., ...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Attempts in all, the first included; at least 1.
    pub attempts: u32,
    /// The kinds that are tried again.
    pub on: Vec<Kind>,
    /// Which targets a further attempt leaves out.
    pub exclude: Exclude,
    /// Which methods may be tried again.
    pub methods: Methods,
    /// What a further attempt draws.
    pub work: Work,
    /// Attempt k waits a uniform draw from 0 to min(`backoff_max_ns`, `backoff_ns` 2^(k-2)); 0: at once.
    pub backoff_ns: u64,
    /// The longest backoff.
    pub backoff_max_ns: u64,
}
