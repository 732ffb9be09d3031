//! Answers of weir's own: refusals, failures, `respond`, `redirect`, built-in servers.

use crate::control::event_loop::Loop;
use crate::exchange::Exchange;
use crate::exchange::failure::Failure;
use crate::h1::server::write_limit::WriteLimit;
use crate::h1::server::{After, Conn};
use crate::log::Line;
use crate::nodes::Own;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_http1::{Client, Request, Version};
use weir_policy::Kind;

/// Refuses a request for its head, which could be read or not.
pub(crate) async fn refuse(lp: &Rc<Loop>, conn: &Rc<Conn>, read: Option<&Request>, status: u16) -> After {
    let text = page(status);
    if let Some(log) = &conn.listener.log {
        log.refused(conn, read, status, text.len());
    }
    let to =
        Client { version: Version::H11, head: false, te_trailers: false, close: true, keep_alive_10: false };
    weir_http1::render_answer(
        status,
        &[],
        text.as_bytes(),
        to,
        Some(&lp.date()),
        conn.wire.borrow_mut().queue_to(),
    );
    send(conn).await;
    After::Linger
}

/// Answers a request that failed. `close`: nothing more is read from this client.
pub(crate) async fn fail(
    lp: &Rc<Loop>,
    ex: &Exchange,
    failure: Failure,
    close: bool,
    line: &mut Line,
) -> After {
    let seconds = failure.retry_after_s.map(|s| s.to_string());
    let mut extra: Vec<(&str, &[u8])> = Vec::new();
    if let Some(seconds) = &seconds {
        extra.push(("Retry-After", seconds.as_bytes()));
    }
    // A status that a server answers is an answer.
    if ex.conn.listener.is_built_in() && failure.kind != Kind::Status5xx {
        extra.push((crate::control::built_in::KIND, failure.kind.name().as_bytes()));
    }
    if failure.status == 405 {
        extra.push(("Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    }
    let text = page(failure.status);
    write(lp, ex, (failure.status, &extra, text.as_bytes()), close, line).await
}

/// Sends a response of weir's own.
pub(crate) async fn own(lp: &Rc<Loop>, ex: &Exchange, own: &Own, close: bool, line: &mut Line) -> After {
    let extra: Vec<(&str, &[u8])> = own.headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
    write(lp, ex, (own.status, &extra, &own.body), close, line).await
}

/// Status, fields and body.
type Message<'a> = (u16, &'a [(&'a str, &'a [u8])], &'a [u8]);

/// Writes status, fields and body, and how much of a body there was into the log's line.
async fn write(
    lp: &Rc<Loop>,
    ex: &Exchange,
    (status, extra, body): Message<'_>,
    close: bool,
    line: &mut Line,
) -> After {
    let has_body = !ex.request.is_head() && !matches!(status, 204 | 304);
    let length = if has_body { body.len() as u64 } else { 0 };
    let unread = !ex.is_complete();
    let close = close || unread;
    let to = Client {
        version: ex.version(),
        head: ex.request.is_head(),
        te_trailers: false,
        close,
        keep_alive_10: !close && ex.version() == Version::H10,
    };
    weir_http1::render_answer(
        status,
        extra,
        body,
        to,
        Some(&lp.date()),
        ex.conn.wire.borrow_mut().queue_to(),
    );
    let sent = send(&ex.conn).await;
    // Its body is the last of what waits.
    line.sent = length.saturating_sub(ex.conn.wire.borrow().unsent() as u64);
    match (sent, close) {
        (false, _) => {
            // Of a failure the log tells the cause.
            if line.failure.is_none() {
                line.left();
            }
            After::Abort
        }
        (true, false) => After::Next,
        (true, true) => ex.conn.end(!unread, !ex.request.keep_alive()),
    }
}

/// Writes what waits; `false` if the client does not take it.
pub(crate) async fn send(conn: &Conn) -> bool {
    let mut limit = WriteLimit::default();
    poll_fn(|cx| {
        let mut wire = conn.wire.borrow_mut();
        match wire.poll_flush(cx) {
            Poll::Ready(done) => Poll::Ready(done.is_ok()),
            Poll::Pending if limit.has_ended(cx, conn, &wire) => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// The body of an error: its status in words, nothing about weir or what is behind it.
fn page(status: u16) -> String {
    format!("{status} {}\n", weir_http1::reason(status))
}
