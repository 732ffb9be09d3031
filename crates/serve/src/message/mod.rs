//! What both versions of HTTP say about a message: the pieces of a body, the heads and their errors, the end of an
//! exchange.
//!
//! `h1` and `h2` read and write these; `exchange` works with them and does not know which of the two is behind.

mod from_client;
mod to_origin;

pub(crate) use from_client::{Disposition, RequestBodyError, ResponseHead};
pub(crate) use to_origin::{
    ConnectionHold, HeadError, HeadKind, Opening, OpeningError, OutgoingRequest, RESPONSE_LIMITS,
    ResponseBodyError,
};

use crate::metrics::{LabelValue as _, RequestLimit};
use weir_http1::{Request, Response};
use weir_net::io::Core;

/// The next part of a body, of a request or of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The input begins with this many bytes of data; the caller consumes them.
    Data(usize),
    /// The body is complete.
    End,
}

/// The body of an error: its status in words and the limit that ended the request; nothing about weir or the servers
/// behind.
pub(crate) fn error_page(status: u16, limit: Option<RequestLimit>) -> String {
    let reason = weir_http1::reason(status);
    match limit {
        Some(limit) => format!("{status} {reason} ({})\n", limit.name()),
        None => format!("{status} {reason}\n"),
    }
}

/// Keeps a request for the next head.
pub(crate) fn keep_request(core: &Core, mut request: Box<Request>) {
    request.trim();
    core.spares.keep(request);
}

/// Keeps a response for the next head.
pub(crate) fn keep_response(core: &Core, mut response: Box<Response>) {
    response.trim();
    core.spares.keep(response);
}
