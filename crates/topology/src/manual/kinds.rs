//! The kinds of error: what each means, what a client sees, and whether it may be tried again.

use weir_policy::Kind;
use weir_policy::config::Methods;
use weir_policy::retry::may_retry;

/// A kind of error.
#[derive(Clone, Copy, Debug)]
pub struct KindEntry {
    /// Its name in the language and in results.
    pub name: &'static str,
    /// When a request ends so.
    pub meaning: &'static str,
    /// The answer to a client of the proxy.
    pub client: &'static str,
    /// The requests that may be retried after it.
    pub again: &'static str,
}

/// All kinds, in the order of results.
pub fn kinds() -> [KindEntry; 12] {
    Kind::ALL.map(|kind| KindEntry {
        name: kind.name(),
        meaning: meaning(kind),
        client: client(kind),
        again: again(kind),
    })
}

fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::ConnectFailed => "No connection could be made; nothing was sent.",
        Kind::Refused => {
            "A node or an origin refused it before any work was done: a `faulty` node that is down, or HTTP/2's \
             REFUSED_STREAM."
        }
        Kind::Overloaded => {
            "A bounded queue or a limit was full: `capacity` of `queue`, `max_waiting` of a balancer, \
                `limit.rate`."
        }
        Kind::Timeout => "A `timeout` expired, or a wait in a queue took too long.",
        Kind::Reset => "The connection broke after the request was sent.",
        Kind::Status5xx => "The server answered with a status of 500 or above.",
        Kind::NoTarget => "A balancer had no target left: all are down, ejected or drained.",
        Kind::BadResponse => "The origin's answer is not acceptable HTTP.",
        Kind::BadRequest => {
            "The client's message is malformed, too large or stalls, or asks for an upgrade that the origin \
                cannot take; this never counts against a target."
        }
        Kind::NoRoute => "No rule of a `route` matches, and it has no `otherwise`.",
        Kind::Cancelled => "The client went away; in simulation after its `patience`.",
        Kind::Lost => {
            "No answer will ever come: a message was lost or swallowed and no `timeout` ends the wait. In simulation \
             only; such a request has no latency."
        }
    }
}

fn client(kind: Kind) -> &'static str {
    match kind {
        Kind::ConnectFailed | Kind::Refused | Kind::NoTarget => "503",
        Kind::Overloaded => "503 with Retry-After; a rate limit: 429",
        Kind::Timeout => "504, or a broken body",
        Kind::Reset | Kind::BadResponse => "502, or a broken body",
        Kind::Status5xx => "that answer",
        Kind::BadRequest => "400, 408, 413, 414, 417, 421 or 431; an upgrade: 501",
        Kind::NoRoute => "404",
        Kind::Cancelled | Kind::Lost => "nothing",
    }
}

/// The table of retries in words.
fn again(kind: Kind) -> &'static str {
    if kind == Kind::Lost {
        "nothing: no answer ever comes"
    } else if may_retry(kind, false, Methods::Idempotent) {
        "any request"
    } else if may_retry(kind, true, Methods::Idempotent) {
        "idempotent requests; with `methods=\"any\"` any"
    } else {
        "nothing"
    }
}
