//! HEADERS and CONTINUATION (RFC 9113 §4.3, §6.2, §6.10): blocks of fields, and the messages that they begin or end.

use super::reader::{Cursor, OpenBlock};
use super::{Connection, Event};
use crate::config::Role;
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{flag, kind};
use crate::hpack::Field;
use crate::malformed::{Id, Malformed};
use crate::message::{Block, FieldSink, HeadLimits, Judge, Scratch, Verdict};
use crate::stream::{ANY_LENGTH, Input, Outcome, Part, State, Stream};
use std::ops::Range;

/// CONTINUATION frames of a block; an honest block of the largest size needs four.
const MOST_CONTINUATIONS: u8 = 32;

/// A block that has come whole, or so much of it that it is refused.
pub(super) struct GatheredBlock<'a> {
    pub(super) open: OpenBlock,
    pub(super) bytes: &'a [u8],
}

impl GatheredBlock<'_> {
    fn input(&self) -> Input {
        if self.open.is_end { Input::ReceiveHeadEnd } else { Input::ReceiveHead }
    }
}

impl Connection {
    /// A frame with fields begins.
    pub(super) fn begin_block(
        &mut self,
        now_ns: u64,
        sink: &mut impl FieldSink,
        scratch: &mut Scratch,
    ) -> Result<Option<Event>, ConnectionError> {
        let frame = self.reader.frame;
        self.account.charge_block(frame.length);
        let too_much = |text| Err(ConnectionError::flood(text));
        let Some(block) = &mut self.reader.block else {
            self.reader.block = Some(OpenBlock {
                stream: frame.stream,
                is_end: frame.has(flag::END_STREAM),
                depends_on_itself: false,
                frames: 1,
                bytes: frame.length,
                is_overlong: false,
            });
            return Ok(None);
        };
        block.frames += 1;
        block.bytes = block.bytes.saturating_add(frame.length);
        if block.frames > MOST_CONTINUATIONS {
            return too_much("A block of fields has too many CONTINUATION frames (RFC 9113 section 10.5)");
        }
        if block.bytes > self.config.max_block() {
            return too_much("A block of fields is far longer than the limit (RFC 9113 section 10.5.1)");
        }
        if block.bytes <= self.config.max_gathered() {
            return Ok(None);
        }
        // Nothing more is held of it: a peer could have as much on each of many connections.
        match std::mem::replace(&mut block.is_overlong, true) {
            true => self.decode_gathered(scratch).map(|()| None),
            false => self.refuse_block(now_ns, sink, scratch),
        }
    }

    /// A block has become too long: its message is refused by the fields that have come.
    fn refuse_block(
        &mut self,
        now_ns: u64,
        sink: &mut impl FieldSink,
        scratch: &mut Scratch,
    ) -> Result<Option<Event>, ConnectionError> {
        let Some(open) = self.reader.block else { return Ok(None) };
        let mut gathered = std::mem::take(&mut self.reader.gathered);
        self.reader.decoded = 0;
        let event = self.take_block(now_ns, &GatheredBlock { open, bytes: &gathered }, sink, scratch)?;
        gathered.drain(..self.reader.decoded as usize);
        self.reader.gathered = gathered;
        Ok(event)
    }

    /// Decodes what has come of a block that is too long: the table must follow (RFC 9113 §4.3).
    fn decode_gathered(&mut self, scratch: &mut Scratch) -> Result<(), ConnectionError> {
        let gathered = &mut self.reader.gathered;
        let decoded = self.decoder.decode_part(gathered, false, &mut scratch.strings, |_| {});
        gathered.drain(..decoded.map_err(compression)?);
        Ok(())
    }

    /// Reads more of a frame with fields. A block that lies in the received bytes whole is read where it is.
    pub(super) fn read_block(
        &mut self,
        now_ns: u64,
        input: &mut Cursor<'_>,
        sink: &mut impl FieldSink,
        scratch: &mut Scratch,
    ) -> Result<Option<Event>, ConnectionError> {
        let frame = self.reader.frame;
        let is_last = frame.has(flag::END_HEADERS);
        let is_first = frame.kind == kind::HEADERS;
        if is_first
            && is_last
            && let Some(payload) = self.reader.whole(input)
        {
            let fragment = self.strip(payload)?;
            return self.end_block(now_ns, &payload[fragment], sink, scratch);
        }
        self.reader.gather(u32::MAX, input);
        if self.reader.left > 0 {
            return Ok(None);
        }
        if is_first {
            let mut gathered = std::mem::take(&mut self.reader.gathered);
            let fragment = self.strip(&gathered)?;
            gathered.truncate(fragment.end);
            gathered.drain(..fragment.start);
            self.reader.gathered = gathered;
        }
        if !is_last {
            self.end_frame();
            return Ok(None);
        }
        let gathered = std::mem::take(&mut self.reader.gathered);
        self.end_block(now_ns, &gathered, sink, scratch)
    }

