//! What weir and its built-in servers exchange in the heads of messages: the random draws, how a request failed, the
//! cost of a health check.

use super::RequestContext;
use super::failure::{Failure, FailureCause};
use weir_http1::{Edits, Request, Response};
use weir_policy::Kind;
use weir_workload::{DRAWN, RequestDraws, RunRequest};

/// The field in which a built-in server reports the kind of a failure to the loop that asked; it is not forwarded.
pub(crate) const KIND: &str = "x-weir-kind";

/// Reads a request's draws from its head, if the head has the token.
pub(crate) fn read_drawn(request: &Request, token: u64) -> Option<RequestDraws> {
    RequestDraws::read(std::str::from_utf8(request.field(DRAWN)?).ok()?, token)
}

/// The changes of a request to a built-in server, with its draws added.
pub(crate) fn with_draw(edits: &Edits, ctx: &RequestContext, of_run: RunRequest, token: u64) -> Edits {
    let mut edits = edits.clone();
    let value = RequestDraws { of_run, factor: ctx.factor, way: ctx.way.clone() }.value(token);
    edits.set.retain(|(set, _)| set != DRAWN.as_bytes());
    edits.set.push((DRAWN.as_bytes().to_vec(), value.into_bytes()));
    edits
}

/// The same changes with the draws removed.
pub(crate) fn without_draw(edits: &Edits) -> Edits {
    let mut edits = edits.clone();
    edits.remove.push(DRAWN.as_bytes().to_vec());
    edits
}

/// The end of its value where a balancer inside of the server's model has relayed the failure.
const RELAYED: &str = " relayed";

/// The value of [`KIND`] for a failure of a built-in server.
pub(crate) fn kind_value(failure: &Failure) -> String {
    format!("{}{}", failure.kind.name(), if failure.relayed { RELAYED } else { "" })
}

/// The kind that a value of [`KIND`] names, and whether a balancer has relayed it.
fn read_kind(value: &str) -> (Kind, bool) {
    let name = value.strip_suffix(RELAYED);
    (Kind::from_name(name.unwrap_or(value)).unwrap_or(Kind::BadResponse), name.is_some())
}

/// The failure that a built-in server's response represents.
pub(crate) fn failure(response: &Response) -> Failure {
    let text = |name| response.field(name).and_then(|v| std::str::from_utf8(v).ok());
    let (kind, relayed) = read_kind(text(KIND).unwrap_or_default());
    let retry_after_s = text("retry-after").and_then(|v| v.parse().ok());
    Failure {
        status: response.status(),
        retry_after_s,
        relayed,
        ..Failure::new(kind).with_cause(FailureCause::Model(kind))
    }
}

/// The field that marks a health check for a built-in server: its cost, ns, and the process's token, so that no
/// client can forge one.
pub(crate) const CHECK: &str = "x-weir-check";

/// The end of its value where a connection is enough.
const CONNECTS: &str = " connect";

/// The value of [`CHECK`]. `connects`: whether a connection is enough.
pub(crate) fn check_value(cost_ns: u64, token: u64, connects: bool) -> String {
    format!("{cost_ns} {token:016x}{}", if connects { CONNECTS } else { "" })
}

/// Whether a connection is enough for this check.
pub(crate) fn connects_only(check: &Request) -> bool {
    check.field(CHECK).is_some_and(|value| value.ends_with(CONNECTS.as_bytes()))
}

/// The cost of a request in place of its work, ns, if it is a health check of this process.
pub(crate) fn check_cost(request: &Request, token: u64) -> Option<u64> {
    let value = std::str::from_utf8(request.field(CHECK)?).ok()?;
    let (cost, proof) = value.strip_suffix(CONNECTS).unwrap_or(value).split_once(' ')?;
    if proof == format!("{token:016x}") { cost.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_says_whether_a_balancer_has_relayed_it() {
        for kind in Kind::ALL {
            for relayed in [false, true] {
                let failure = Failure { relayed, ..Failure::new(kind) };
                assert_eq!(read_kind(&kind_value(&failure)), (kind, relayed));
            }
        }
        assert_eq!(read_kind("nonsense"), (Kind::BadResponse, false));
        assert_eq!(read_kind(""), (Kind::BadResponse, false));
    }
}
