//! How much the peer may send (RFC 9113 §5.2, `docs/spec/serving.md`): window is given back when bytes were passed on.
//!
//! A stream begins with a small window. Once it has used that up and its bytes are passed on, it shares in what the
//! connection's window has to spare: that is what is left if every other stream has its small window. So a stream of
//! which nothing is passed on holds up no other.

use super::Connection;
use crate::config::Role;
use crate::stream::Slot;

impl Connection {
    /// Bytes of a stream's [`super::Event::Data`] were passed on: the peer may send as many more.
    pub fn release(&mut self, stream: u32, bytes: usize) {
        let Some(slot) = self.streams.find(stream) else { return };
        let Some(record) = self.streams.get_mut(slot) else { return };
        let held = u64::from(record.receive.held().max(1));
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let left = held.saturating_sub(bytes.into());
        // Which of the bytes came in crumbs is not known.
        let crumbs = (u64::from(record.crumbs) * left / held) as u32;
        self.account.pay_crumbs(std::mem::replace(&mut record.crumbs, crumbs) - crumbs);
        self.give_back(slot, bytes);
    }

    /// Bytes of a stream are held no more.
    pub(super) fn give_back(&mut self, slot: Slot, bytes: u32) {
        let Some(record) = self.streams.get_mut(slot) else { return };
        let released = record.receive.release(bytes);
        self.receive.release(released);
        if record.state.may_receive() {
            self.schedule_credit(slot);
        } else {
            self.end_receiving(slot);
        }
    }

    /// Puts a stream among those that get window, if it is worth a frame.
    pub(super) fn schedule_credit(&mut self, slot: Slot) {
        let Some(stream) = self.streams.get_mut(slot) else { return };
        let size = self.initial_receive.saturating_add(stream.extra);
        if stream.state.may_receive() && !stream.is_credited && stream.receive.is_due(size) {
            stream.is_credited = true;
            self.owed.updates.push(slot);
        }
    }

    /// Gives window to a stream; returns the increment.
    pub(super) fn credit(&mut self, slot: Slot) -> Option<(u32, u32)> {
        let base = self.initial_receive;
        let spare = self.spare();
        let stream = self.streams.get_mut(slot)?;
        stream.is_credited = false;
        if !stream.state.may_receive() {
            return None;
        }
        if !std::mem::replace(&mut stream.is_receiver, true) {
            self.receivers += 1;
        }
        // Its share, but no more than others have left.
        let others = self.extra - u64::from(stream.extra);
        let share = (spare / u64::from(self.receivers)).min(spare.saturating_sub(others));
        let most = u64::from(self.config.max_stream_window.saturating_sub(base));
        let size = base.saturating_add(share.min(most) as u32);
        let increment = stream.receive.refill(size);
        let extra = u32::try_from(stream.receive.size() - i64::from(base)).unwrap_or(0);
        stream.extra = extra;
        self.extra = others + u64::from(extra);
        Some((stream.id, increment))
    }

    /// What the connection's window has beyond the small windows of all streams: an origin's streams may all be opened.
    fn spare(&self) -> u64 {
        let streams = match self.role {
            Role::Server => self.streams.len() as u64,
            Role::Client => u64::from(self.config.max_streams),
        };
        let base = streams * u64::from(self.initial_receive);
        u64::from(self.config.connection_window).saturating_sub(base)
    }

    /// A stream receives nothing more: its share is for others, except for the part that bytes take which are still held.
    pub(super) fn end_receiving(&mut self, slot: Slot) {
        let base = self.initial_receive;
        let Some(stream) = self.streams.get_mut(slot) else { return };
        if std::mem::take(&mut stream.is_receiver) {
            self.receivers -= 1;
        }
        let held = stream.receive.held().saturating_sub(base).min(stream.extra);
        self.extra -= u64::from(std::mem::replace(&mut stream.extra, held) - held);
    }
}
