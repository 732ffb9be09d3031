//! Converts the head of a request from the `h2` crate's type to that of all requests.

use http::request::Parts;
use weir_http1::{Limits, Pseudo, Refusal, Request};

/// Reads a request's head; `scratch` is overwritten. `has_body`: the stream continues after it.
pub(super) fn read(
    parts: &Parts,
    has_body: bool,
    limits: &Limits,
    request: &mut Request,
    scratch: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let pseudo = Pseudo {
        method: parts.method.as_str().as_bytes(),
        path: parts.uri.path_and_query().map_or(b"", |path| path.as_str().as_bytes()),
        authority: parts.uri.authority().map(|authority| authority.as_str().as_bytes()),
        has_body,
    };
    let fields = || parts.headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    request.convert(&pseudo, fields, limits, scratch)
}
