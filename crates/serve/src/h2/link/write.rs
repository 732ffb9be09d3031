//! What streams have left to the queue of the socket, and from there into one write.

use super::Link;
use super::slots::Slots;
use std::io;
use std::task::{Context, Poll, ready};
use weir_http1::Trailers;
use weir_http2::{Connection, Field, Turn};
use weir_net::io::runtime::AfterOthers;
use weir_net::transport::wire::Wire;
use weir_plan::fixed::H2_SEND_BUFFER_BYTES;

/// The largest piece of a body that leaves in one frame: what most peers take.
pub(super) const FRAME: usize = 16 * 1024;

impl Link {
    /// Sends what is queued, once the tasks that are ready have run; ready when the socket has taken everything.
    pub(super) fn poll_write(&self, cx: &mut Context<'_>, turn: &mut AfterOthers) -> Poll<io::Result<()>> {
        while self.has_output() {
            ready!(turn.poll(&self.core.runtime, cx));
            if self.wire.borrow().unsent() < H2_SEND_BUFFER_BYTES {
                self.codec.borrow_mut().write(self.core.recent(), self.wire.borrow_mut().queue_to());
                self.gather();
            }
            let mut wire = self.wire.borrow_mut();
            if wire.unsent() == 0 {
                break;
            }
            let flushed = wire.poll_flush(cx);
            self.held.borrow_mut().set(wire.kept());
            ready!(flushed)?;
        }
        *turn = AfterOthers::default();
        Poll::Ready(Ok(()))
    }

    fn has_output(&self) -> bool {
        let codec = self.codec.borrow();
        self.wire.borrow().unsent() > 0 || codec.has_output() || codec.has_data()
    }

    /// Moves bodies into the queue, by the order of the codec, until that is full.
    pub(super) fn gather(&self) {
        if self.end.get().is_some() {
            return;
        }
        let (mut codec, mut slots) = (self.codec.borrow_mut(), self.slots.borrow_mut());
        let mut wire = self.wire.borrow_mut();
        let now_ns = self.core.recent();
        while wire.unsent() < H2_SEND_BUFFER_BYTES
            && let Some(turn) = codec.next_data(now_ns, FRAME, wire.queue_to())
        {
            self.put(turn, &mut slots, &mut wire);
            if turn.pending == 0 {
                self.put_trailers(turn.stream, &mut codec, &mut slots, &mut wire);
            }
        }
        if wire.unsent() > 0 {
            self.wake();
        }
    }

    /// Puts the payload of a frame behind its head.
    fn put(&self, turn: Turn, slots: &mut Slots, wire: &mut Wire) {
        let Some(slot) = slots.find(turn.stream) else { return };
        debug_assert!(slot.out.bytes().len() >= turn.length, "the codec knows what waits");
        wire.queue_to().extend_from_slice(&slot.out.bytes()[..turn.length]);
        slot.out.consume(turn.length);
        slot.sent += turn.length as u64;
        slot.owes_end &= !turn.is_end;
        slot.count();
        if turn.pending == 0 {
            slot.writer.wake(&self.core.runtime);
        }
    }

    /// Sends the trailers of a stream whose body was sent.
    pub(super) fn put_trailers(
        &self,
        stream: u32,
        codec: &mut Connection,
        slots: &mut Slots,
        wire: &mut Wire,
    ) {
        let Some(slot) = slots.find(stream) else { return };
        let Some(last) = slot.last.take() else { return };
        slot.owes_end = false;
        // A stream that is over takes nothing more.
        let _ = codec.send_trailers(self.core.recent(), stream, fields(&last), wire.queue_to());
    }
}

fn fields(trailers: &Trailers) -> impl Iterator<Item = Field<'_>> {
    let sensitive = trailers.sensitive_names();
    trailers.fields().map(move |(name, value)| Field { name, value, is_sensitive: sensitive.has(name) })
}