    /// Where the fields lie in the payload of HEADERS (RFC 9113 §6.2).
    fn strip(&mut self, payload: &[u8]) -> Result<Range<usize>, ConnectionError> {
        let frame = self.reader.frame;
        let (mut begin, mut end) = (0, payload.len());
        if frame.has(flag::PADDED) {
            begin = 1;
            end = end.saturating_sub(usize::from(payload.first().copied().unwrap_or(0)));
        }
        if frame.has(flag::PRIORITY) {
            let dependency = payload.get(begin..).and_then(|rest| rest.first_chunk());
            let on = u32::from_be_bytes(*dependency.unwrap_or(&[0; 4])) & 0x7fff_ffff;
            if let Some(block) = &mut self.reader.block {
                block.depends_on_itself = on == frame.stream;
            }
            begin += 5;
        }
        if begin > end {
            return Err(ConnectionError::protocol(
                "The padding of HEADERS is longer than its payload (RFC 9113 section 6.2)",
            ));
        }
        Ok(begin..end)
    }

    /// A block has come whole.
    fn end_block(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        sink: &mut impl FieldSink,
        scratch: &mut Scratch,
    ) -> Result<Option<Event>, ConnectionError> {
        self.end_frame();
        let Some(open) = self.reader.block.take() else { return Ok(None) };
        if open.is_overlong {
            let decoded = self.decoder.decode_last_part(bytes, &mut scratch.strings);
            return decoded.map(|()| None).map_err(compression);
        }
        self.take_block(now_ns, &GatheredBlock { open, bytes }, sink, scratch)
    }

    /// Takes the message of a block. It is decoded even if its stream is refused, since the table must follow (RFC 9113
    /// §4.3).
    fn take_block(
        &mut self,
        now_ns: u64,
        block: &GatheredBlock<'_>,
        sink: &mut impl FieldSink,
        scratch: &mut Scratch,
    ) -> Result<Option<Event>, ConnectionError> {
        let id = block.open.stream;
        let state = self.state(id);
        if state == State::Idle {
            if self.role == Role::Client || id.is_multiple_of(2) {
                return Err(ConnectionError::protocol(
                    "HEADERS opens a stream that its sender may not open (RFC 9113 section 5.1.1)",
                ));
            }
            return self.take_request(now_ns, block, sink, scratch);
        }
        if (self.skipped.0..=self.skipped.1).contains(&id) {
            return Err(ConnectionError::protocol(
                "A new stream has a lower number than an earlier one (RFC 9113 section 5.1.1)",
            ));
        }
        let slot = self.streams.find(id);
        match (state.step(block.input()), slot) {
            (Outcome::To(next), Some(slot)) => self.take_later(now_ns, slot, next, block, sink, scratch),
            // The request's sender must not end a client's connection by it: other requests are on it.
            (Outcome::Connection(code), _) if self.role == Role::Server => Err(ConnectionError {
                code,
                text: "HEADERS comes on a stream that is closed (RFC 9113 section 5.1)",
            }),
            (Outcome::Ignore, _) => self.discard(block, scratch).map(|()| None),
            (_, Some(slot)) if !state.is_over() => {
                self.discard(block, scratch)?;
                Ok(self.blame(now_ns, slot, Id::StreamClosed))
            }
            _ => {
                self.discard(block, scratch)?;
                self.refuse(now_ns, id, ErrorCode::STREAM_CLOSED);
                Ok(None)
            }
        }
    }

