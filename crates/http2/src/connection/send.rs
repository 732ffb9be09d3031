//! Heads and trailers out (RFC 9113 §8). They are written at once, so that they come before DATA.

use super::Connection;
use super::end::HIGHEST;
use crate::config::Role;
use crate::frame::{HEAD, split_block};
use crate::hpack::{Encoder, Field};
use crate::message::RequestLine;
use crate::stream::{Input, Outcome, Slot, State, Stream};
use std::fmt;

/// Why something cannot be sent. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The stream is not there, or its side that sends has ended.
    Closed,
    /// No more streams may be open at once now.
    Full,
    /// The connection takes no new streams any more.
    Ending,
    /// Bytes of the body wait which must come first.
    DataWaits,
    /// The peer's settings do not allow an extended CONNECT, or have not come (RFC 8441 §3).
    NoExtendedConnect,
    /// The status is no number from 100 to 999, is 101, or is that of an interim answer which would end the stream.
    InvalidStatus,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SendError::Closed => "the stream takes nothing more",
            SendError::Full => "no more streams may be open at once",
            SendError::Ending => "the connection takes no new streams",
            SendError::DataWaits => "bytes of the body wait to be sent first",
            SendError::NoExtendedConnect => "the peer has not allowed extended CONNECT",
            SendError::InvalidStatus => "the status cannot be sent in this way",
        })
    }
}

impl std::error::Error for SendError {}

impl Connection {
    /// Whether a request may begin now. It may before the peer's settings have come: as many streams as peers commonly
    /// take are assumed.
    pub fn can_open(&self) -> bool {
        self.open_error().is_none()
    }

    fn open_error(&self) -> Option<SendError> {
        let most = self.peer.max_concurrent_streams.min(self.config.max_streams) as usize;
        match () {
            () if self.role == Role::Server || !self.life.may_open() => Some(SendError::Ending),
            () if self.last_stream > HIGHEST - 2 => Some(SendError::Ending),
            () if self.streams.len() >= most => Some(SendError::Full),
            () => None,
        }
    }

