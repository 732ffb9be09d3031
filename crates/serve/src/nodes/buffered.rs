//! `buffered(node, n)`: buffers requests and responses of up to n bytes.
//!
//! A request's body is read before the node behind runs, so that a slow client keeps no target busy; a larger one is
//! streamed, with what was read kept. weir sends 100 (Continue) itself, and does not ask the origin for it. Up to n
//! bytes of a response are read ahead of the client: if that is all of it, the origin's connection and the holds are
//! free while a slow client still reads. Draws: nothing.

use crate::exchange::Exchange;
use crate::exchange::Failure;
use crate::exchange::reply::{Answer, ReplySource};
use crate::exchange::{NodeId, RequestContext};
use crate::message::Piece;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use weir_net::io::reuse::Shared;

/// The node.
pub(crate) struct Buffered {
    /// The size up to which messages are buffered, bytes.
    pub bytes: usize,
    /// The node behind it.
    pub node: NodeId,
}

impl Buffered {
    /// Buffers the request, runs what is behind, buffers the response.
    pub async fn run(&self, ex: Shared<Exchange>, mut ctx: RequestContext) -> Answer {
        self.read(&ex).await?;
        if ex.checked.expect {
            let mut edits = ctx.edits.as_deref().cloned().unwrap_or_default();
            edits.remove.push(b"expect".to_vec());
            ctx.edits = Some(Rc::new(edits));
        }
        let mut reply = Exchange::start(&ex, ctx, self.node).await?;
        if let ReplySource::Origin(origin) = &mut reply.source {
            origin.ahead = origin.ahead.max(self.bytes);
        }
        Ok(reply)
    }

    /// Reads the body, up to the limit.
    async fn read(&self, ex: &Exchange) -> Result<(), Failure> {
        if ex.is_complete() || !ex.can_send_again() {
            return Ok(());
        }
        ex.client.expects_body();
        poll_fn(|cx| {
            ex.say_continue(cx);
            loop {
                let mut body = ex.body.borrow_mut();
                if body.complete || body.kept.len() > self.bytes {
                    return Poll::Ready(Ok(()));
                }
                match ex.poll_body(cx, &mut body) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                    Poll::Ready(Ok(Piece::End)) => return Poll::Ready(Ok(())),
                    Poll::Ready(Ok(Piece::Data(n))) => {
                        let mut input = ex.client.input();
                        body.kept.extend_from_slice(&input.bytes()[..n]);
                        input.consume(n);
                        drop(input);
                        ex.client.release();
                    }
                }
            }
        })
        .await
    }
}
