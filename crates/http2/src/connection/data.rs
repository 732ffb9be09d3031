//! DATA (RFC 9113 §6.1): its bytes stay where they were received. Windows are counted by whole frames, padding
//! included; what goes to no stream, and padding, is given back at once. A body's length is judged by whole frames as
//! well, so that nothing is passed on of one that makes it too long or too short.

use super::reader::{Cursor, OpenData};
use super::{Connection, Event};
use crate::config::Role;
use crate::error::{ConnectionError, ErrorCode};
use crate::flood::CRUMB;
use crate::frame::flag;
use crate::malformed::Id;
use crate::stream::{Input, Outcome, Part, Slot};
use std::ops::Range;

/// What becomes of a DATA frame.
enum Fate {
    Wanted,
    /// It is taken and dropped; what is left of its stream has window.
    Unwanted(Option<Slot>),
    /// It ends its stream.
    Fault(Slot, Id),
    /// Its stream is over.
    Late,
}

impl Connection {
    /// A DATA frame begins.
    pub(super) fn begin_data(&mut self, now_ns: u64) -> Result<Option<Event>, ConnectionError> {
        let frame = self.reader.frame;
        if frame.length == 0 && !frame.has(flag::END_STREAM) {
            self.account.charge();
        }
        if !self.receive.receive(frame.length) {
            return Err(ConnectionError::flow(
                "DATA is longer than the connection's window (RFC 9113 section 6.9.1)",
            ));
        }
        let fate = self.fate()?;
        let is_wanted = matches!(fate, Fate::Wanted);
        self.reader.data = OpenData { is_wanted, has_pad_length: frame.has(flag::PADDED), padding: 0 };
        if !is_wanted {
            self.receive.release(frame.length);
        }
        if frame.length > 0 && !frame.has(flag::PADDED) && matches!(fate, Fate::Wanted | Fate::Unwanted(_)) {
            self.count_crumb(frame.length);
        }
        Ok(match fate {
            Fate::Wanted | Fate::Unwanted(None) => None,
            Fate::Unwanted(Some(slot)) => {
                self.schedule_credit(slot);
                None
            }
            Fate::Fault(slot, why) => self.blame(now_ns, slot, why),
            Fate::Late => {
                self.refuse(now_ns, frame.stream, ErrorCode::STREAM_CLOSED);
                None
            }
        })
    }

    fn fate(&mut self) -> Result<Fate, ConnectionError> {
        let frame = self.reader.frame;
        let state = self.state(frame.stream);
        let outcome = state.step(Input::ReceiveData);
        if let Outcome::Connection(code) = outcome {
            return Err(super::stream::idle_error(code));
        }
        let slot = self.streams.find(frame.stream);
        let stream = slot.and_then(|slot| Some((slot, self.streams.get_mut(slot)?)));
        Ok(match (outcome, stream) {
            (Outcome::Ignore, _) => Fate::Unwanted(None),
            (_, None) => Fate::Late,
            (Outcome::To(_), Some((slot, stream))) => match stream.part {
                Part::Head => Fate::Fault(slot, Id::DataBeforeHead),
                Part::Unwanted if stream.receive.receive(frame.length) => {
                    stream.receive.release(frame.length);
                    Fate::Unwanted(Some(slot))
                }
                Part::Unwanted => Fate::Fault(slot, Id::WindowPassed),
                Part::Body => {
                    // Of a padded one the length of the body is not known yet.
                    let length = (!frame.has(flag::PADDED)).then_some(frame.length);
                    let fault = length.and_then(|n| stream.count_body(n, frame.has(flag::END_STREAM)));
                    match fault {
                        Some(why) => Fate::Fault(slot, why),
                        None if !stream.receive.receive(frame.length) => Fate::Fault(slot, Id::WindowPassed),
                        None => Fate::Wanted,
                    }
                }
            },
            _ if state.is_over() => Fate::Late,
            (_, Some((slot, _))) => Fate::Fault(slot, Id::StreamClosed),
        })
    }

    /// Counts a frame with few bytes of a client's body, as long as they are not passed on. Not of an origin's: a client
    /// that takes nothing of its answer would end the connection of others.
    fn count_crumb(&mut self, length: u32) {
        let frame = self.reader.frame;
        if self.role == Role::Client || length >= CRUMB || frame.has(flag::END_STREAM) {
            return;
        }
        self.account.charge_crumb();
        let slot = self.streams.find(frame.stream).filter(|_| self.reader.data.is_wanted);
        if let Some(stream) = slot.and_then(|slot| self.streams.get_mut(slot)) {
            stream.crumbs = stream.crumbs.saturating_add(1);
        }
    }

    /// Reads more of the frame.
    pub(super) fn read_data(
        &mut self,
        now_ns: u64,
        input: &mut Cursor<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        if self.reader.data.has_pad_length {
            let Some([padding]) = self.reader.unit::<1>(input) else { return Ok(None) };
            if let Some(event) = self.take_padding(now_ns, padding)? {
                return Ok(Some(event));
            }
        }
        let padding = u32::from(self.reader.data.padding);
        let range = self.reader.piece(self.reader.left.saturating_sub(padding), input);
        if self.reader.left <= padding {
            self.reader.piece(padding, input);
        }
        let is_whole = self.reader.left == 0;
        if is_whole {
            self.end_frame();
        }
        let is_end = is_whole && self.reader.frame.has(flag::END_STREAM);
        if range.is_empty() && !is_end {
            return Ok(None);
        }
        Ok(self.take_data(range, is_end))
    }

    /// The length of the padding has come, which is padding itself.
    fn take_padding(&mut self, now_ns: u64, padding: u8) -> Result<Option<Event>, ConnectionError> {
        let frame = self.reader.frame;
        self.reader.left -= 1;
        self.reader.data.has_pad_length = false;
        self.reader.data.padding = padding;
        let padding = u32::from(padding);
        if padding > self.reader.left {
            return Err(ConnectionError::protocol(
                "The padding of DATA is longer than its payload (RFC 9113 section 6.1)",
            ));
        }
        let length = self.reader.left - padding;
        match length {
            0 if frame.has(flag::END_STREAM) => {}
            0 => self.account.charge(),
            _ => self.count_crumb(length),
        }
        if !self.reader.data.is_wanted {
            return Ok(None);
        }
        let Some(slot) = self.streams.find(frame.stream) else { return Ok(None) };
        self.give_back(slot, padding + 1);
        let stream = self.streams.get_mut(slot).filter(|stream| stream.part == Part::Body);
        let fault = stream.and_then(|stream| stream.count_body(length, frame.has(flag::END_STREAM)));
        Ok(fault.and_then(|why| self.blame(now_ns, slot, why)))
    }

    /// Bytes of a body have come, or its end.
    fn take_data(&mut self, range: Range<usize>, is_end: bool) -> Option<Event> {
        let id = self.reader.frame.stream;
        // It may have ended within the frame.
        let slot = self.streams.find(id)?;
        let stream = self.streams.get_mut(slot).filter(|stream| stream.state.may_receive())?;
        let bytes = range.len() as u64;
        let is_wanted = self.reader.data.is_wanted && stream.part == Part::Body;
        if is_end && let Outcome::To(next) = stream.state.step(Input::ReceiveDataEnd) {
            self.enter(slot, next);
        }
        self.account.count_received(bytes as u32);
        is_wanted.then_some(Event::Data { stream: id, range, is_end })
    }
}
