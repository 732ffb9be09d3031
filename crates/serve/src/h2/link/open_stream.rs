//! A stream as its task sees it: what it reads comes from its slot, what it writes goes into the queue of the socket, or
//! waits in the slot.

use super::Link;
use super::slot::{AnswerHead, Fate, Slot};
use super::write::FRAME;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{RequestInfo, Trailers};
use weir_http2::{ErrorCode, Rendered, RequestLine};
use weir_net::io::buffers::Input;

/// A stream that is in use. When the last one of it is dropped the codec has finished with it: what is not over is
/// cancelled.
pub(crate) struct OpenStream {
    link: Rc<Link>,
    id: u32,
    place: usize,
}

impl Link {
    /// A stream that the peer has just opened.
    pub fn accept(self: &Rc<Self>, id: u32) -> OpenStream {
        let place = self.slots.borrow_mut().insert(id);
        OpenStream { link: self.clone(), id, place }
    }

    /// Opens a stream with a request that was rendered; `None`: no stream is to be had now.
    pub fn request(
        self: &Rc<Self>,
        line: &RequestLine<'_>,
        rendered: &Rendered<'_>,
        asked: RequestInfo,
        is_end: bool,
    ) -> Option<OpenStream> {
        if self.end.get().is_some() {
            return None;
        }
        let sent = self.codec.borrow_mut().send_request(
            self.core.recent(),
            line,
            rendered.fields(),
            is_end,
            self.wire.borrow_mut().queue_to(),
        );
        let stream = self.accept(sent.ok()?);
        stream.change(|slot| (slot.asked, slot.is_finished) = (asked, is_end));
        self.wake();
        Some(stream)
    }

    /// Puts a head of an answer to its stream. `read` reads it by what was asked.
    pub fn put_head(&self, stream: u32, read: impl FnOnce(RequestInfo) -> AnswerHead) {
        self.has_answered.set(true);
        if let Some(slot) = self.slots.borrow_mut().find(stream) {
            let head = read(slot.asked);
            slot.heads.push(head);
            slot.reader.wake(&self.core.runtime);
        }
    }

    /// Notes that nothing follows on a stream.
    pub fn end_body(&self, stream: u32) {
        if let Some(slot) = self.slots.borrow_mut().find(stream) {
            slot.has_ended = true;
        }
    }
}

