//! Expectations of a file about its scenarios: conditions on figures of the result.

use serde::{Deserialize, Serialize};
use std::fmt;
use weir_policy::Kind;

/// `expect(...)`: conditions on one scenario, or on a node in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// The scenario's name.
    pub scenario: String,
    /// The name of the node that the conditions are about; `None`: the requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The conditions, all of which must hold; at least one.
    pub conditions: Vec<Condition>,
    /// The call's location, `file:line:column`; not part of the hash.
    pub span: String,
}

/// A condition on a figure. `Display` writes it as the language has it: `p99<300ms`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Which figure.
    pub metric: Metric,
    /// On which side of the bound it must be.
    pub is: Order,
    /// The bound, in the unit of the figure in the result.
    pub bound: f64,
    /// Side and bound as the file has them, without blanks: `<300ms`; not part of the hash.
    pub said: String,
}

impl Condition {
    /// Whether a number meets it.
    pub fn is_met(&self, x: f64) -> bool {
        match self.is {
            Order::Less => x < self.bound,
            Order::AtMost => x <= self.bound,
            Order::More => x > self.bound,
            Order::AtLeast => x >= self.bound,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.metric {
            Metric::Errors(kind) => write!(f, "errors.{}{}", kind.name(), self.said),
            metric => write!(f, "{}{}", metric.name(), self.said),
        }
    }
}

/// A side of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Below it.
    #[serde(rename = "<")]
    Less,
    /// Not above it.
    #[serde(rename = "<=")]
    AtMost,
    /// Above it.
    #[serde(rename = ">")]
    More,
    /// Not below it.
    #[serde(rename = ">=")]
    AtLeast,
}

/// A figure of the result that can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Mean latency of all requests, ms.
    Mean,
    /// Its quantiles.
    P50,
    /// 90 %.
    P90,
    /// 95 %.
    P95,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
    /// Mean latency of those that succeeded, ms.
    OkMean,
    /// Its quantiles.
    OkP50,
    /// 90 %.
    OkP90,
    /// 95 %.
    OkP95,
    /// 99 %.
    OkP99,
    /// 99.9 %.
    OkP999,
    /// Share of requests that succeeded.
    Success,
    /// Successes within the deadline, per second.
    GoodputPerS,
    /// 1 and every attempt beyond the first.
    AttemptsPerRequest,
    /// Share of requests that failed in this way.
    Errors(Kind),
    /// Slots or cores of a node that are busy.
    Utilisation,
    /// How long requests wait at a node, ms.
    WaitMs,
    /// Connections to servers, of all requests or at a node.
    Connections,
    /// The same: openings per second.
    OpenedPerS,
    /// The greatest median of a part of the result over time, ms.
    PeakP50,
    /// 95 %.
    PeakP95,
    /// 99 %.
    PeakP99,
    /// 99.9 %.
    PeakP999,
    /// The greatest latency of all.
    PeakMax,
    /// How long after it runs (anew) a node has its share of the requests again, ms.
    Regained,
}

impl Metric {
    /// The metrics of requests that need only a name.
    pub const OF_REQUESTS: [Metric; 15] = [
        Metric::Mean,
        Metric::P50,
        Metric::P90,
        Metric::P95,
        Metric::P99,
        Metric::P999,
        Metric::OkMean,
        Metric::OkP50,
        Metric::OkP90,
        Metric::OkP95,
        Metric::OkP99,
        Metric::OkP999,
        Metric::Success,
        Metric::GoodputPerS,
        Metric::AttemptsPerRequest,
    ];

    /// The metrics of a node.
    pub const OF_NODES: [Metric; 3] = [Metric::Utilisation, Metric::WaitMs, Metric::Regained];

    /// Those of requests, or of a server or listener.
    pub const OF_CONNECTIONS: [Metric; 2] = [Metric::Connections, Metric::OpenedPerS];

    /// Those of the requests of single parts of the result over time.
    pub const OF_PARTS: [Metric; 5] =
        [Metric::PeakP50, Metric::PeakP95, Metric::PeakP99, Metric::PeakP999, Metric::PeakMax];

    /// Whether it is known only where a scenario's result is told over time.
    pub fn needs_parts(self) -> bool {
        self == Metric::Regained || Metric::OF_PARTS.contains(&self)
    }

    /// Its form in the language.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Mean => "mean",
            Metric::P50 => "p50",
            Metric::P90 => "p90",
            Metric::P95 => "p95",
            Metric::P99 => "p99",
            Metric::P999 => "p999",
            Metric::OkMean => "ok_mean",
            Metric::OkP50 => "ok_p50",
            Metric::OkP90 => "ok_p90",
            Metric::OkP95 => "ok_p95",
            Metric::OkP99 => "ok_p99",
            Metric::OkP999 => "ok_p999",
            Metric::Success => "success",
            Metric::GoodputPerS => "goodput_per_s",
            Metric::AttemptsPerRequest => "attempts_per_request",
            Metric::Errors(_) => "errors",
            Metric::Utilisation => "utilisation",
            Metric::WaitMs => "wait_ms",
            Metric::Connections => "connections",
            Metric::OpenedPerS => "opened_per_s",
            Metric::PeakP50 => "peak_p50",
            Metric::PeakP95 => "peak_p95",
            Metric::PeakP99 => "peak_p99",
            Metric::PeakP999 => "peak_p999",
            Metric::PeakMax => "peak_max",
            Metric::Regained => "regained",
        }
    }

    /// The one of requests that has this name.
    pub fn of_requests(name: &str) -> Option<Metric> {
        Metric::OF_REQUESTS.into_iter().find(|m| m.name() == name)
    }

    /// Whether it is a time, ms.
    pub fn is_time(self) -> bool {
        let is_number = matches!(self, Metric::GoodputPerS | Metric::AttemptsPerRequest)
            || Metric::OF_CONNECTIONS.contains(&self);
        !self.is_share() && !is_number
    }

    /// Whether it is a share, from 0 to 1.
    pub fn is_share(self) -> bool {
        matches!(self, Metric::Success | Metric::Errors(_) | Metric::Utilisation)
    }
}
