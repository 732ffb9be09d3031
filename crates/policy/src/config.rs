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
    /// Status numbers that are tried again beside the kinds.
    pub on_status: Vec<u16>,
    /// What further attempts are charged to; `None`: nothing.
    pub budget: Option<Budget>,
    /// Bytes of a request's body that are kept for further attempts.
    pub replay_bytes: u64,
}

/// What a target is before its first health check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initial {
    /// Up; it takes `fall` failures in a row to go down.
    #[default]
    Up,
    /// Down; it takes `rise` passes in a row to come up.
    Down,
    /// Down until one has passed.
    Checked,
}

/// When health checks are made and what they decide; what is sent is the caller's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// From the beginning of a check to that of the next, ns.
    pub interval_ns: u64,
    /// Passes in a row that bring a target up.
    pub rise: u32,
    /// Failures in a row that take it down.
    pub fall: u32,
    /// Each interval is longer or shorter by up to this share.
    pub jitter: f64,
    /// The interval while a change is under way (some passes or failures in a row, not yet enough), or before the first check.
    pub fast_interval_ns: Option<u64>,
    /// The interval while a target is down.
    pub down_interval_ns: Option<u64>,
    /// Before the first check.
    pub initial: Initial,
}

/// `eject(...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Eject {
    /// Failures in a row that eject.
    pub consecutive: u32,
    /// The first ejection lasts so long, ns; each in a row twice as long as the one before.
    pub base_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// At most this share of the targets is out, percent.
    pub max_percent: f64,
}

/// `outlier(...)`: Envoy's outlier detection, by Envoy's names and defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// Errors of any kind in a row that eject.
    pub consecutive_5xx: u32,
    /// Errors of a gateway (502, 503, 504, or no answer) in a row that eject.
    pub consecutive_gateway_failure: u32,
    /// Failures before there was an answer in a row; only where these are told apart.
    pub consecutive_local_origin_failure: u32,
    /// Whether failures without an answer are judged apart from answers.
    pub split_external_local_origin_errors: bool,
    /// From one sweep to the next, ns.
    pub interval_ns: u64,
    /// An ejection lasts this times how many there were lately, ns.
    pub base_ejection_time_ns: u64,
    /// And at most so long (or the base, if that is longer).
    pub max_ejection_time_ns: u64,
    /// A uniform draw up to this is added.
    pub max_ejection_time_jitter_ns: u64,
    /// At most this share of the targets is out, percent.
    pub max_ejection_percent: f64,
    /// One may always go, whatever the share.
    pub always_eject_one_host: bool,
    /// Percent of detections that eject, by kind.
    pub enforcing_consecutive_5xx: f64,
    /// Likewise.
    pub enforcing_consecutive_gateway_failure: f64,
    /// Likewise.
    pub enforcing_consecutive_local_origin_failure: f64,
    /// Likewise.
    pub enforcing_success_rate: f64,
    /// Likewise.
    pub enforcing_failure_percentage: f64,
    /// Success rates are compared only among so many targets with enough requests.
    pub success_rate_minimum_hosts: u32,
    /// Enough requests of one interval.
    pub success_rate_request_volume: u32,
    /// Thousandths of a standard deviation below the mean.
    pub success_rate_stdev_factor: u32,
    /// Percent of failures that eject.
    pub failure_percentage_threshold: f64,
    /// As for success rates.
    pub failure_percentage_minimum_hosts: u32,
    /// As for success rates.
    pub failure_percentage_request_volume: u32,
}

impl Default for Outlier {
    fn default() -> Outlier {
        const S: u64 = 1_000_000_000;
        Outlier {
            consecutive_5xx: 5,
            consecutive_gateway_failure: 5,
            consecutive_local_origin_failure: 5,
            split_external_local_origin_errors: false,
            interval_ns: 10 * S,
            base_ejection_time_ns: 30 * S,
            max_ejection_time_ns: 300 * S,
            max_ejection_time_jitter_ns: 0,
            max_ejection_percent: 10.0,
            always_eject_one_host: false,
            enforcing_consecutive_5xx: 100.0,
            enforcing_consecutive_gateway_failure: 0.0,
            enforcing_consecutive_local_origin_failure: 100.0,
            enforcing_success_rate: 100.0,
            enforcing_failure_percentage: 0.0,
            success_rate_minimum_hosts: 5,
            success_rate_request_volume: 100,
            success_rate_stdev_factor: 1900,
            failure_percentage_threshold: 85.0,
            failure_percentage_minimum_hosts: 5,
            failure_percentage_request_volume: 50,
        }
    }
}

/// `slow_start(...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowStart {
    /// From becoming eligible to the whole weight, ns.
    pub window_ns: u64,
    /// The weight grows as the elapsed share of the window to the power 1/aggression.
    pub aggression: f64,
    /// The least share of the weight.
    pub min_weight: f64,
}

/// What a request gets when no target is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEmpty {
    /// The error `no_target`.
    #[default]
    Fail,
    /// Any target, healthy or not.
    Any,
    /// Another node.
    Node,
}

/// `budget(...)`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// What a request's first attempt earns.
    pub ratio: f64,
    /// What the reserve gets per second.
    pub min_per_s: f64,
    /// After this time what was earned is gone, ns.
    pub window_ns: u64,
}

/// `limit.rate(node, per_s, burst=per_s, key=None)`, without the node and the key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Tokens per second.
    pub per_s: f64,
    /// Tokens that a full bucket holds; at least 1.
    pub burst: f64,
}

/// `hedge(after, node, ...)`, without the node and the budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hedge {
    /// The next attempt starts so long after the last, ns.
    pub after_ns: u64,
    /// Attempts in all, the first included.
    pub attempts: u32,
    /// Which methods are hedged.
    pub methods: Methods,
}
