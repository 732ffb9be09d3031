//! How a request ended: `ok`, or an error of one kind.

use serde::{Deserialize, Serialize};

/// The kinds of error, as the language names them (`on=[...]`, `errors` in results, `kind` in metrics).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// No connection, nothing was sent.
    ConnectFailed,
    /// A node refused it before any work was done.
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
    /// There will never be an answer (simulation only).
    Lost,
}

impl Kind {
    /// All kinds, in the order of the table in `docs/spec/language.md#kinds`.
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

    /// The status of weir's own answer for this kind.
    pub fn status(self) -> u16 {
        match self {
            Kind::ConnectFailed | Kind::Refused | Kind::Overloaded | Kind::NoTarget => 503,
            Kind::Timeout | Kind::Lost => 504,
            Kind::Reset | Kind::BadResponse => 502,
            Kind::Status5xx => 500,
            Kind::BadRequest => 400,
            Kind::NoRoute => 404,
            // The status in nginx's log; no client receives it.
            Kind::Cancelled => 499,
        }
    }

    /// The kind of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.name() == name)
    }
}

/// Whether an outcome of this kind counts against the target.
pub fn is_failure(kind: Kind) -> bool {
    match kind {
        Kind::ConnectFailed
        | Kind::Refused
        | Kind::Reset
        | Kind::Timeout
        | Kind::BadResponse
        | Kind::Status5xx
        | Kind::Lost => true,
        Kind::Overloaded | Kind::NoTarget | Kind::BadRequest | Kind::NoRoute | Kind::Cancelled => false,
    }
}

/// How a request, or one attempt of it, ended: `None` is success.
pub type Outcome = Option<Kind>;

/// The status of an answer to a client that exceeded a rate.
pub const TOO_MANY: u16 = 429;

/// The kind and status that the node before a listener receives for this outcome behind it; status 0: unknown. A full
/// rate limit is reported with [`TOO_MANY`].
pub fn answered(outcome: Outcome, status: u16) -> (Outcome, u16) {
    match outcome {
        None | Some(Kind::Status5xx | Kind::Lost | Kind::Cancelled) => (outcome, status),
        Some(kind) => {
            let status = if kind == Kind::Overloaded && status == TOO_MANY { status } else { kind.status() };
            ((status >= 500).then_some(Kind::Status5xx), status)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in `docs/spec/language.md#kinds`, kind by kind.
    #[test]
    fn what_a_hop_answers() {
        for kind in Kind::ALL {
            let status = match kind {
                Kind::ConnectFailed | Kind::Refused | Kind::Overloaded | Kind::NoTarget => 503,
                Kind::Timeout => 504,
                Kind::Reset | Kind::BadResponse => 502,
                Kind::BadRequest => 400,
                Kind::NoRoute => 404,
                Kind::Status5xx | Kind::Cancelled | Kind::Lost => {
                    assert_eq!(answered(Some(kind), 507), (Some(kind), 507));
                    continue;
                }
            };
            let seen = (status >= 500).then_some(Kind::Status5xx);
            assert_eq!(answered(Some(kind), 0), (seen, status), "{kind:?}");
        }
        assert_eq!(answered(Some(Kind::Overloaded), TOO_MANY), (None, 429));
        assert_eq!((answered(None, 0), answered(None, 204)), ((None, 0), (None, 204)));
    }
}
