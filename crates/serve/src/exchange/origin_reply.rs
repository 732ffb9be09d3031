//! The head of an origin's response, with the connection on which the rest arrives.

use super::abort::Abort;
use super::upload::{BrokenUpload, Upload};
use super::{Exchange, Failure, OriginEnd, Upstream};
use crate::sync::buffered::BufferedBytes;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Edits, Response};
use weir_net::io::Core;
use weir_net::io::reuse::ReusedBox;

/// A response of an origin, in memory that is used again.
pub(crate) type OriginReplyBox = ReusedBox<OriginReply>;

/// A response of an origin.
pub(crate) struct OriginReply {
    pub upstream: Rc<dyn Upstream>,
    pub origin: OriginEnd,
    pub upload: Upload,
    /// The targets on the request's path.
    pub abort: Abort,
    /// Bytes of the body that were forwarded, and those of the last piece.
    pub passed: u64,
    pub last_piece: usize,
    /// Changes of its head (`rewrite`).
    pub edits: Edits,
    /// Fields that weir adds to those of the origin (`sticky`).
    pub add: Vec<(&'static str, Vec<u8>)>,
    /// The bytes that were read with the head, counted until they are forwarded.
    pub held: BufferedBytes,
    /// The limit of body bytes that are read ahead of the client (`buffered`).
    pub ahead: usize,
    /// Bytes that the connection had taken at the last check.
    sent: u64,
}

impl OriginReply {
    /// A request that was begun at its origin.
    pub fn new(upstream: Rc<dyn Upstream>, origin: OriginEnd, upload: Upload, abort: Abort) -> OriginReply {
        let edits = Edits::default();
        let held = BufferedBytes::default();
        OriginReply {
            upstream,
            origin,
            upload,
            abort,
            passed: 0,
            last_piece: 0,
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

    /// Whether the whole request was sent to the origin.
    pub fn is_sent_whole(&self) -> bool {
        self.upload.finished && !self.upload.broken && self.origin.unsent() == 0
    }

    /// Whether more of the request was sent since the last call.
    pub fn has_sent_more(&mut self) -> bool {
        let sent = self.origin.queued() - self.origin.unsent() as u64;
        std::mem::replace(&mut self.sent, sent) != sent
    }

    /// Continues to send the request's body: an origin may answer before it has received all of it.
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

    /// Discards the response. Its connection is kept if the rest has already arrived.
    pub fn discard(mut self, ex: &Exchange) {
        if self.origin.skip_what_is_here() {
            self.give_back(ex);
        }
    }

    /// Ends the exchange and keeps the connection if it can be reused. This and [`OriginReply::give_back_drained`]
    /// are the only ways into a pool.
    pub fn give_back(self, ex: &Exchange) {
        let sent = ex.is_complete() && self.is_sent_whole();
        let OriginReply { upstream, origin, .. } = self;
        if let Some(conn) = origin.end(&ex.core, sent) {
            match conn.is_bound() {
                true => ex.pinned.put(&*upstream, conn, ex.core.recent()),
                false => upstream.put(&ex.core, conn),
            }
        }
    }

    /// The same after a drain: the request was complete, and its client is gone.
    pub fn give_back_drained(self, core: &Core) {
        let sent = self.is_sent_whole();
        let OriginReply { upstream, origin, .. } = self;
        if let Some(conn) = origin.end(core, sent).filter(|conn| !conn.is_bound()) {
            upstream.put(core, conn);
        }
    }
}
