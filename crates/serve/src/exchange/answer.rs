//! Answers of weir itself: refusals, failures, `respond`, `redirect`, built-in servers.

use super::reply::LocalAnswer;
use super::serve::left;
use super::{ClientEnd, Exchange, Failure, built_in};
use crate::log::Line;
use crate::message::{Disposition, error_page};
use crate::metrics::{HeadAnswer, RequestLimit};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};
use weir_http1::Request;
use weir_net::io::Core;
use weir_policy::Kind;

/// The methods that weir forwards, for Allow.
const METHODS: &[u8] = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Refuses a request because of its head.
pub(super) async fn refuse(core: &Core, client: &ClientEnd, request: &Request, status: u16) -> Disposition {
    let text = error_page(status, None);
    let listener = &client.session().listener;
    let answer = HeadAnswer { status, limit: None, sent: text.len() };
    listener.counts.refused(Some(request.method()), request.version(), &answer, core.recent());
    if let Some(log) = &listener.log {
        log.refused(client.session().client(), request, &answer);
    }
    let taken = client.send_answer(status, &[], text.as_bytes(), true, core.date());
    if send(client, &text.as_bytes()[taken..]).await.is_ok() {
        client.drop_upload();
    }
    Disposition::Linger
}

/// Answers a request that failed. `close`: nothing more is read from this client.
pub(super) async fn fail(ex: &Exchange, failure: Failure, close: bool, line: &mut Line) -> Disposition {
    let seconds = failure.retry_after_s.map(|s| s.to_string());
    // A status of a server is an answer, not a failure.
    let has_kind = ex.is_built_in() && failure.kind != Kind::Status5xx;
    let kind = has_kind.then(|| built_in::kind_value(&failure));
    let mut extra: Vec<(&str, &[u8])> = Vec::new();
    if let Some(seconds) = &seconds {
        extra.push(("Retry-After", seconds.as_bytes()));
    }
    if let Some(kind) = &kind {
        extra.push((built_in::KIND, kind.as_bytes()));
    }
    if failure.status == 405 {
        extra.push(("Allow", METHODS));
    }
    let text = error_page(failure.status, failure.limit());
    let message = Message { status: failure.status, fields: &extra, body: text.as_bytes() };
    write(ex, message, close, line).await
}

/// Sends a response of weir itself.
pub(super) async fn own(ex: &Exchange, own: &LocalAnswer, close: bool, line: &mut Line) -> Disposition {
    let load = ex.load.get().map(|load| load.to_string());
    let fields = own.headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes()));
    let reports = load.iter().flat_map(|load| own.load_fields.iter().map(|name| (&**name, load.as_bytes())));
    let extra: Vec<(&str, &[u8])> = fields.chain(reports).collect();
    write(ex, Message { status: own.status, fields: &extra, body: &own.body }, close, line).await
}

/// A whole answer of weir's own.
struct Message<'a> {
    status: u16,
    fields: &'a [(&'a str, &'a [u8])],
    body: &'a [u8],
}

/// Writes an answer, and notes for the log how much of its body was taken.
async fn write(ex: &Exchange, message: Message<'_>, close: bool, line: &mut Line) -> Disposition {
    let complete = ex.is_complete();
    let Message { status, fields, body } = message;
    let named = ex.with_name(fields);
    let fields = named.as_deref().unwrap_or(fields);
    ex.note_own(fields);
    let taken = ex.client.send_answer(status, fields, body, close || !complete, ex.core.date());
    let sent = send(&ex.client, &body[taken..]).await;
    line.sent = ex.client.sent();
    match sent {
        Ok(()) => return ex.client.finish(complete, !ex.request.keep_alive()),
        // The log already has the cause of the failure.
        Err(limit) if line.failure.is_some() => line.limit = line.limit.or(limit),
        Err(Some(limit)) => line.cut_off(limit),
        Err(None) => left(ex, line),
    }
    Disposition::Abort
}

/// Writes what is queued, and then this rest of the body as there is room.
///
/// # Errors
/// The client does not take it: for longer than this limit, or (`None`) because it has gone.
async fn send(client: &ClientEnd, mut rest: &[u8]) -> Result<(), Option<RequestLimit>> {
    poll_fn(|cx| {
        if let Poll::Ready(done) = poll_send(cx, client, &mut rest) {
            return Poll::Ready(done.map_err(|_| None));
        }
        match client.poll_stalled(cx) {
            Some(limit) => Poll::Ready(Err(Some(limit))),
            None if !rest.is_empty() && client.is_gone(cx, true) => Poll::Ready(Err(None)),
            None => Poll::Pending,
        }
    })
    .await
}

fn poll_send(cx: &mut Context<'_>, client: &ClientEnd, rest: &mut &[u8]) -> Poll<io::Result<()>> {
    while !rest.is_empty() {
        ready!(client.poll_capacity(cx, 0, false))?;
        *rest = &rest[client.send_more(cx, rest)?..];
    }
    client.poll_flush(cx)
}
