//! Bytes of the socket to events of streams.

use super::Link;
use super::parser::Parser;
use super::slot::Fate;
use std::task::{Context, Poll, ready};
use weir_http2::{Event, Head};

/// Reads of a turn, each of at most [`weir_net::io::buffers::READ`] bytes: a peer that sends faster than weir reads holds
/// up no other connection.
const READS: u32 = 4;

impl Link {
    /// Reads what has come, in turns; ready when the peer has gone.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, take: &mut impl FnMut(Event, &Head)) -> Poll<()> {
        self.shrink();
        self.read_input(take);
        for _ in 0..READS {
            let filled = self.wire.borrow_mut().poll_fill(cx);
            match ready!(filled) {
                Ok(0) | Err(_) => return Poll::Ready(()),
                Ok(_) => {
                    self.core.now();
                    self.heard.set(true);
                }
            }
            self.read_input(take);
        }
        self.wake();
        Poll::Pending
    }

    /// Gives the large buffers of bytes back that no stream has taken since the last read.
    fn shrink(&self) {
        let mut slots = self.slots.borrow_mut();
        if std::mem::take(&mut slots.may_hold) {
            for slot in slots.iter_mut() {
                slot.arrived.shrink();
                slot.out.shrink();
            }
        }
    }

    /// Reads what the wire holds: all of it, since the codec keeps what is incomplete.
    fn read_input(&self, take: &mut impl FnMut(Event, &Head)) {
        let input = std::mem::take(self.wire.borrow_mut().input_mut());
        if input.is_empty() {
            return;
        }
        let mut parser = self.core.spares.take::<Parser>();
        let mut rest = input.bytes();
        loop {
            let parser = &mut *parser;
            let mut codec = self.codec.borrow_mut();
            // What takes an event may read the clock, and tells the codec of that time.
            let received = codec.receive(self.core.recent(), rest, &mut parser.head, &mut parser.scratch);
            drop(codec);
            let Some(event) = received.event else { break };
            match event {
                Event::Data { stream, range, is_end } => self.take_data(stream, &rest[range], is_end),
                event => {
                    self.note(&event, &parser.head);
                    take(event, &parser.head);
                }
            }
            rest = &rest[received.used..];
        }
        self.core.spares.keep(parser);
    }

    fn take_data(&self, stream: u32, bytes: &[u8], is_end: bool) {
        self.has_answered.set(true);
        let mut slots = self.slots.borrow_mut();
        slots.may_hold = true;
        let Some(slot) = slots.find(stream) else { return };
        slot.arrived.append(&self.core.buffers, bytes);
        slot.has_ended |= is_end;
        slot.reader.wake(&self.core.runtime);
    }

    /// Leaves with its stream what an event says.
    fn note(&self, event: &Event, head: &Head) {
        let (stream, fate) = match *event {
            Event::Trailers { stream } => return self.take_trailers(stream, head),
            Event::Reset { stream, code } => (stream, Fate::Reset(code)),
            // By GOAWAY, or by a reset.
            Event::Unprocessed { stream } if self.codec.borrow().is_ending() => (stream, Fate::Unprocessed),
            Event::Unprocessed { stream } => (stream, Fate::Refused),
            Event::Malformed { stream, why, may_answer: false } => (stream, Fate::Malformed(why)),
            Event::Failed(error) => return self.fail(error),
            _ => return,
        };
        if let Some(slot) = self.slots.borrow_mut().find(stream) {
            slot.end(fate);
            slot.wake(&self.core.runtime);
        }
    }

    fn take_trailers(&self, stream: u32, head: &Head) {
        if let Some(slot) = self.slots.borrow_mut().find(stream) {
            slot.trailers = Some(Box::new(head.trailers()));
            slot.has_ended = true;
            slot.reader.wake(&self.core.runtime);
        }
    }
}
