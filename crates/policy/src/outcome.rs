//! How a request ended: `ok`, or an error of one kind.

use serde::{Deserialize, Serialize};

/// The kinds of error, as the language names them (`on=[...]`, `errors` in results, `kind` in metrics).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// No connection, nothing was sent.
    ConnectFailed,
    /// A node said no before any work was done.
    Refused,
    /// A bounded queue or limit was full.
    Overloaded,
    /// A timeout, or a wait in a queue, ended.
    Timeout,
    /// The connection broke after the request was sent.
    Reset,
    /// The server answered with a status of 500 or above.
    #[serde(rename = "status_5xx")]
    Status5xx,
    /// No target was left.
    NoTarget,
    /// The origin's answer is not acceptable HTTP.
    BadResponse,
    /// The client's message is malformed, too large or stalls.
    BadRequest,
    /// No route matches.
    NoRoute,
    /// The client went away.
    Cancelled,
    /// Nothing will ever answer (simulation only).
    Lost,
}

impl Kind {
    /// All kinds, in the order of the contract's table.
    pub const ALL: [Kind; 12] = [
        Kind::ConnectFailed,
        Kind::Refused,
        Kind::Overloaded,
        Kind::Timeout,
        Kind::Reset,
        Kind::Status5xx,
        Kind::NoTarget,
        Kind::BadResponse,
        Kind::BadRequest,
        Kind::NoRoute,
        Kind::Cancelled,
        Kind::Lost,
    ];

    /// The name in the language, in results and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Kind::ConnectFailed => "connect_failed",
            Kind::Refused => "refused",
            Kind::Overloaded => "overloaded",
            Kind::Timeout => "timeout",
            Kind::Reset => "reset",
            Kind::Status5xx => "status_5xx",
            Kind::NoTarget => "no_target",
            Kind::BadResponse => "bad_response",
            Kind::BadRequest => "bad_request",
            Kind::NoRoute => "no_route",
            Kind::Cancelled => "cancelled",
            Kind::Lost => "lost",
        }
    }

    /// The kind of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.name() == name)
    }
}

/// How a request, or one attempt of it, ended: `None` is success.
pub type Outcome = Option<Kind>;
