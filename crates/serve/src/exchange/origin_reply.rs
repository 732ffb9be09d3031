//! A response's head that an origin has sent, with the connection on which the rest of it comes.

use super::abort::Abort;
use super::upload::{BrokenUpload, Upload};
use super::{Exchange, Failure, OriginEnd, Upstream};
use crate::sync::buffered::BufferedBytes;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Edits, Response};
use weir_net::io::Core;

/// A response that comes from an origin.
pub(crate) struct OriginReply {
    pub upstream: Rc<dyn Upstream>,
    pub origin: OriginEnd,
    pub upload: Upload,
    /// The targets by which the request came.
    pub abort: Abort,
    /// Bytes of the body that were passed on.
    pub passed: u64,
    /// Changes of its head (`rewrite`).
    pub edits: Edits,
    /// Fields of weir's own beside those of the origin (`sticky`).
    pub add: Vec<(&'static str, Vec<u8>)>,
    /// What was read with the head, until it goes on.
    pub held: BufferedBytes,
    /// Bytes of the body that are read ahead of the client at most (`buffered`).
    pub ahead: usize,
    /// Bytes that the connection had taken when that was looked at last.
    sent: u64,
}

impl OriginReply {
    /// A request that was begun at its origin, and may come to be answered.
    pub fn new(upstream: Rc<dyn Upstream>, origin: OriginEnd, upload: Upload, abort: Abort) -> OriginReply {
        let edits = Edits::default();
        let held = BufferedBytes::default();
        OriginReply {
            upstream,
            origin,
            upload,
            abort,
            passed: 0,
            edits,
            add: Vec::new(),
            held,
            ahead: 0,
            sent: 0,
        }
    }

    /// The head.
    pub fn response(&self) -> &Response {
        self.origin.response()
    }

    /// Whether the origin was sent the whole request.
    pub fn is_sent_whole(&self) -> bool {
        self.upload.finished && !self.upload.broken && self.origin.unsent() == 0
    }

    /// Whether the origin was sent more of the request since this was asked last.
    pub fn has_sent_more(&mut self) -> bool {
        let sent = self.origin.queued() - self.origin.unsent() as u64;
        std::mem::replace(&mut self.sent, sent) != sent
    }

    /// Goes on with the request's body, if it is still under way: an origin may answer before it has come whole.
    ///
    /// # Errors
    /// When the client breaks off.
    pub fn poll_upload(&mut self, cx: &mut Context<'_>, ex: &Exchange) -> Result<(), Failure> {
        if self.upload.finished && self.origin.unsent() == 0 || self.upload.broken {
            return Ok(());
        }
        match self.upload.poll(cx, ex, &mut self.origin) {
            Poll::Ready(Err(BrokenUpload::Client(failure))) => Err(failure),
            Poll::Ready(Err(BrokenUpload::Origin)) => {
                self.upload.broken = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Nobody wants it. Its connection is kept for others if the rest of it is here already.
    pub fn discard(mut self: Box<Self>, ex: &Exchange) {
        if self.origin.skip_what_is_here() {
            self.give_back(ex);
        }
    }

    /// The exchange is over: the connection is kept for the next one, if nothing speaks against it. This and
    /// [`OriginReply::give_back_drained`] are the only ways into a pool.
    pub fn give_back(self: Box<Self>, ex: &Exchange) {
        let sent = ex.is_complete() && self.is_sent_whole();
        let OriginReply { upstream, origin, .. } = *self;
        if let Some(conn) = origin.end(sent) {
            match conn.is_bound() {
                true => ex.pinned.put(&*upstream, conn, ex.core.recent()),
                false => upstream.put(&ex.core, conn),
            }
        }
    }

    /// The same after a drain: the request was complete, and its client is not there any more.
    pub fn give_back_drained(self: Box<Self>, core: &Core) {
        let sent = self.is_sent_whole();
        let OriginReply { upstream, origin, .. } = *self;
        if let Some(conn) = origin.end(sent).filter(|conn| !conn.is_bound()) {
            upstream.put(core, conn);
        }
    }
}
