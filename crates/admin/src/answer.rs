//! Answers: JSON, text or a page, with headers that keep browsers from misusing them.

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{HeaderMap, Response, StatusCode};
use serde::Serialize;
use std::convert::Infallible;

/// The body of an answer.
pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// An answer of this type.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    with_body(status, content_type, Full::new(body.into()).boxed())
}

/// The same, with a streamed body.
pub(crate) fn with_body(
    status: StatusCode,
    content_type: &'static str,
    body: BoxBody<Bytes, Infallible>,
) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    answer
}

/// Data.
pub(crate) fn json(what: &impl Serialize) -> Answer {
    match serde_json::to_vec_pretty(what) {
        Ok(mut bytes) => {
            bytes.push(b'\n');
            answer(StatusCode::OK, "application/json", bytes)
        }
        Err(e) => answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, format!("cannot be shown: {e}\n")),
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

/// The form of sentences that the client prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Json,
}

impl Form {
    /// By Accept: JSON if it is named.
    pub fn from_accept(headers: &HeaderMap) -> Form {
        let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        if accepts.into_iter().any(|value| value.contains("application/json")) {
            Form::Json
        } else {
            Form::Text
        }
    }

    /// A sentence.
    pub fn sentence(self, status: StatusCode, says: &str) -> Answer {
        let key = if status.is_success() { "result" } else { "error" };
        match self {
            Form::Text => answer(status, TEXT, format!("{says}\n")),
            Form::Json => {
                answer(status, "application/json", serde_json::json!({key: says}).to_string() + "\n")
            }
        }
    }

    /// The method of a path is another one.
    pub fn only(self, method: &'static str, path: &str) -> Answer {
        let says = format!("{path} takes {method} only");
        let mut answer = self.sentence(StatusCode::METHOD_NOT_ALLOWED, &says);
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(method));
        answer
    }
}

/// The paths, for a request of another one.
pub(crate) const PATHS: &str = "GET / (the status page), /events, /healthz, /ready, /metrics, /topology (?loops=1), \
     /config; POST /reload, /drain, /targets/POOL/TARGET";

/// There is no such path.
pub(crate) fn unknown(form: Form, path: &str) -> Answer {
    let path: String = path.chars().take(80).collect();
    form.sentence(StatusCode::NOT_FOUND, &format!("there is no {path}; there are {PATHS}"))
}
