//! A response that nobody wants any more is read to its end, while what goes on without a client is held (`on_cancel`).
//!
//! It ends with the response, with a limit of time or a crash inside of what is held, after 30 s without a byte, or after
//! five minutes (`serving.md` §2). Before its head the attempt itself sees to the 30 s, and the `queue` to the five minutes.

use crate::control::event_loop::Loop;
use crate::exchange::hold::Holds;
use crate::exchange::origin_reply::OriginReply;
use crate::io::timers::Sleep;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::Piece;
use weir_policy::{Kind, Outcome};
use weir_topology::plan::fixed::{ON_CANCEL_DRAIN_NS, ON_CANCEL_SILENCE_NS};

/// Drains. Nothing here keeps the client's connection. `in_all`: what is left of the five minutes, if they have begun.
pub(crate) async fn drain(
    lp: Rc<Loop>,
    mut reply: Box<OriginReply>,
    mut holds: Holds,
    in_all: Option<Sleep>,
) {
    reply.conn.deadline.set(Some(ON_CANCEL_SILENCE_NS));
    let mut in_all = in_all.unwrap_or_else(|| lp.timers.after(ON_CANCEL_DRAIN_NS));
    let ended = poll_fn(|cx| {
        if let Poll::Ready(ended) = poll(cx, &mut reply) {
            return Poll::Ready(Some(ended));
        }
        if let Some((_, kind)) = holds.poll_broken(cx, &lp, None) {
            return Poll::Ready(Some(Some(kind)));
        }
        if reply.cut.is_off() {
            return Poll::Ready(None);
        }
        if in_all.poll_ended(cx).is_ready() { Poll::Ready(None) } else { Poll::Pending }
    })
    .await;
    let Some(outcome) = ended else { return };
    let status = reply.response.status();
    match outcome {
        None => {
            holds.finish((status >= 500).then_some(Kind::Status5xx), Some(status));
            reply.give_back_drained(&lp);
        }
        failed => holds.finish(failed, None),
    }
}

/// Reads and throws away; ready at the end.
fn poll(cx: &mut Context<'_>, reply: &mut OriginReply) -> Poll<Outcome> {
    while !reply.ended {
        let mut at = 0;
        match reply.decoder.next(reply.conn.wire.input(), &mut at) {
            Err(_) => return Poll::Ready(Some(Kind::BadResponse)),
            Ok(Piece::Data(_, to)) => {
                reply.conn.wire.consume(to);
                reply.conn.deadline.set(Some(ON_CANCEL_SILENCE_NS));
                continue;
            }
            Ok(Piece::End) => {
                reply.conn.wire.consume(at);
                reply.ended = true;
                break;
            }
            Ok(Piece::More) => reply.conn.wire.consume(at),
        }
        match reply.conn.wire.poll_fill(cx) {
            Poll::Ready(Ok(n)) if n > 0 => {}
            Poll::Ready(end) if end.is_ok() && reply.decoder.eof().is_ok() => reply.ended = true,
            Poll::Ready(_) => return Poll::Ready(Some(Kind::Reset)),
            Poll::Pending if reply.conn.deadline.ended(cx) => return Poll::Ready(Some(Kind::Timeout)),
            Poll::Pending => return Poll::Pending,
        }
    }
    Poll::Ready(None)
}
