//! Forwards an origin's response to the client: the pump between the two ends.

use super::failure::FailureCause;
use super::hold::Holds;
use super::origin_reply::{OriginReply, OriginReplyBox};
use super::serve::{has_gone, left};
use super::{Exchange, Failure, failure_log, pipes};
use crate::log::Line;
use crate::message::{Disposition, Piece, ResponseHead};
use crate::metrics::RequestLimit;
use crate::sync::buffered::BufferedBytes;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use weir_net::io::reuse::Shared;
use weir_net::io::runtime::AfterOthers;
use weir_policy::Kind;

/// Why the relay of a body broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BrokenBody {
    /// The origin is to blame.
    Origin(Kind, FailureCause),
    /// A hold ended it, a time limit or a crash; the number of the hold.
    Held(usize, Kind),
    /// The client's request breaks a rule or a limit.
    Client(Failure),
    /// The client takes nothing, for longer than this limit.
    Stalled(RequestLimit),
    /// The client has gone.
    Gone,
    /// The target was removed, and its `drain_timeout` has passed.
    Aborted,
}

/// Forwards a response, from its head to its end.
pub(super) async fn relay(
    ex: &Shared<Exchange>,
    mut reply: OriginReplyBox,
    mut holds: Holds,
    close: bool,
    line: &mut Line,
) -> Disposition {
    let close = close || !ex.is_complete() || ex.is_last();
    ex.begin_answer();
    reply.abort.leave_graph();
    // What was read with the head is forwarded at once.
    reply.held = BufferedBytes::default();
    ex.name(&mut reply.edits);
    ex.note_response(reply.response(), &reply.edits);
    ex.client.send_head(&ResponseHead {
        response: reply.response(),
        edits: &reply.edits,
        add: &reply.add,
        close,
        date: ex.core.date(),
    });
    #[cfg(test)]
    assert!(reply.response().status() != 299, "a defect of the relay");
    let relayed = poll_fn(|cx| poll_relay(cx, ex, &mut reply, &mut holds)).await;
    let (status, passed) = (reply.response().status(), reply.passed);
    let after = match relayed {
        Ok(()) => {
            holds.finish((status >= 500).then_some(Kind::Status5xx), Some(status));
            let complete = ex.is_complete();
            // The origin and its holds are free, however slowly the client takes the rest.
            reply.into_inner().give_back(ex);
            finish(ex, complete, line).await
        }
        // Boxed, as it is rare: a whole answer need not carry its state.
        Err(broken) => Box::pin(break_off(ex, reply, holds, broken, line)).await,
    };
    // Bytes that were read ahead and not taken by the client were not sent.
    line.sent = passed.min(ex.client.sent());
    after
}

/// Sends what is left of a complete answer and ends the exchange.
async fn finish(ex: &Exchange, complete: bool, line: &mut Line) -> Disposition {
    match flush_quickly(ex).await {
        Ok(()) => ex.client.finish(complete, !ex.request.keep_alive()),
        Err(Some(limit)) => {
            line.cut_off(limit);
            failure_log::cut_off(ex, limit, ex.client.sent());
            ex.client.abort()
        }
        Err(None) => {
            left(ex, line);
            ex.client.abort()
        }
    }
}

/// Ends an exchange whose body broke off: in the log, in the holds, and towards the client.
async fn break_off(
    ex: &Shared<Exchange>,
    reply: OriginReplyBox,
    holds: Holds,
    broken: BrokenBody,
    line: &mut Line,
) -> Disposition {
    let passed = reply.passed;
    match broken {
        BrokenBody::Origin(kind, why) => {
            send_what_there_is(ex).await;
            (line.failure, line.limit) = (Some(kind), why.limit());
            failure_log::broke_off(ex, &*reply.upstream, why, passed);
            holds.finish(Some(kind), None);
            ex.client.abort()
        }
        BrokenBody::Held(at, kind) => {
            send_what_there_is(ex).await;
            let why = FailureCause::Held(kind);
            (line.failure, line.limit) = (Some(kind), why.limit());
            failure_log::broke_off(ex, &*reply.upstream, why, passed);
            holds.broken(at, kind, ex, reply);
            ex.client.abort()
        }
        BrokenBody::Aborted => {
            send_what_there_is(ex).await;
            line.give_up();
            holds.cancel(ex, reply);
            ex.client.abort()
        }
        BrokenBody::Client(failure) => {
            (line.failure, line.limit) = (Some(failure.kind), failure.limit());
            if let Some(limit) = line.limit {
                failure_log::cut_off(ex, limit, passed);
            }
            holds.cancel(ex, reply);
            ex.client.abort()
        }
        BrokenBody::Stalled(limit) => {
            line.cut_off(limit);
            failure_log::cut_off(ex, limit, ex.client.sent());
            holds.cancel(ex, reply);
            ex.client.abort()
        }
        BrokenBody::Gone => {
            left(ex, line);
            holds.cancel(ex, reply);
            ex.client.abort()
        }
    }
}

