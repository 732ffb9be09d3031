//! What is answered to a request of HTTP.

use crate::options::AskerKey;
use crate::state::State;
use crate::{metrics, status};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::cell::RefCell;
use std::net::IpAddr;
use weir_policy::gate::asker_text;

/// The longest name of an asker, bytes: a head may have 8 KiB, but ten thousand of them are kept.
const NAME_BYTES: usize = 256;

/// Answers a request from this address.
pub(crate) fn answer<B>(state: &RefCell<State>, peer: IpAddr, request: &Request<B>) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "a check is a GET or a HEAD".to_owned());
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match request.uri().path() {
        "/gate/status" => page("application/json", status::page(&state.borrow())),
        "/gate/metrics" => page("text/plain; version=0.0.4", metrics::page(&state.borrow())),
        "/gate/live" => text(StatusCode::OK, "the gate runs".to_owned()),
        _ => {
            let name = name(&state.borrow().key, peer, request);
            let (answer, line) = state.borrow_mut().check(&name);
            let status = if answer.is_healthy() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
            text(status, line)
        }
    }
}

/// By what the asker is known.
fn name<B>(key: &AskerKey, peer: IpAddr, request: &Request<B>) -> String {
    let field = match key {
        AskerKey::Peer => None,
        AskerKey::Header(name) => request.headers().get(name),
    };
    match field {
        Some(value) => {
            let bytes = value.as_bytes();
            String::from_utf8_lossy(bytes.get(..NAME_BYTES).unwrap_or(bytes)).into_owned()
        }
        None => asker_text(peer),
    }
}

fn text(status: StatusCode, line: String) -> Response<Full<Bytes>> {
    let mut answer = page("text/plain; charset=utf-8", line + "\n");
    *answer.status_mut() = status;
    answer
}

fn page(kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(body));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
