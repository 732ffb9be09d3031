//! Passes an origin's response on to the client: the pump between the two ends.

use super::failure::Why;
use super::hold::Holds;
use super::origin_reply::OriginReply;
use super::serve::has_gone;
use super::{Exchange, failure_log};
use crate::h1::Piece;
use crate::h1::client::Broken;
use crate::h1::server::{After, Head};
use crate::log::Line;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use weir_net::io::held::Held;
use weir_net::io::runtime::AfterOthers;
use weir_policy::Kind;

/// How the relay of a body broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BrokenBody {
    /// The origin is to blame.
    Origin(Kind, Why),
    /// Something that is held says so: a limit of time, or a crash; the number of the hold.
    Held(usize, Kind),
    /// The client is, or has gone.
    Client,
    /// The target was removed, and its `drain_timeout` is over.
    Aborted,
}

/// Passes a response on, from its head to its end.
pub(super) async fn relay(
    ex: &Rc<Exchange>,
    mut reply: Box<OriginReply>,
    mut holds: Holds,
    close: bool,
    line: &mut Line,
) -> After {
    let session = ex.client.session();
    let close = close || !ex.is_complete() || ex.core.is_draining() || session.is_ending();
    ex.is_answered();
    // What was read with the head goes on at once.
    reply.held = Held::default();
    ex.name(&mut reply.edits);
    ex.client.send_head(&Head {
        response: reply.response(),
        edits: &reply.edits,
        add: &reply.add,
        close,
        date: ex.core.date(),
    });
    let relayed = poll_fn(|cx| poll_relay(cx, ex, &mut reply, &mut holds)).await;
    let (status, passed) = (reply.response().status(), reply.passed);
    let after = match relayed {
        Ok(()) => {
            holds.finish((status >= 500).then_some(Kind::Status5xx), Some(status));
            let complete = ex.is_complete();
            // The origin and what is held for it are free, however slowly the client takes the rest.
            reply.give_back(ex);
            match flush_quickly(ex).await {
                true => ex.client.finish(complete, !ex.request.keep_alive()),
                false => {
                    line.left();
                    ex.client.abort()
                }
            }
        }
        Err(BrokenBody::Origin(kind, why)) => {
            send_what_there_is(ex).await;
            line.failure = Some(kind);
            failure_log::broke_off(ex, &*reply.upstream, why, passed);
            holds.finish(Some(kind), None);
            ex.client.abort()
        }
        Err(BrokenBody::Held(at, kind)) => {
            send_what_there_is(ex).await;
            line.failure = Some(kind);
            failure_log::broke_off(ex, &*reply.upstream, Why::Held(kind), passed);
            holds.broken(at, kind, ex, reply);
            ex.client.abort()
        }
        Err(BrokenBody::Aborted) => {
            send_what_there_is(ex).await;
            line.give_up();
            holds.cancel(ex, reply);
            ex.client.abort()
        }
        Err(BrokenBody::Client) => {
            line.left();
            holds.cancel(ex, reply);
            ex.client.abort()
        }
    };
    // What was read ahead of the client and not taken by it was not sent.
    line.sent = passed.min(ex.client.sent());
    after
}

fn poll_relay(
    cx: &mut Context<'_>,
    ex: &Exchange,
    reply: &mut OriginReply,
    holds: &mut Holds,
) -> Poll<Result<(), BrokenBody>> {
    if reply.poll_upload(cx, ex).is_err() {
        return Poll::Ready(Err(BrokenBody::Client));
    }
    let polled = poll_body(cx, ex, reply);
    if polled.is_ready() {
        return polled;
    }
    ex.waits_for_client(ex.client.unsent() > 0);
    if ex.client.is_stalled(cx) {
        return Poll::Ready(Err(BrokenBody::Client));
    }
    if let Some((at, kind)) = holds.poll_broken(cx, &ex.core, Some(ex)) {
        return Poll::Ready(Err(BrokenBody::Held(at, kind)));
    }
    if has_gone(cx, ex) { Poll::Ready(Err(BrokenBody::Client)) } else { Poll::Pending }
}

