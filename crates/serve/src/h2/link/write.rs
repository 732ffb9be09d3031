//! What streams have left to the queue of the socket, and from there into one write. Large pieces of bodies do not pass
//! through the queue: they leave from where they were read.

use super::Link;
use super::slot::Slot;
use super::slots::Slots;
use std::io;
use std::task::{Context, Poll, ready};
use weir_http1::Trailers;
use weir_http2::{Connection, Field, Turn};
use weir_net::io::runtime::AfterOthers;
use weir_net::transport::wire::{PAYLOADS, Payload, Wire};
use weir_plan::fixed::H2_SEND_BUFFER_BYTES;

/// The largest piece of a body that leaves in one frame: what most peers take.
pub(super) const FRAME: usize = 16 * 1024;

/// The smallest piece that is not copied: a shorter one costs less in the queue than in the system's list.
const LARGE: usize = 4 * 1024;

/// Pieces of bodies that leave from where they are.
#[derive(Default)]
struct Batch {
    pieces: [Piece; PAYLOADS],
    count: usize,
    bytes: usize,
}

/// A piece of a stream's body.
#[derive(Clone, Copy, Default)]
struct Piece {
    /// Queued bytes before it.
    behind: usize,
    /// The place of its stream.
    place: usize,
    /// Where it lies in the bytes that wait there.
    from: usize,
    length: usize,
    /// Whether the stream has ended with it, and whether nothing waits behind it.
    is_end: bool,
    is_last: bool,
}

impl Batch {
    /// Whether it takes another piece, behind this number of queued bytes: what the socket does not take is queued.
    fn has_room(&self, queued: usize) -> bool {
        self.count < PAYLOADS && queued + self.bytes < H2_SEND_BUFFER_BYTES
    }

    /// Takes a turn of a stream. Its bytes stay there until they were written.
    fn push(&mut self, turn: &Turn, place: usize, slot: &mut Slot, behind: usize) {
        let (from, length) = (slot.leaving, turn.length);
        slot.leaving += length;
        let is_last = turn.pending == 0;
        self.pieces[self.count] = Piece { behind, place, from, length, is_end: turn.is_end, is_last };
        self.count += 1;
        self.bytes += length;
    }

    /// Writes the queue with the pieces between.
    fn poll_flush(&self, cx: &mut Context<'_>, slots: &Slots, wire: &mut Wire) -> Poll<io::Result<()>> {
        let mut payloads = [Payload { behind: 0, bytes: &[] }; PAYLOADS];
        for (payload, piece) in payloads.iter_mut().zip(&self.pieces[..self.count]) {
            let bytes = slots.get(piece.place).map_or(&[][..], |slot| slot.out.bytes());
            *payload = Payload { behind: piece.behind, bytes: &bytes[piece.from..piece.from + piece.length] };
        }
        wire.poll_flush_around(cx, &payloads[..self.count])
    }
}

impl Link {
    /// Sends what is queued, once the tasks that are ready have run; ready when the socket has taken everything.
    pub(super) fn poll_write(&self, cx: &mut Context<'_>, turn: &mut AfterOthers) -> Poll<io::Result<()>> {
        while self.has_output() {
            ready!(turn.poll(&self.core.runtime, cx));
            let is_plain = self.wire.borrow().socket.is_plain();
            let is_writable = self.wire.borrow().socket.poll_writable(cx).is_ready();
            let mut batch = Batch::default();
            if self.wire.borrow().unsent() < H2_SEND_BUFFER_BYTES {
                self.codec.borrow_mut().write(self.core.recent(), self.wire.borrow_mut().queue_to());
                match is_plain {
                    true if is_writable => self.collect(&mut batch),
                    // Bodies stay with their streams until the socket takes something.
                    true => {}
                    false => self.gather(),
                }
            }
            if self.wire.borrow().unsent() > 0 {
                ready!(self.poll_flush(cx, &batch))?;
            } else if is_writable {
                break;
            } else {
                return Poll::Pending;
            }
        }
        *turn = AfterOthers::default();
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&self, cx: &mut Context<'_>, batch: &Batch) -> Poll<io::Result<()>> {
        let (mut slots, mut wire) = (self.slots.borrow_mut(), self.wire.borrow_mut());
        let flushed = match batch.count {
            0 => wire.poll_flush(cx),
            _ => batch.poll_flush(cx, &slots, &mut wire),
        };
        self.held.borrow_mut().set(wire.kept());
        drop(wire);
        for piece in &batch.pieces[..batch.count] {
            if let Some(slot) = slots.get_mut(piece.place) {
                slot.leaving -= piece.length;
                self.pass(slot, piece.length, piece.is_end, piece.is_last);
            }
        }
        flushed
    }

    /// Gathers the bodies of one write, by the order of the codec; large pieces stay where they are until it is made.
    fn collect(&self, batch: &mut Batch) {
        if self.end.get().is_some() {
            return;
        }
        let (mut codec, mut slots) = (self.codec.borrow_mut(), self.slots.borrow_mut());
        let mut wire = self.wire.borrow_mut();
        let now_ns = self.core.recent();
        while batch.has_room(wire.unsent())
            && let Some(turn) = codec.next_data(now_ns, FRAME, wire.queue_to())
        {
            let behind = wire.queued_bytes();
            let place = slots.place(turn.stream);
            match place.and_then(|place| Some((place, slots.get_mut(place)?))) {
                Some((place, slot)) if turn.length >= LARGE || slot.leaving > 0 => {
                    batch.push(&turn, place, slot, behind);
                }
                _ => self.put(turn, &mut slots, &mut wire),
            }
            if turn.pending == 0 {
                self.put_trailers(turn.stream, &mut codec, &mut slots, &mut wire);
            }
        }
    }

    /// Moves bodies into the queue; large ones stay for the driver, which sends them from where they are.
    pub(super) fn forward(&self, waiting: usize) {
        if waiting >= FRAME && self.wire.borrow().socket.is_plain() {
            self.wake();
        } else {
            self.gather();
        }
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
        self.pass(slot, turn.length, turn.is_end, turn.pending == 0);
    }

    /// Notes that the first bytes of a stream's body have left it. `is_last`: nothing waits behind them.
    fn pass(&self, slot: &mut Slot, length: usize, is_end: bool, is_last: bool) {
        slot.out.consume(length);
        slot.sent += length as u64;
        slot.owes_end &= !is_end;
        slot.count();
        if is_last {
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