    /// Begins a request; returns its stream. The first one leaves with the preface.
    ///
    /// # Errors
    /// No stream can be opened now, or ever again: [`Connection::can_open`] says so before. Or the peer has not allowed
    /// extended CONNECT: [`Connection::peer_settings`] say so.
    pub fn send_request<'f>(
        &mut self,
        now_ns: u64,
        line: &RequestLine<'_>,
        fields: impl IntoIterator<Item = Field<'f>>,
        is_end: bool,
        out: &mut Vec<u8>,
    ) -> Result<u32, SendError> {
        if let Some(why) = self.open_error() {
            return Err(why);
        }
        if line.protocol.is_some() && !self.peer.has_extended_connect {
            return Err(SendError::NoExtendedConnect);
        }
        let id = if self.last_stream == 0 { 1 } else { self.last_stream + 2 };
        self.last_stream = id;
        let input = if is_end { Input::SendHeadEnd } else { Input::SendHead };
        let Outcome::To(state) = State::Idle.step(input) else { return Err(SendError::Closed) };
        let (send, receive) = (self.peer.initial_window as i32, self.initial_receive as i32);
        let mut stream = Stream::new(id, state, send, receive, now_ns);
        stream.has_head = true;
        stream.is_bodiless = line.method == b"HEAD";
        stream.is_connect = line.method == b"CONNECT";
        self.streams.insert(stream);
        let begin = self.begin_block_out(now_ns, out);
        line.fields().for_each(|field| self.encoder.encode(field, out));
        self.end_block_out(begin, id, is_end, fields, out);
        Ok(id)
    }

    /// Sends the head of an answer, interim ones or the final one. If the stream does not end with it, DATA follow
    /// ([`Connection::set_pending`]), or trailers.
    ///
    /// # Errors
    /// The stream takes nothing more, or the final head was sent, or the status cannot be sent so.
    pub fn send_answer<'f>(
        &mut self,
        now_ns: u64,
        stream: u32,
        status: u16,
        fields: impl IntoIterator<Item = Field<'f>>,
        is_end: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        if !(100..1000).contains(&status) || status == 101 || is_end && status < 200 {
            return Err(SendError::InvalidStatus);
        }
        let slot = self.begin_sending(stream, is_end, false)?;
        let begin = self.begin_block_out(now_ns, out);
        let digits = [status / 100, status / 10, status].map(|n| b'0' + (n % 10) as u8);
        let field = Field { name: b":status", value: &digits, is_sensitive: false };
        self.encoder.encode(field, out);
        self.end_block_out(begin, stream, is_end, fields, out);
        if let Some(stream) = self.streams.get_mut(slot) {
            stream.is_tunnel = stream.is_connect && (200..300).contains(&status);
        }
        self.end_sending(slot, status >= 200, is_end);
        Ok(())
    }

    /// Ends a stream with trailers, after all of its body was written.
    ///
    /// # Errors
    /// The stream takes nothing more, or bytes of its body wait.
    pub fn send_trailers<'f>(
        &mut self,
        now_ns: u64,
        stream: u32,
        fields: impl IntoIterator<Item = Field<'f>>,
        out: &mut Vec<u8>,
    ) -> Result<(), SendError> {
        let waits = self.streams.stream(stream).is_some_and(|stream| stream.pending > 0 || stream.has_end);
        if waits {
            return Err(SendError::DataWaits);
        }
        let slot = self.begin_sending(stream, true, true)?;
        let begin = self.begin_block_out(now_ns, out);
        self.end_block_out(begin, stream, true, fields, out);
        self.end_sending(slot, true, true);
        Ok(())
    }

    /// `has_head`: whether the final head must have been sent, or must not.
    fn begin_sending(&mut self, stream: u32, is_end: bool, has_head: bool) -> Result<Slot, SendError> {
        let slot = self.streams.find(stream).ok_or(SendError::Closed)?;
        let record = self.streams.get(slot).ok_or(SendError::Closed)?;
        let input = if is_end { Input::SendHeadEnd } else { Input::SendHead };
        match record.state.step(input) {
            Outcome::To(_) if !self.life.has_failed() && record.has_head == has_head => Ok(slot),
            _ => Err(SendError::Closed),
        }
    }

    fn end_sending(&mut self, slot: Slot, is_final: bool, is_end: bool) {
        let input = if is_end { Input::SendHeadEnd } else { Input::SendHead };
        let Some(stream) = self.streams.get_mut(slot) else { return };
        stream.has_head |= is_final;
        if let Outcome::To(next) = stream.state.step(input) {
            self.enter(slot, next);
        }
        self.schedule_data(slot);
    }

    /// Begins HEADERS; settings of the peer that it follows are acknowledged first.
    fn begin_block_out(&mut self, now_ns: u64, out: &mut Vec<u8>) -> usize {
        self.write_settings(now_ns, out);
        let begin = out.len();
        out.resize(begin + HEAD, 0);
        self.encoder.begin(out);
        begin
    }

    fn end_block_out<'f>(
        &mut self,
        begin: usize,
        stream: u32,
        is_end: bool,
        fields: impl IntoIterator<Item = Field<'f>>,
        out: &mut Vec<u8>,
    ) {
        for field in fields {
            encode_lower(&mut self.encoder, field, out);
        }
        split_block(begin, stream, is_end, self.peer.max_frame, out);
    }

    /// Whether the final head of a request's answer has come.
    pub fn has_answer(&self, stream: u32) -> bool {
        self.streams.stream(stream).is_some_and(|stream| stream.is_answered)
    }
}

/// Names are in lower case (RFC 9113 §8.2), fields of HTTP/1.1's connections do not exist (§8.2.2). Heads that come by
/// HTTP/1.1 have both.
fn encode_lower(encoder: &mut Encoder, field: Field<'_>, out: &mut Vec<u8>) {
    if field.name.iter().any(u8::is_ascii_uppercase) {
        encode_folded(encoder, field, out);
    } else if !is_of_connection(field.name, field.value) {
        encoder.encode(field, out);
    }
}

/// The longest name that is made lower case without an allocation.
const NAME: usize = 256;

fn encode_folded(encoder: &mut Encoder, field: Field<'_>, out: &mut Vec<u8>) {
    let mut lower = [0; NAME];
    let Some(name) = lower.get_mut(..field.name.len()) else {
        // No field of the connection has such a name.
        return encoder.encode(Field { name: &field.name.to_ascii_lowercase(), ..field }, out);
    };
    name.copy_from_slice(field.name);
    name.make_ascii_lowercase();
    if !is_of_connection(name, field.value) {
        encoder.encode(Field { name, ..field }, out);
    }
}

fn is_of_connection(name: &[u8], value: &[u8]) -> bool {
    match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade"
        | b"http2-settings" => true,
        b"te" => value != b"trailers",
        _ => false,
    }
}
