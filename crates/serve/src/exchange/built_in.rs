//! What weir and its own built-in servers tell each other in the heads of messages: what is drawn by, how a request failed,
//! what a health check costs.

use super::RequestContext;
use super::failure::{Failure, FailureCause};
use weir_http1::{Edits, Request, Response};
use weir_policy::Kind;
use weir_workload::{DRAWN, RequestDraws, RunRequest};

/// The field in which a built-in server tells the kind of a failure to the loop that asked; it goes no further.
pub(crate) const KIND: &str = "x-weir-kind";

/// What a head says is drawn for its request, if it knows the token.
pub(crate) fn read_drawn(request: &Request, token: u64) -> Option<RequestDraws> {
    RequestDraws::read(std::str::from_utf8(request.field(DRAWN)?).ok()?, token)
}

/// The changes of a request to a built-in server, with what it draws by.
pub(crate) fn with_draw(edits: &Edits, ctx: &RequestContext, of_run: RunRequest, token: u64) -> Edits {
    let mut edits = edits.clone();
    let value = RequestDraws { of_run, factor: ctx.factor, way: ctx.way.clone() }.value(token);
    edits.set.retain(|(set, _)| set != DRAWN.as_bytes());
    edits.set.push((DRAWN.as_bytes().to_vec(), value.into_bytes()));
    edits
}

/// The same without it.
pub(crate) fn without_draw(edits: &Edits) -> Edits {
    let mut edits = edits.clone();
    edits.remove.push(DRAWN.as_bytes().to_vec());
    edits
}

/// The failure that a built-in server's response stands for.
pub(crate) fn failure(response: &Response) -> Failure {
    let text = |name| response.field(name).and_then(|v| std::str::from_utf8(v).ok());
    let kind = text(KIND).and_then(Kind::from_name).unwrap_or(Kind::BadResponse);
    let retry_after_s = text("retry-after").and_then(|v| v.parse().ok());
    Failure {
        status: response.status(),
        retry_after_s,
        ..Failure::new(kind).with_cause(FailureCause::Model(kind))
    }
}

/// The field by which a built-in server knows a health check: what it costs, ns, and the process's token, so that no client
/// can make one up.
pub(crate) const CHECK: &str = "x-weir-check";

/// The value of [`CHECK`].
pub(crate) fn check_value(cost_ns: u64, token: u64) -> String {
    format!("{cost_ns} {token:016x}")
}

/// What a request costs a server's model in place of its work, ns, if it is a health check of this process.
pub(crate) fn check_cost(request: &Request, token: u64) -> Option<u64> {
    let value = std::str::from_utf8(request.field(CHECK)?).ok()?;
    let (cost, proof) = value.split_once(' ')?;
    if proof == format!("{token:016x}") { cost.parse().ok() } else { None }
}
