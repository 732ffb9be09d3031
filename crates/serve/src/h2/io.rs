//! A connection's bytes for the `h2` crate: its reads come from the wire, through the counter of frames; its writes
//! go to the wire, so that many frames leave in one send.

use super::frames::Frames;
use crate::sync::buffered::BufferedBytes;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use weir_net::io::Core;
use weir_net::transport::wire::Wire;

/// The limit of frames' bytes that wait for the socket.
const AHEAD: usize = 32 * 1024;

/// A connection's wire with its counter, which the connection's owner sees as well.
pub(crate) struct Shared {
    core: Rc<Core>,
    pub wire: RefCell<Wire>,
    pub frames: RefCell<Frames>,
    /// Whether bytes have arrived since this was reset.
    pub heard: Cell<bool>,
    /// What the socket has not taken.
    held: RefCell<BufferedBytes>,
}

/// The same for the `h2` crate.
pub(crate) struct Io(pub Rc<Shared>);

impl Shared {
    /// A connection on which no frame was read yet.
    pub fn new(core: &Rc<Core>, wire: Wire, frames: Frames) -> Rc<Shared> {
        Rc::new(Shared {
            core: core.clone(),
            wire: RefCell::new(wire),
            frames: RefCell::new(frames),
            heard: Cell::new(false),
            held: RefCell::default(),
        })
    }

    /// Whether the other side has sent too many frames without progress.
    pub fn is_flooded(&self) -> bool {
        self.frames.borrow().is_over()
    }
}

impl Shared {
    /// Sends an origin GOAWAY with ENHANCE_YOUR_CALM, which the `h2` crate does not in this role. It is not sent within
    /// a frame that was sent in part, and an origin that sends on may lose it to the reset that follows.
    pub fn send_goaway(&self, cx: &mut Context<'_>) {
        const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xb];
        let mut wire = self.wire.borrow_mut();
        if self.frames.borrow().is_between_frames() {
            wire.queue(&GOAWAY);
            // An origin that does not take it sees the end of the connection.
            let _ = wire.poll_flush(cx);
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Shared { core, wire, frames, heard, .. } = &*self.0;
        let mut wire = wire.borrow_mut();
        // The task that drives the connection ends it.
        if frames.borrow().is_over() {
            return Poll::Pending;
        }
        if wire.input().is_empty() && ready!(wire.poll_fill(cx))? == 0 {
            return Poll::Ready(Ok(()));
        }
        heard.set(true);
        let n = into.remaining().min(wire.input().len());
        let bytes = &wire.input()[..n];
        frames.borrow_mut().count_received(bytes, core.recent());
        into.put_slice(bytes);
        wire.consume(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut wire = self.0.wire.borrow_mut();
        if wire.unsent() >= AHEAD {
            ready!(self.0.flush(&mut wire, cx))?;
        }
        self.0.frames.borrow_mut().count_sent(bytes);
        wire.queue(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.flush(&mut self.0.wire.borrow_mut(), cx)
    }

    /// The connection's owner closes it, with care.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl Shared {
    fn flush(&self, wire: &mut Wire, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let before = wire.taken();
        let flushed = wire.poll_flush(cx);
        let taken = usize::try_from(wire.taken() - before).unwrap_or(usize::MAX);
        self.frames.borrow_mut().count_taken(taken);
        self.held.borrow_mut().set(wire.kept());
        flushed
    }
}
