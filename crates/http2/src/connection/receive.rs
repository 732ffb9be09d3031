//! Bytes in, events out.

use super::reader::{Cursor, Stage};
use super::{Connection, Event, Received};
use crate::error::ConnectionError;
use crate::frame::{PREFACE, check, flag, kind};
use crate::message::{FieldSink, Scratch};

impl Connection {
    /// Reads received bytes up to the next event; without an event, all of them. To be called until there is none, since
    /// one frame may bring several events.
    pub fn receive(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        sink: &mut impl FieldSink,
        scratch: &mut Scratch,
    ) -> Received {
        if self.account.advance(now_ns) {
            self.own_resets.begin_period();
        }
        let mut input = Cursor { bytes, at: 0 };
        loop {
            // Nothing is read after an error of the connection (CVE-2026-27135).
            if self.life.has_failed() {
                return Received { used: bytes.len(), event: None };
            }
            if let Some(event) = self.next_unprocessed(now_ns) {
                return Received { used: input.at, event: Some(event) };
            }
            let may_go_on = self.reader.stage == Stage::Payload && self.reader.left == 0;
            if input.rest().is_empty() && !may_go_on {
                return Received { used: input.at, event: None };
            }
            match self.step(now_ns, &mut input, sink, scratch) {
                Ok(None) => {}
                Ok(event) => return Received { used: input.at, event },
                Err(error) => {
                    self.fail(error);
                    return Received { used: bytes.len(), event: Some(Event::Failed(error)) };
                }
            }
        }
    }

    /// Reads a part of a frame.
    fn step(
        &mut self,
        now_ns: u64,
        input: &mut Cursor<'_>,
        sink: &mut impl FieldSink,
        scratch: &mut Scratch,
    ) -> Result<Option<Event>, ConnectionError> {
        match self.reader.stage {
            Stage::Preface(matched) => self.read_preface(matched, input).map(|()| None),
            Stage::Head => {
                let Some(head) = self.reader.head(input) else { return Ok(None) };
                check(head, self.reader.block.map(|block| block.stream))?;
                let is_settings = head.kind == kind::SETTINGS && !head.has(flag::ACK);
                if !self.has_peer_settings && !is_settings {
                    return Err(ConnectionError::protocol(
                        "The first frame is not SETTINGS (RFC 9113 section 3.4)",
                    ));
                }
                self.reader.frame = head;
                self.reader.left = head.length;
                self.reader.stage = Stage::Payload;
                let event = match head.kind {
                    kind::DATA => self.begin_data(now_ns)?,
                    kind::HEADERS | kind::CONTINUATION => self.begin_block(now_ns, sink, scratch)?,
                    kind => {
                        self.begin_control(kind)?;
                        None
                    }
                };
                self.check_flood()?;
                Ok(event)
            }
            Stage::Payload => {
                let event = match self.reader.frame.kind {
                    kind::DATA => self.read_data(now_ns, input),
                    kind::HEADERS | kind::CONTINUATION => self.read_block(now_ns, input, sink, scratch),
                    kind => self.read_control(kind, now_ns, input),
                }?;
                self.check_flood()?;
                Ok(event)
            }
        }
    }

    fn read_preface(&mut self, matched: u8, input: &mut Cursor<'_>) -> Result<(), ConnectionError> {
        let expected = &PREFACE[usize::from(matched)..];
        let n = expected.len().min(input.rest().len());
        if input.rest()[..n] != expected[..n] {
            return Err(ConnectionError::protocol(
                "The connection does not begin with HTTP/2's preface (RFC 9113 section 3.4)",
            ));
        }
        input.at += n;
        self.reader.stage = if n == expected.len() { Stage::Head } else { Stage::Preface(matched + n as u8) };
        Ok(())
    }

    /// The payload of a frame has come whole.
    pub(super) fn end_frame(&mut self) {
        self.reader.stage = Stage::Head;
    }

    fn check_flood(&self) -> Result<(), ConnectionError> {
        if self.account.is_over() {
            return Err(ConnectionError::flood(
                "A thousand frames within 10 s brought nothing (RFC 9113 section 10.5)",
            ));
        }
        Ok(())
    }
}
