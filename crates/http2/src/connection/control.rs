//! Frames of the connection, and those of streams that carry neither fields nor bodies (RFC 9113 §6.3 to §6.9).

use super::reader::{Cursor, Stage};
use super::{Connection, Event};
use crate::config::Role;
use crate::error::{ConnectionError, ErrorCode};
use crate::frame::{flag, kind};
use crate::malformed::Id;
use crate::priority::Priority;
use crate::settings::{Change, id};
use crate::stream::{Input, Outcome};

/// Bytes of GOAWAY that are looked at: its numbers, and what a line of a log has room for.
const MOST_GOAWAY: u32 = 8 + 100;

/// The longest value of PRIORITY_UPDATE that is looked at.
const MOST_PRIORITY: u32 = 256;

impl Connection {
    /// A frame begins: what it costs.
    pub(super) fn begin_control(&mut self, kind: u8) -> Result<(), ConnectionError> {
        let is_ack = self.reader.frame.has(flag::ACK);
        match kind {
            kind::PING if is_ack => {}
            kind::SETTINGS if is_ack => {}
            kind::SETTINGS => self.account.charge_settings(self.reader.frame.length),
            kind::PING => self.account.charge_ping(),
            kind::WINDOW_UPDATE => self.account.charge_update(),
            // By the age of its stream.
            kind::RST_STREAM => {}
            kind::PRIORITY_UPDATE if self.role == Role::Client => {
                return Err(ConnectionError::protocol(
                    "A server sends PRIORITY_UPDATE (RFC 9218 section 7.1)",
                ));
            }
            _ => self.account.charge(),
        }
        Ok(())
    }

    /// Reads more of a frame.
    pub(super) fn read_control(
        &mut self,
        kind: u8,
        now_ns: u64,
        input: &mut Cursor<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        match kind {
            kind::SETTINGS => self.read_settings(input),
            kind::PRIORITY_UPDATE if self.reader.frame.length <= MOST_PRIORITY => {
                self.read_priority_update(input)
            }
            kind::PRIORITY if self.reader.left == 5 => self.read_priority(now_ns, input),
            // Its length is wrong: an error of its stream (RFC 9113 §6.3).
            kind::PRIORITY if self.reader.left == self.reader.frame.length => {
                self.skip_priority(now_ns, input)
            }
            kind::RST_STREAM if self.reader.left > 0 => {
                let Some(payload) = self.reader.unit::<4>(input) else { return Ok(None) };
                self.end_frame();
                self.take_reset(now_ns, ErrorCode(u32::from_be_bytes(payload)))
            }
            kind::WINDOW_UPDATE if self.reader.left > 0 => {
                let Some(payload) = self.reader.unit::<4>(input) else { return Ok(None) };
                self.end_frame();
                self.take_update(now_ns, u32::from_be_bytes(payload) & 0x7fff_ffff)
            }
            kind::PING if self.reader.left > 0 => {
                let Some(payload) = self.reader.unit::<8>(input) else { return Ok(None) };
                self.end_frame();
                self.take_ping(payload)
            }
            kind::GOAWAY => Ok(self.read_goaway(input)),
            _ => {
                self.skip(input);
                Ok(None)
            }
        }
    }

    fn skip(&mut self, input: &mut Cursor<'_>) {
        self.reader.piece(u32::MAX, input);
        if self.reader.left == 0 {
            self.end_frame();
        }
    }

    /// RFC 9113 §6.8: eight bytes, and a text of any length, of which the beginning is kept.
    fn read_goaway(&mut self, input: &mut Cursor<'_>) -> Option<Event> {
        let left_out = self.reader.frame.length.saturating_sub(MOST_GOAWAY);
        if self.reader.left <= left_out {
            self.skip(input);
            return None;
        }
        self.reader.gather(self.reader.left - left_out, input);
        if self.reader.left > left_out {
            return None;
        }
        if left_out == 0 {
            self.end_frame();
        }
        let payload = std::mem::take(&mut self.reader.gathered);
        let (numbers, text) = payload.split_first_chunk()?;
        Some(self.take_goaway(*numbers, text))
    }