fn poll_relay(
    cx: &mut Context<'_>,
    ex: &Exchange,
    reply: &mut OriginReply,
    holds: &mut Holds,
) -> Poll<Result<(), BrokenBody>> {
    if let Err(failure) = reply.poll_upload(cx, ex) {
        let gone = failure.kind == Kind::Cancelled;
        return Poll::Ready(Err(if gone { BrokenBody::Gone } else { BrokenBody::Client(failure) }));
    }
    let polled = poll_body(cx, ex, reply);
    if polled.is_ready() {
        return polled;
    }
    ex.set_waiting_for_client(ex.client.unsent() > 0);
    if let Some(limit) = ex.client.poll_stalled(cx) {
        return Poll::Ready(Err(BrokenBody::Stalled(limit)));
    }
    if let Some((at, kind)) = holds.poll_broken(cx, &ex.core, Some(ex)) {
        return Poll::Ready(Err(BrokenBody::Held(at, kind)));
    }
    if has_gone(cx, ex) { Poll::Ready(Err(BrokenBody::Gone)) } else { Poll::Pending }
}

/// Forwards the body, with its trailers if the client wants them; ready when everything was read. Bytes that the
/// client's connection has not taken wait there.
fn poll_body(cx: &mut Context<'_>, ex: &Exchange, reply: &mut OriginReply) -> Poll<Result<(), BrokenBody>> {
    let client = |done: std::io::Result<()>| done.map_err(|_| BrokenBody::Gone);
    loop {
        if reply.abort.is_set() || ex.is_cut() {
            return Poll::Ready(Err(BrokenBody::Aborted));
        }
        let mut pipe = None;
        // Data that counts nowhere is forwarded at once, to where it counts.
        let lent = if ex.client.counts() { reply.origin.lent_piece() } else { None };
        let piece = match lent {
            Some(piece) => Poll::Ready(piece),
            None => {
                let counted = reply.origin.is_counted();
                ready!(ex.client.poll_capacity(cx, reply.ahead, counted).map(client))?;
                reply.origin.release();
                pipes::poll_answer(cx, ex, reply, &mut pipe)
            }
        };
        match piece {
            Poll::Ready(Ok(Piece::Data(n))) => {
                reply.passed += n as u64;
                reply.last_piece = n;
                client(match pipe {
                    Some(pipe) => ex.client.send_pipe(cx, pipe),
                    None => ex.client.send_data(cx, reply.origin.input(), n),
                })?;
                reply.origin.set_deadline(reply.upstream.origin().body_timeout_ns);
            }
            Poll::Ready(Ok(Piece::End)) => {
                let named = |name: &[u8]| reply.origin.response().names(name);
                ex.client.send_end(Some(reply.origin.trailers()), named);
                return Poll::Ready(Ok(()));
            }
            Poll::Ready(Err(broken)) => {
                let (kind, why) = FailureCause::from_body_error(broken);
                return Poll::Ready(Err(BrokenBody::Origin(kind, why)));
            }
            Poll::Pending => {
                if ex.client.unsent() > 0 && matches!(ex.client.poll_flush(cx), Poll::Ready(Err(_))) {
                    return Poll::Ready(Err(BrokenBody::Gone));
                }
                let limit_ns = reply.upstream.origin().body_timeout_ns;
                // If the answer began before the request was complete, a byte of either counts.
                if reply.has_sent_more() {
                    reply.origin.set_deadline(limit_ns);
                }
                if reply.origin.is_late(cx) {
                    return Poll::Ready(Err(BrokenBody::Origin(
                        Kind::Timeout,
                        FailureCause::BodyLimit(limit_ns),
                    )));
                }
                return Poll::Pending;
            }
        }
    }
}

/// Flushes the part of a broken answer that was received, without waiting.
async fn send_what_there_is(ex: &Exchange) {
    poll_fn(|cx| {
        // The result makes no difference: the connection ends.
        let _ = ex.client.poll_flush(cx);
        Poll::Ready(())
    })
    .await;
}

/// Sends the rest of an answer. One send nearly always suffices.
///
/// # Errors
/// The client does not take it: for longer than this limit, or (`None`) because it has gone.
async fn flush_quickly(ex: &Exchange) -> Result<(), Option<RequestLimit>> {
    let mut turn = AfterOthers::default();
    let sent = poll_fn(|cx| {
        if ex.client.unsent() == 0 {
            return Poll::Ready(Some(Ok(())));
        }
        ready!(turn.poll(&ex.core.runtime, cx));
        match ex.client.poll_flush(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done.map_err(|_| None))),
            Poll::Pending => Poll::Ready(None),
        }
    })
    .await;
    match sent {
        Some(sent) => sent,
        None => Box::pin(flush(ex)).await,
    }
}

/// Sends what the client has not taken yet; the errors are those of [`flush_quickly`].
async fn flush(ex: &Exchange) -> Result<(), Option<RequestLimit>> {
    let sent = poll_fn(|cx| {
        if let Poll::Ready(done) = ex.client.poll_flush(cx) {
            return Poll::Ready(done.map_err(|_| None));
        }
        ex.set_waiting_for_client(true);
        match ex.client.poll_stalled(cx) {
            Some(limit) => Poll::Ready(Err(Some(limit))),
            None if has_gone(cx, ex) => Poll::Ready(Err(None)),
            None => Poll::Pending,
        }
    })
    .await;
    ex.set_waiting_for_client(false);
    sent
}
