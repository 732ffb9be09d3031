//! Why requests failed, for the operator: a line of the error log for each request that weir answers with 500 or
//! above, or whose answer broke off, with the server, the reason and the result.
//!
//! A line holds no body, and nothing of a request that could end a line. All of this is off the good path; a text is
//! only built if it is written.

use super::failure::{Failure, FailureCause};
use super::{ClientEnd, Exchange, Upstream};
use crate::log::{ErrorLog, escape};
use crate::metrics::{LabelValue as _, RequestLimit};
use crate::transport::listener::Listener;
use weir_http1::{Refusal, Request};

/// Bytes of a request's target that are written at most.
const TARGET: usize = 256;

/// Logs a request that weir answers with an error.
#[cold]
pub(super) fn failed(ex: &Exchange, failure: &Failure) {
    let Some(log) = log(ex.listener()).filter(|_| failure.status >= 500) else { return };
    log.request_failed(|| {
        let at = failure.server.and_then(|id| ex.describe_server(id));
        // A failure that no server caused may still have happened while weir waited for one.
        let last = match (&at, ex.origin.borrow().as_ref()) {
            (None, Some(upstream)) => format!(", last tried: {}", upstream.described()),
            _ => String::new(),
        };
        let at = at.unwrap_or_else(|| listener(ex.listener()));
        format!("{at}: {}; {} to {}{last}", failure.cause, failure.status, asked(&ex.request))
    });
}

/// Logs a request whose answer broke off after `passed` bytes of its body.
#[cold]
pub(super) fn broke_off(ex: &Exchange, upstream: &dyn Upstream, why: FailureCause, passed: u64) {
    let Some(log) = log(ex.listener()) else { return };
    log.request_failed(|| {
        let (at, asked) = (upstream.described(), asked(&ex.request));
        format!("{at}: {why}; the answer to {asked} is cut short after {passed} bytes")
    });
}

/// Logs a request whose answer a defect of weir cut short after `sent` bytes of its body.
#[cold]
pub(super) fn panicked(ex: &Exchange, sent: u64) {
    let Some(log) = log(ex.listener()) else { return };
    log.request_failed(|| {
        let (at, asked) = (listener(ex.listener()), asked(&ex.request));
        format!("{at}: {}; the answer to {asked} is cut short after {sent} bytes", FailureCause::Panic)
    });
}

/// Logs an answer that a limit of the client's side cut short after `sent` bytes of its body.
#[cold]
pub(super) fn cut_off(ex: &Exchange, limit: RequestLimit, sent: u64) {
    let Some(log) = log(ex.listener()) else { return };
    log.request_failed(|| {
        let (at, asked) = (listener(ex.listener()), asked(&ex.request));
        format!("{at}: {} ended the answer to {asked} after {sent} bytes", limit.name())
    });
}

/// Logs a request in a forwarding loop, or another that is refused for its head through no fault of the client.
#[cold]
pub(super) fn refused(client: &ClientEnd, request: &Request, refusal: Refusal) {
    let at = &client.session().listener;
    if let Some(log) = log(at).filter(|_| refusal.status() == 508) {
        log.request_failed(|| format!("{}: {refusal}; 508 to {}", listener(at), asked(request)));
    }
}

/// Failures inside of built-in servers are logged by the loop that asked.
fn log(listener: &Listener) -> Option<&ErrorLog> {
    listener.errors.as_deref().filter(|_| !listener.is_built_in())
}

fn listener(listener: &Listener) -> String {
    format!("listener {:?}", listener.name)
}

/// Method and target, the target cut to what fits a line.
fn asked(request: &Request) -> String {
    let mut text = String::new();
    escape(&mut text, request.method());
    text.push(' ');
    let target = request.target();
    escape(&mut text, &target[..target.len().min(TARGET)]);
    if target.len() > TARGET {
        text.push_str("...");
    }
    text
}