fn broken() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl OpenStream {
    /// Looks at its slot; after the end of the connection as well.
    fn look<T: Default>(&self, look: impl FnOnce(&Slot) -> T) -> T {
        self.link.slots.borrow().get(self.place).map(look).unwrap_or_default()
    }

    fn change<T: Default>(&self, change: impl FnOnce(&mut Slot) -> T) -> T {
        self.link.slots.borrow_mut().get_mut(self.place).map(change).unwrap_or_default()
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Why it is over, if it is before its end.
    pub fn fate(&self) -> Option<Fate> {
        self.look(|slot| slot.fate)
    }

    /// Whether the peer has sent everything.
    pub fn has_ended(&self) -> bool {
        self.look(|slot| slot.has_ended)
    }

    /// Wakes the task when more has come.
    pub fn await_input(&self, cx: &Context<'_>) {
        self.look(|slot| slot.reader.set(&self.link.core.runtime, cx));
    }

    /// Wakes the task when there is room, or the stream is over.
    pub fn await_room(&self, cx: &Context<'_>) {
        self.look(|slot| slot.writer.set(&self.link.core.runtime, cx));
    }

    /// Takes the next head of its answer.
    pub fn take_head(&self) -> Option<AnswerHead> {
        self.change(|slot| (!slot.heads.is_empty()).then(|| slot.heads.remove(0)))
    }

    /// Takes the bytes of the body that have come; none before the heads were taken.
    pub fn take_arrived(&self) -> Input {
        self.change(|slot| std::mem::take(&mut slot.arrived))
    }

    /// Whether the peer has sent everything and all bytes of it were taken.
    pub fn is_drained(&self) -> bool {
        self.look(|slot| slot.has_ended && slot.arrived.is_empty())
    }

    /// Takes its trailers, once it has ended.
    pub fn take_trailers(&self) -> Option<Box<Trailers>> {
        self.change(|slot| slot.trailers.take())
    }

    /// Bytes of the body were passed on: the peer may send as many more.
    pub fn release(&self, bytes: usize) {
        let mut codec = self.link.codec.borrow_mut();
        codec.release(self.id, bytes);
        if codec.has_output() {
            self.link.wake();
        }
    }

    /// Sends the head of an answer that was rendered. One that is gone is noticed when more is read or written.
    pub fn answer(&self, status: u16, rendered: &Rendered<'_>, is_end: bool) {
        let Link { codec, wire, core, end, .. } = &*self.link;
        if end.get().is_some() {
            return;
        }
        let sent = codec.borrow_mut().send_answer(
            core.recent(),
            self.id,
            status,
            rendered.fields(),
            is_end,
            wire.borrow_mut().queue_to(),
        );
        if sent.is_ok() {
            self.change(|slot| slot.is_finished |= is_end);
            self.link.wake();
        }
    }

    /// Applies the `priority` field of its answer.
    pub fn change_priority(&self, field: &[u8]) {
        self.link.codec.borrow_mut().change_priority(self.id, field);
    }

    /// Queues bytes of the body. They leave with the next flush, or once there are enough for a frame.
    pub fn queue(&self, bytes: &[u8]) {
        self.change(|slot| {
            if slot.fate.is_none() {
                slot.out.append(&self.link.core.buffers, bytes);
            }
        });
        self.set_pending();
    }

    /// The same for the first `n` bytes of another connection's input.
    ///
    /// # Errors
    /// The stream is over.
    pub fn push(&self, from: &mut Input, n: usize) -> io::Result<()> {
        let is_over = self.change(|slot| {
            if slot.fate.is_some() {
                return true;
            }
            let is_whole = n == from.bytes().len() && n >= FRAME;
            if is_whole && slot.out.is_empty() {
                slot.out = std::mem::take(from);
            } else {
                slot.out.append(&self.link.core.buffers, &from.bytes()[..n]);
                from.consume(n);
            }
            false
        });
        if is_over {
            return Err(broken());
        }
        self.set_pending();
        let waiting = self.unsent();
        if waiting >= FRAME {
            self.link.forward(waiting);
        }
        Ok(())
    }

    /// Tells the codec what waits.
    fn set_pending(&self) {
        let (pending, is_end) = self.change(|slot| {
            slot.count();
            (slot.out.bytes().len() as u64, slot.is_finished && slot.last.is_none())
        });
        if pending > 0 {
            self.link.slots.borrow_mut().may_hold = true;
        }
        self.link.codec.borrow_mut().set_pending(self.id, pending, is_end);
    }

    /// Queues the end, with trailers if there are any.
    pub fn finish(&self, trailers: Option<Trailers>) {
        let is_first = self.change(|slot| {
            let is_first = !slot.is_finished && slot.fate.is_none();
            if is_first {
                (slot.is_finished, slot.owes_end) = (true, true);
                slot.last = trailers.map(Box::new);
            }
            is_first
        });
        if !is_first {
            return;
        }
        self.set_pending();
        if self.look(|slot| slot.out.is_empty() && slot.last.is_some()) {
            let Link { codec, slots, wire, .. } = &*self.link;
            let (mut codec, mut slots) = (codec.borrow_mut(), slots.borrow_mut());
            self.link.put_trailers(self.id, &mut codec, &mut slots, &mut wire.borrow_mut());
        }
        self.link.forward(self.unsent());
    }

    /// Sends what there is room for; ready when that was everything, its end as well.
    pub fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let waiting = self.unsent();
        if waiting > 0 {
            self.link.forward(waiting);
        }
        if self.fate().is_some() {
            return Poll::Ready(Err(broken()));
        }
        if self.unsent() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.await_room(cx);
        Poll::Pending
    }

    /// Bytes that have no room; the end counts as one, since a stream that is dropped before it is cut off.
    pub fn unsent(&self) -> usize {
        self.look(|slot| slot.out.bytes().len() + usize::from(slot.owes_end))
    }

    /// Bytes of the body that had room.
    pub fn sent(&self) -> u64 {
        self.look(|slot| slot.sent)
    }

    /// Breaks it off, behind what was sent.
    pub fn reset(&self, code: ErrorCode) {
        self.link.codec.borrow_mut().reset(self.link.core.recent(), self.id, code);
        self.change(|slot| slot.end(Fate::Reset(code)));
        self.link.wake();
    }
}

impl Clone for OpenStream {
    fn clone(&self) -> OpenStream {
        self.change(|slot| slot.users += 1);
        OpenStream { link: self.link.clone(), ..*self }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let is_last = self.change(|slot| {
            slot.users -= 1;
            slot.users == 0
        });
        if !is_last {
            return;
        }
        let Link { codec, slots, core, .. } = &*self.link;
        let removed = slots.borrow_mut().remove(self.place);
        drop(removed);
        codec.borrow_mut().finish(core.recent(), self.id);
        self.link.wake();
    }
}