    /// RFC 9113 §6.5. Nothing holds before the frame has come whole, since nothing of it can be acknowledged before.
    fn read_settings(&mut self, input: &mut Cursor<'_>) -> Result<Option<Event>, ConnectionError> {
        if self.reader.frame.has(flag::ACK) {
            self.end_frame();
            return Ok(self.take_ack());
        }
        let gathered;
        let payload = match self.reader.whole(input) {
            Some(payload) => payload,
            None => {
                self.reader.gather(u32::MAX, input);
                if self.reader.left > 0 {
                    return Ok(None);
                }
                gathered = std::mem::take(&mut self.reader.gathered);
                &gathered
            }
        };
        self.end_frame();
        for parameter in payload.chunks_exact(6) {
            let Some(&[a, b, value @ ..]) = parameter.first_chunk::<6>() else { continue };
            self.set(u16::from_be_bytes([a, b]), u32::from_be_bytes(value))?;
        }
        if !std::mem::replace(&mut self.has_peer_settings, true) {
            self.peer.end_first();
        }
        self.owed.push_ack()?;
        Ok(Some(Event::SettingsChanged))
    }

    fn set(&mut self, id: u16, value: u32) -> Result<(), ConnectionError> {
        match self.peer.set(id, value, self.role == Role::Client)? {
            Change::None => {}
            Change::Table(size) => self.encoder.set_limit(size),
            Change::Window(by) => {
                let mut place = 0;
                while let Some(slot) = self.streams.slot_at(place) {
                    place += 1;
                    let Some(stream) = self.streams.get_mut(slot) else { continue };
                    stream.send.change(by).map_err(|_| {
                        ConnectionError::flow(
                            "INITIAL_WINDOW_SIZE makes a window larger than 2^31 - 1 (RFC 9113 section 6.9.2)",
                        )
                    })?;
                    self.schedule_data(slot);
                }
            }
        }
        // An origin speaks for itself: the uploads to it are those of several clients (RFC 9218 §13.1).
        if id == id::NO_RFC7540_PRIORITIES && value == 1 && self.role == Role::Server {
            self.has_priorities = true;
        }
        Ok(())
    }

    /// The peer has acknowledged SETTINGS: they hold from here on.
    fn take_ack(&mut self) -> Option<Event> {
        if self.settings_due_ns.take().is_none() {
            self.account.charge();
            return None;
        }
        self.decoder.set_limit(self.config.header_table);
        let by = i64::from(self.config.stream_window) - i64::from(self.initial_receive);
        self.initial_receive = self.config.stream_window;
        let mut place = 0;
        while let Some(slot) = self.streams.slot_at(place) {
            place += 1;
            if let Some(stream) = self.streams.get_mut(slot) {
                stream.receive.change(by);
            }
            self.schedule_credit(slot);
        }
        Some(Event::SettingsAcknowledged)
    }

    /// RFC 9113 §6.7.
    fn take_ping(&mut self, payload: [u8; 8]) -> Result<Option<Event>, ConnectionError> {
        if !self.reader.frame.has(flag::ACK) {
            self.owed.push_pong(payload)?;
            return Ok(None);
        }
        Ok(self.take_pong(payload))
    }