/// Passes the body on, with its trailers if the client wants them; ready when all of it was read. What the client's
/// connection has not taken waits there.
fn poll_body(cx: &mut Context<'_>, ex: &Exchange, reply: &mut OriginReply) -> Poll<Result<(), BrokenBody>> {
    let client = |done: std::io::Result<()>| done.map_err(|_| BrokenBody::Client);
    loop {
        if reply.abort.is_set() {
            return Poll::Ready(Err(BrokenBody::Aborted));
        }
        // What counts nowhere goes on at once, to where it counts.
        let lent = if ex.client.counts() { reply.origin.lent_piece() } else { None };
        let piece = match lent {
            Some(piece) => Poll::Ready(piece),
            None => {
                let counted = reply.origin.is_counted();
                ready!(ex.client.poll_capacity(cx, reply.ahead, counted).map(client))?;
                reply.origin.release();
                reply.origin.poll_data(cx)
            }
        };
        match piece {
            Poll::Ready(Ok(Piece::Data(n))) => {
                reply.passed += n as u64;
                client(ex.client.send_data(cx, reply.origin.input(), n))?;
                reply.origin.set_deadline(reply.upstream.origin().body_timeout_ns);
            }
            Poll::Ready(Ok(Piece::End)) => {
                let named = |name: &[u8]| reply.origin.response().names(name);
                ex.client.send_end(Some(reply.origin.trailers()), named);
                return Poll::Ready(Ok(()));
            }
            Poll::Ready(Err(Broken::Rule(refusal))) => {
                return Poll::Ready(Err(BrokenBody::Origin(Kind::BadResponse, Why::Rule(refusal))));
            }
            Poll::Ready(Err(Broken::Cut)) => {
                return Poll::Ready(Err(BrokenBody::Origin(Kind::Reset, Why::BodyCut)));
            }
            Poll::Pending => {
                if ex.client.unsent() > 0 && matches!(ex.client.poll_flush(cx), Poll::Ready(Err(_))) {
                    return Poll::Ready(Err(BrokenBody::Client));
                }
                let limit_ns = reply.upstream.origin().body_timeout_ns;
                if reply.is_clients_turn() {
                    // An answer came before the request was whole: the origin may well wait for the client.
                    reply.origin.set_deadline(limit_ns);
                } else if reply.origin.is_late(cx) {
                    return Poll::Ready(Err(BrokenBody::Origin(Kind::Timeout, Why::BodyLimit(limit_ns))));
                }
                return Poll::Pending;
            }
        }
    }
}

/// Of an answer that breaks off the client gets what had come, as far as its connection takes that.
async fn send_what_there_is(ex: &Exchange) {
    poll_fn(|cx| {
        // Whether it is taken makes no difference: the connection ends.
        let _ = ex.client.poll_flush(cx);
        Poll::Ready(())
    })
    .await;
}

/// Sends what is left of an answer; `false` if the client does not take it. Nearly always one send does it.
async fn flush_quickly(ex: &Exchange) -> bool {
    let mut turn = AfterOthers::default();
    let sent = poll_fn(|cx| {
        if ex.client.unsent() == 0 {
            return Poll::Ready(Some(true));
        }
        ready!(turn.poll(&ex.core.runtime, cx));
        match ex.client.poll_flush(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done.is_ok())),
            Poll::Pending => Poll::Ready(None),
        }
    })
    .await;
    match sent {
        Some(sent) => sent,
        None => Box::pin(flush(ex)).await,
    }
}

/// Sends what the client has not taken yet; `false` if it does not.
async fn flush(ex: &Exchange) -> bool {
    let sent = poll_fn(|cx| {
        if let Poll::Ready(done) = ex.client.poll_flush(cx) {
            return Poll::Ready(done.is_ok());
        }
        ex.waits_for_client(true);
        let gone = ex.client.is_stalled(cx) || has_gone(cx, ex);
        if gone { Poll::Ready(false) } else { Poll::Pending }
    })
    .await;
    ex.waits_for_client(false);
    sent
}
