//! A tunnel after 101 or an accepted CONNECT: bytes both ways, each half closed by itself.

use crate::exchange::abort::Cut;
use crate::h1::server::Conn;
use crate::transport::wire::Wire;
use crate::upstream::OriginConn;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

/// One direction.
#[derive(Default)]
struct Half {
    /// The sender's end was read, and passed on.
    ended: bool,
    shut: bool,
}

impl Half {
    /// Passes on what there is; `true` if anything moved.
    fn poll(&mut self, cx: &mut Context<'_>, from: &mut Wire, to: &mut Wire) -> io::Result<bool> {
        let mut moved = false;
        while !self.shut {
            match to.poll_flush(cx) {
                Poll::Ready(done) => done?,
                Poll::Pending => break,
            }
            if !from.input().is_empty() {
                let n = from.input().len();
                to.push_from(cx, from, n, &[])?;
                moved = true;
                continue;
            }
            if self.ended {
                match to.socket.poll_shutdown(cx) {
                    Poll::Ready(_) => self.shut = true,
                    Poll::Pending => break,
                }
                continue;
            }
            match from.poll_fill(cx) {
                Poll::Ready(Ok(0)) => self.ended = true,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(e)) => return Err(e),
                Poll::Pending => break,
            }
        }
        Ok(moved)
    }
}

/// Runs until both halves have ended or nothing moved for so long, which are ends in order, or until one side broke or the
/// target is cut off.
pub(crate) async fn tunnel(
    conn: &Conn,
    origin: &mut OriginConn,
    idle_ns: Option<u64>,
    cut: &Cut,
) -> io::Result<()> {
    let OriginConn { wire: origin, deadline: idle, .. } = origin;
    let (mut up, mut down) = (Half::default(), Half::default());
    conn.deadline.set(None);
    idle.set(idle_ns);
    poll_fn(|cx| {
        let mut client = conn.wire.borrow_mut();
        let moved = up.poll(cx, &mut client, origin)? | down.poll(cx, origin, &mut client)?;
        if up.shut && down.shut {
            return Poll::Ready(Ok(()));
        }
        if moved {
            idle.set(idle_ns);
        }
        if cut.is_off() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if idle.ended(cx) {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    })
    .await
}
