//! Blocks on streams that are there: the answers of an origin, and the trailers of either side (RFC 9113 §8.1).

use super::head::GatheredBlock;
use super::{Connection, Event};
use crate::error::ConnectionError;
use crate::malformed::Id;
use crate::message::{Block, FieldSink, Scratch, Verdict};
use crate::stream::{ANY_LENGTH, Part, Slot, State};

/// Interim answers to a request (RFC 9110 §15.2 sets no bound).
pub const MAX_INTERIMS: u8 = 32;

impl Connection {
    /// Takes an answer or trailers.
    pub(super) fn take_later(
        &mut self,
        now_ns: u64,
        slot: Slot,
        next: State,
        block: &GatheredBlock<'_>,
        sink: &mut impl FieldSink,
        scratch: &mut Scratch,
    ) -> Result<Option<Event>, ConnectionError> {
        let Some(part) = self.streams.get(slot).map(|stream| stream.part) else { return Ok(None) };
        let judged = match part {
            Part::Head => self.judge(block, Block::Answer, sink, scratch)?,
            Part::Body => self.judge(block, Block::Trailers, sink, scratch)?,
            Part::Unwanted => {
                self.discard(block, scratch)?;
                self.enter(slot, next);
                return Ok(None);
            }
        };
        let taken = judged.and_then(|verdict| match part {
            Part::Head => self.take_answer(slot, next, block.open.is_end, &verdict),
            _ => self.take_trailers(slot, next, block.open.is_end),
        });
        match taken {
            Ok(event) => Ok(Some(event)),
            Err(why) => Ok(self.blame(now_ns, slot, why)),
        }
    }

    fn take_answer(&mut self, slot: Slot, next: State, is_end: bool, verdict: &Verdict) -> Result<Event, Id> {
        let Some(stream) = self.streams.get_mut(slot) else { return Err(Id::StreamClosed) };
        let (id, status) = (stream.id, verdict.status);
        if status < 200 {
            stream.interims += 1;
            return match () {
                () if is_end => Err(Id::InterimEnds),
                () if stream.interims > MAX_INTERIMS => Err(Id::TooManyInterims),
                () => Ok(Event::Interim { stream: id, status }),
            };
        }
        stream.is_tunnel = stream.is_connect && status < 300;
        stream.is_bodiless |= matches!(status, 204 | 304);
        stream.part = Part::Body;
        stream.missing = match verdict.length {
            _ if stream.is_bodiless => 0,
            Some(length) if !stream.is_tunnel => length,
            _ => ANY_LENGTH,
        };
        if is_end && !matches!(stream.missing, 0 | ANY_LENGTH) {
            return Err(Id::BodyTooShort);
        }
        stream.is_answered = true;
        self.enter(slot, next);
        Ok(Event::Answer { stream: id, status, is_end })
    }

    fn take_trailers(&mut self, slot: Slot, next: State, is_end: bool) -> Result<Event, Id> {
        let Some(stream) = self.streams.get(slot) else { return Err(Id::StreamClosed) };
        let id = stream.id;
        match stream.missing {
            _ if stream.is_tunnel => Err(Id::HeadInTunnel),
            _ if !is_end => Err(Id::TrailersUnended),
            0 | ANY_LENGTH => {
                self.enter(slot, next);
                Ok(Event::Trailers { stream: id })
            }
            _ => Err(Id::BodyTooShort),
        }
    }
}