    /// A client opens a stream.
    fn take_request(
        &mut self,
        now_ns: u64,
        block: &GatheredBlock<'_>,
        sink: &mut impl FieldSink,
        scratch: &mut Scratch,
    ) -> Result<Option<Event>, ConnectionError> {
        let OpenBlock { stream: id, is_end, .. } = block.open;
        self.skipped = (self.last_stream + 1, id - 1);
        self.last_stream = id;
        if self.life.is_closed_to_peer() {
            // It is above the last stream of GOAWAY: its sender knows that it is not processed (RFC 9113 §6.8).
            return self.discard(block, scratch).map(|()| None);
        }
        if self.is_full() {
            self.discard(block, scratch)?;
            // It may not know the limit yet: only the refusal costs.
            self.account.accept_block(block.bytes.len() as u32, block.open.frames.into());
            self.refuse(now_ns, id, ErrorCode::REFUSED_STREAM);
            return Ok(None);
        }
        let judged = self.judge(block, Block::Request, sink, scratch)?;
        let state = if is_end { State::HalfClosedRemote } else { State::Open };
        let (send, receive) = (self.peer.initial_window as i32, self.initial_receive as i32);
        let mut stream = Stream::new(id, state, send, receive, now_ns);
        let judged = judged.and_then(|verdict| match verdict.length {
            Some(1..) if is_end => Err(Id::BodyTooShort),
            _ => Ok(verdict),
        });
        let event = match judged {
            Ok(verdict) => {
                stream.part = Part::Body;
                stream.priority = self.first_priority(id, &verdict);
                stream.is_connect = verdict.is_connect;
                stream.missing = verdict.length.unwrap_or(ANY_LENGTH);
                Event::Request { stream: id, is_end }
            }
            Err(why) => {
                let why = Malformed::from(why);
                (stream.part, stream.fault) = (Part::Unwanted, Some(why));
                Event::Malformed { stream: id, why, may_answer: true }
            }
        };
        self.streams.insert(stream);
        Ok(Some(event))
    }

    /// Whether the client has as many streams as it may. Those that it knows to be over do not count (RFC 9113 §5.1.2), up
    /// to as many again; those that it has reset do, until their work is over (CVE-2023-44487).
    fn is_full(&self) -> bool {
        let most = self.config.max_streams as usize;
        let all = self.streams.len();
        all - self.closed as usize >= most || all >= most.saturating_mul(2)
    }

    /// PRIORITY_UPDATE that came before is later than the field (RFC 9218 §7).
    fn first_priority(&mut self, id: u32, verdict: &Verdict) -> crate::priority::Priority {
        self.has_priorities |= verdict.priority.is_some();
        match self.early_priority {
            Some((stream, priority)) if stream == id => {
                self.early_priority = None;
                priority
            }
            _ => verdict.priority.unwrap_or_default(),
        }
    }

    /// Decodes a block into the sink. A lawful one has cost nothing in the end.
    pub(super) fn judge(
        &mut self,
        block: &GatheredBlock<'_>,
        what: Block,
        sink: &mut impl FieldSink,
        scratch: &mut Scratch,
    ) -> Result<Result<Verdict, Id>, ConnectionError> {
        let limits = HeadLimits {
            bytes: self.config.max_head,
            fields: self.config.max_fields,
            has_protocol: self.config.has_extended_connect,
        };
        let Scratch { strings, authority } = scratch;
        let mut judge = Judge::new(what, limits, authority);
        sink.begin(block.open.stream, what);
        self.decode(block, strings, |field| judge.take(field, sink))?;
        if block.open.is_overlong {
            return Ok(Err(judge.end_early()));
        }
        let judged = match judge.end() {
            Ok(_) if block.open.depends_on_itself => Err(Id::SelfDependency),
            judged => judged,
        };
        if let Ok(verdict) = &judged {
            // An interim answer is no progress by itself.
            let frames = block.open.frames - u8::from((100..200).contains(&verdict.status));
            self.account.accept_block(block.bytes.len() as u32, frames.into());
        }
        Ok(judged)
    }

    /// Decodes a block of which nothing is wanted.
    pub(super) fn discard(
        &mut self,
        block: &GatheredBlock<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), ConnectionError> {
        self.decode(block, &mut scratch.strings, |_| {})
    }

    /// Decodes what has come of a block.
    fn decode(
        &mut self,
        block: &GatheredBlock<'_>,
        strings: &mut Vec<u8>,
        take: impl FnMut(Field<'_>),
    ) -> Result<(), ConnectionError> {
        if !block.open.is_overlong {
            return self.decoder.decode(block.bytes, strings, take).map_err(compression);
        }
        let decoded = self.decoder.decode_part(block.bytes, true, strings, take);
        self.reader.decoded = decoded.map_err(compression)? as u32;
        Ok(())
    }
}

fn compression(error: crate::hpack::HpackError) -> ConnectionError {
    ConnectionError { code: ErrorCode::COMPRESSION_ERROR, text: error.text() }
}
