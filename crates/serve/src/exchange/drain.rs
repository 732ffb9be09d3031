//! Reads a response that is no longer wanted to its end, while the holds that outlive the client remain
//! (`on_cancel`).
//!
//! It ends with the response, with a time limit or a crash inside the holds, after 30 s without a byte, or after five
//! minutes (`docs/spec/serving.md#on-cancel`). Before the head, the attempt enforces the 30 s and the `queue` the
//! five minutes.

use super::failure::FailureCause;
use super::hold::Holds;
use super::origin_reply::{OriginReply, OriginReplyBox};
use crate::message::Piece;
use crate::sync::buffered::BufferedBytes;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_net::io::Core;
use weir_net::io::timers::Sleep;
use weir_plan::fixed::{ON_CANCEL_DRAIN_NS, ON_CANCEL_SILENCE_NS};
use weir_policy::{Kind, Outcome};

/// Drains a response, without keeping the client's connection. `in_all`: the rest of the five minutes, if they have
/// begun.
pub(crate) async fn drain(
    core: Rc<Core>,
    mut reply: OriginReplyBox,
    mut holds: Holds,
    in_all: Option<Sleep>,
) {
    let _background = core.begin_background();
    reply.held = BufferedBytes::default();
    reply.origin.set_deadline(Some(ON_CANCEL_SILENCE_NS));
    let mut in_all = in_all.unwrap_or_else(|| core.timers.after(ON_CANCEL_DRAIN_NS));
    let ended = poll_fn(|cx| {
        if let Poll::Ready(ended) = poll(cx, &mut reply) {
            return Poll::Ready(Some(ended));
        }
        if let Some((_, kind)) = holds.poll_broken(cx, &core, None) {
            return Poll::Ready(Some(Some(kind)));
        }
        if reply.abort.is_set() || in_all.poll_ended(cx).is_ready() {
            return Poll::Ready(None);
        }
        Poll::Pending
    })
    .await;
    let Some(outcome) = ended else { return };
    let status = reply.response().status();
    match outcome {
        None => {
            holds.finish((status >= 500).then_some(Kind::Status5xx), Some(status));
            reply.into_inner().give_back_drained(&core);
        }
        failed => {
            holds.finish(failed, None);
            if failed == Some(Kind::Timeout) {
                core.drop_late(reply);
            }
        }
    }
}

/// Reads and discards; ready at the end.
fn poll(cx: &mut Context<'_>, reply: &mut OriginReply) -> Poll<Outcome> {
    loop {
        match reply.origin.poll_data(cx) {
            Poll::Ready(Ok(Piece::Data(n))) => {
                reply.origin.input().consume(n);
                reply.origin.release();
                reply.origin.set_deadline(Some(ON_CANCEL_SILENCE_NS));
            }
            Poll::Ready(Ok(Piece::End)) => return Poll::Ready(None),
            Poll::Ready(Err(broken)) => return Poll::Ready(Some(FailureCause::from_body_error(broken).0)),
            Poll::Pending if reply.origin.is_late(cx) => return Poll::Ready(Some(Kind::Timeout)),
            Poll::Pending => return Poll::Pending,
        }
    }
}
