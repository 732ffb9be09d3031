//! A connection in memory: an end reads what the other has written, in pieces.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One direction.
pub type Half = Rc<RefCell<VecDeque<u8>>>;

/// One end.
pub struct Pipe {
    pub incoming: Half,
    pub outgoing: Half,
    /// The most that is read at once.
    pub most: usize,
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut incoming = self.incoming.borrow_mut();
        let n = incoming.len().min(self.most).min(buf.remaining());
        if n == 0 {
            // Its task is polled again in the next turn.
            return Poll::Pending;
        }
        let bytes: Vec<u8> = incoming.drain(..n).collect();
        buf.put_slice(&bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.outgoing.borrow_mut().extend(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
