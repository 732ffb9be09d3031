//! A tunnel after 101 or an accepted CONNECT: bytes both ways, each half closed by itself.

use super::origin_reply::OriginReply;
use super::{ClientEnd, Exchange, OriginEnd};
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

/// How an unbroken tunnel ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Both sides have ended their streams.
    InOrder,
    /// Nothing moved for `tunnel_idle`.
    Idle,
}

/// One direction.
#[derive(Default)]
struct Half {
    /// The sender's end of stream was read.
    ended: bool,
    shut: bool,
}

impl Half {
    /// Forwards bytes from the client to the origin; returns whether any moved.
    fn poll_up(
        &mut self,
        cx: &mut Context<'_>,
        client: &ClientEnd,
        origin: &mut OriginEnd,
    ) -> io::Result<bool> {
        let mut moved = false;
        while !self.shut {
            match origin.poll_flush(cx) {
                Poll::Ready(done) => done?,
                Poll::Pending => break,
            }
            if self.ended {
                self.shut = origin.poll_shutdown(cx).is_ready();
                break;
            }
            match client.poll_tunnel(cx) {
                Poll::Ready(Ok(true)) => {
                    let mut input = client.input();
                    let n = input.bytes().len();
                    origin.send_tunnel(cx, &mut input, n)?;
                    moved = true;
                }
                Poll::Ready(Ok(false)) => self.ended = true,
                Poll::Ready(Err(e)) => return Err(e),
                Poll::Pending => break,
            }
        }
        Ok(moved)
    }

    /// Forwards bytes from the origin to the client; returns whether any moved.
    fn poll_down(
        &mut self,
        cx: &mut Context<'_>,
        client: &ClientEnd,
        origin: &mut OriginEnd,
    ) -> io::Result<bool> {
        let mut moved = false;
        while !self.shut {
            match client.poll_flush(cx) {
                Poll::Ready(done) => done?,
                Poll::Pending => break,
            }
            if self.ended {
                self.shut = client.poll_shutdown(cx).is_ready();
                break;
            }
            // What was read with the head is already counted.
            let counted = origin.is_counted() || !origin.input().is_empty();
            match client.poll_capacity(cx, 0, counted) {
                Poll::Ready(done) => done?,
                Poll::Pending => break,
            }
            match origin.poll_tunnel(cx) {
                Poll::Ready(Ok(true)) => {
                    let n = origin.input().bytes().len();
                    client.send_tunnel(cx, origin.input(), n)?;
                    moved = true;
                }
                Poll::Ready(Ok(false)) => self.ended = true,
                Poll::Ready(Err(e)) => return Err(e),
                Poll::Pending => break,
            }
        }
        Ok(moved)
    }
}

/// Runs until both halves have ended or nothing moved for `tunnel_idle` (both are ends in order), or until one side
/// broke or the target's `drain_timeout` has passed.
pub(super) async fn tunnel(ex: &Exchange, reply: &mut OriginReply) -> io::Result<End> {
    let OriginReply { origin, abort, .. } = reply;
    abort.leave_graph();
    let idle_ns = ex.listener().http.tunnel_idle_ns;
    let (mut up, mut down) = (Half::default(), Half::default());
    ex.client.session().deadline.set(None);
    origin.set_deadline(idle_ns);
    poll_fn(|cx| {
        let moved = up.poll_up(cx, &ex.client, origin)? | down.poll_down(cx, &ex.client, origin)?;
        if up.shut && down.shut {
            return Poll::Ready(Ok(End::InOrder));
        }
        if moved {
            origin.set_deadline(idle_ns);
        }
        if abort.is_set() || ex.is_cut() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if origin.is_late(cx) { Poll::Ready(Ok(End::Idle)) } else { Poll::Pending }
    })
    .await
}
