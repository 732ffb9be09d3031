//! What is written: control frames, and the turns of DATA.
//!
//! One write of a connection is: [`Connection::write`], heads, then [`Connection::next_data`] until enough has come
//! together. The payload of each turn follows its frame's head, from where it lies.

use super::Connection;
use super::end::{DRAIN, QUESTION};
use crate::config::Role;
use crate::error::ErrorCode;
use crate::frame::{self, FrameHead, flag, kind};
use crate::stream::{Input, Outcome, Slot};
use crate::window::INITIAL;
use std::num::NonZeroU64;

/// A turn of one stream: its frame's head was written, its payload is to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The stream.
    pub stream: u32,
    /// The next bytes of its body that leave now.
    pub length: usize,
    /// Bytes of it that still wait. If there are none, trailers may follow at once.
    pub pending: u64,
    /// The stream has ended with it.
    pub is_end: bool,
}

impl Connection {
    /// Whether [`Connection::write`] has something to write.
    pub fn has_output(&self) -> bool {
        self.owed.has_frames() || !self.owed.updates.is_empty() || self.receive.is_due(self.window())
    }

    fn window(&self) -> u32 {
        self.config.connection_window
    }

    /// Writes the control frames that are owed, in a bounded number.
    pub fn write(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        self.write_settings(now_ns, out);
        for payload in std::mem::take(&mut self.owed.pongs) {
            frame::ping(payload, true, out);
        }
        for (stream, code) in std::mem::take(&mut self.owed.resets) {
            frame::reset(stream, code, out);
        }
        for slot in std::mem::take(&mut self.owed.updates) {
            if let Some((stream, increment @ 1..)) = self.credit(slot) {
                frame::window_update(stream, increment, out);
            }
        }
        if self.receive.is_due(self.window()) {
            let increment = self.receive.refill(self.window());
            if increment > 0 {
                frame::window_update(frame::CONNECTION_FRAME, increment, out);
            }
        }
        if let Some((last, error)) = self.owed.goaway.take() {
            frame::goaway(last, error.code, error.text, out);
        }
        // Behind GOAWAY, which its answer shows to be read.
        for (is_owed, payload) in [(&mut self.owed.has_question, QUESTION), (&mut self.owed.has_drain, DRAIN)]
        {
            if std::mem::take(is_owed) {
                frame::ping(payload, false, out);
            }
        }
    }

    /// Writes what heads must follow: the preface with SETTINGS, and acknowledgements.
    pub(super) fn write_settings(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.owed.has_opening) {
            if self.role == Role::Client {
                frame::preface(out);
            }
            let (parameters, count) = self.config.parameters(self.role);
            frame::settings(&parameters[..count], out);
            let due_ns = now_ns.saturating_add(self.config.settings_timeout_ns);
            self.settings_due_ns = NonZeroU64::new(due_ns).filter(|_| !self.life.has_failed());
            if self.window() > INITIAL {
                let increment = self.receive.refill(self.window());
                frame::window_update(frame::CONNECTION_FRAME, increment, out);
            }
        }
        for _ in 0..std::mem::take(&mut self.owed.acks) {
            frame::settings_ack(out);
        }
    }

    /// Says how many bytes of a stream's body the caller holds and wants to send, counted anew, and whether the body ends
    /// with them. They wait for the head.
    pub fn set_pending(&mut self, stream: u32, bytes: u64, is_end: bool) {
        let Some(slot) = self.streams.find(stream) else { return };
        if let Some(record) = self.streams.get_mut(slot).filter(|record| record.state.may_send()) {
            (record.pending, record.has_end) = (bytes, is_end);
            self.schedule_data(slot);
        }
    }

    /// Puts a stream among those that can send DATA, or takes it out.
    pub(super) fn schedule_data(&mut self, slot: Slot) {
        let Some(stream) = self.streams.get_mut(slot) else { return };
        let can_send = stream.can_send_data();
        if can_send && !stream.is_ready {
            let mut priority = stream.priority;
            // RFC 9218's default would let one answer after another wait at clients that know nothing of it.
            priority.is_incremental |= !self.has_priorities;
            let is_empty = stream.pending == 0;
            self.schedule.insert(slot, stream.id, priority, stream.has_sent, is_empty);
        } else if can_send {
            self.schedule.update(slot, stream.pending == 0);
        } else if stream.is_ready {
            self.schedule.remove(slot);
        }
        stream.is_ready = can_send;
    }

    /// Whether [`Connection::next_data`] has a turn to give.
    pub fn has_data(&self) -> bool {
        self.schedule.first(self.send.available() > 0).is_some()
    }

    /// Gives a turn to the next stream, of no more than `most` bytes, and writes the head of its frame.
    pub fn next_data(&mut self, now_ns: u64, most: usize, out: &mut Vec<u8>) -> Option<Turn> {
        if self.schedule.is_empty() || self.life.has_failed() {
            return None;
        }
        self.write_settings(now_ns, out);
        let available = self.send.available();
        let slot = self.schedule.first(available > 0)?;
        let stream = self.streams.get_mut(slot)?;
        let most = u32::try_from(most).unwrap_or(u32::MAX).min(frame::PAYLOAD);
        let window = available.min(stream.send.available()).min(most);
        let length = u32::try_from(stream.pending).unwrap_or(u32::MAX).min(window);
        if length == 0 && stream.pending > 0 {
            return None;
        }
        stream.pending -= u64::from(length);
        stream.send.take(length);
        stream.has_sent = true;
        self.send.take(length);
        let is_end = stream.has_end && stream.pending == 0;
        let flags = if is_end { flag::END_STREAM } else { 0 };
        let turn = Turn { stream: stream.id, length: length as usize, pending: stream.pending, is_end };
        frame::write_head(FrameHead { length, kind: kind::DATA, flags, stream: stream.id }, out);
        let is_cut = turn.pending > 0 && length < most;
        self.account.count_sent(length, is_cut);
        if is_end {
            stream.has_end = false;
        }
        if stream.can_send_data() {
            self.schedule.rotate(slot);
        } else {
            stream.is_ready = false;
            self.schedule.remove(slot);
        }
        let input = if is_end { Input::SendDataEnd } else { Input::SendData };
        if let Outcome::To(next) = stream.state.step(input) {
            self.enter(slot, next);
        }
        Some(turn)
    }

    /// Bytes that the peer has room for on a stream, beyond those that wait; below what is granted if others share the
    /// connection's window.
    pub fn room(&self, stream: u32) -> u64 {
        let Some(record) = self.streams.stream(stream).filter(|record| record.state.may_send()) else {
            return 0;
        };
        u64::from(record.send.available().min(self.send.available())).saturating_sub(record.pending)
    }

    /// Whether a stream waits for window of its peer: bytes are pending, and none may be sent.
    pub fn is_blocked(&self, stream: u32) -> bool {
        let Some(record) = self.streams.stream(stream) else { return false };
        record.pending > 0 && record.send.available().min(self.send.available()) == 0
    }

    /// Refuses a request that was not processed at all, so that it may be repeated (RFC 9113 §8.7).
    pub fn refuse_request(&mut self, now_ns: u64, stream: u32) {
        self.reset(now_ns, stream, ErrorCode::REFUSED_STREAM);
    }
}