    /// RFC 9113 §6.9.
    fn take_update(&mut self, now_ns: u64, increment: u32) -> Result<Option<Event>, ConnectionError> {
        let id = self.reader.frame.stream;
        if id == 0 {
            if increment == 0 {
                return Err(ConnectionError::protocol(
                    "A WINDOW_UPDATE of the connection gives nothing (RFC 9113 section 6.9)",
                ));
            }
            self.send.grow(increment).map_err(|_| {
                ConnectionError::flow("The connection's window is above 2^31 - 1 (RFC 9113 section 6.9.1)")
            })?;
            return Ok(None);
        }
        match self.state(id).step(Input::ReceiveUpdate) {
            Outcome::Connection(code) => return Err(super::stream::idle_error(code)),
            Outcome::To(_) => {}
            _ => return Ok(None),
        }
        let Some(slot) = self.streams.find(id) else { return Ok(None) };
        if increment == 0 {
            return Ok(self.blame(now_ns, slot, Id::WindowZero));
        }
        let grown = self.streams.get_mut(slot).map(|stream| stream.send.grow(increment));
        if let Some(Err(_)) = grown {
            return Ok(self.blame(now_ns, slot, Id::WindowOverflow));
        }
        self.schedule_data(slot);
        Ok(None)
    }

    /// RFC 9113 §6.4.
    fn take_reset(&mut self, now_ns: u64, code: ErrorCode) -> Result<Option<Event>, ConnectionError> {
        let id = self.reader.frame.stream;
        match self.state(id).step(Input::ReceiveReset) {
            Outcome::To(state) => {
                let Some(slot) = self.streams.find(id) else { return Ok(None) };
                let Some(stream) = self.streams.get(slot) else { return Ok(None) };
                // One that was answered was processed, whatever its code says.
                let may_repeat = self.role == Role::Client && !stream.is_answered;
                self.account.charge_reset(now_ns.saturating_sub(stream.begun_ns));
                self.cut(now_ns, slot, state);
                Ok(Some(match code {
                    ErrorCode::REFUSED_STREAM if may_repeat => Event::Unprocessed { stream: id },
                    code => Event::Reset { stream: id, code },
                }))
            }
            Outcome::Connection(code) => Err(super::stream::idle_error(code)),
            _ => {
                self.account.charge();
                Ok(None)
            }
        }
    }

    /// RFC 9113 §6.3: of no meaning, but its length and a dependency on itself are errors.
    fn read_priority(
        &mut self,
        now_ns: u64,
        input: &mut Cursor<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        let Some([a, b, c, d, _]) = self.reader.unit::<5>(input) else { return Ok(None) };
        self.end_frame();
        let depends_on = u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff;
        let id = self.reader.frame.stream;
        if depends_on != id {
            return Ok(None);
        }
        self.blame_id(now_ns, id, Id::SelfDependency)
    }

    fn skip_priority(
        &mut self,
        now_ns: u64,
        input: &mut Cursor<'_>,
    ) -> Result<Option<Event>, ConnectionError> {
        self.skip(input);
        // The rest of it is skipped without another word.
        self.reader.frame.kind = u8::MAX;
        self.blame_id(now_ns, self.reader.frame.stream, Id::PrioritySize)
    }

    /// RFC 9218 §7.1.
    fn read_priority_update(&mut self, input: &mut Cursor<'_>) -> Result<Option<Event>, ConnectionError> {
        self.reader.gather(u32::MAX, input);
        if self.reader.left > 0 {
            return Ok(None);
        }
        self.end_frame();
        let payload = std::mem::take(&mut self.reader.gathered);
        let Some((id, value)) = payload.split_first_chunk() else { return Ok(None) };
        let id = u32::from_be_bytes(*id) & 0x7fff_ffff;
        if id.is_multiple_of(2) {
            return Err(ConnectionError::protocol(
                "A PRIORITY_UPDATE names no request (RFC 9218 section 7.1)",
            ));
        }
        let priority = Priority::parse(value);
        self.has_priorities = true;
        if self.streams.find(id).is_some() {
            self.set_priority(id, priority);
        } else if id > self.last_stream {
            self.early_priority = Some((id, priority));
        }
        Ok(None)
    }

    /// Whether the next byte is the first of a frame: nothing was begun that the peer owes the rest of.
    pub fn is_between_frames(&self) -> bool {
        self.reader.stage == Stage::Head && self.reader.block.is_none()
    }
}
