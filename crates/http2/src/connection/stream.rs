//! What happens to one stream of a connection: its states, and how it ends.

use super::{Connection, Event};
use crate::config::Role;
use crate::error::{ConnectionError, ErrorCode};
use crate::malformed::{Id, Malformed};
use crate::priority::Priority;
use crate::stream::{Input, Outcome, Part, Slot, State};

/// A frame came on an idle stream.
pub(super) fn idle_error(code: ErrorCode) -> ConnectionError {
    ConnectionError { code, text: "A frame comes on an idle stream (RFC 9113 section 5.1)" }
}

impl Connection {
    /// The state of any stream (RFC 9113 §5.1).
    pub(super) fn state(&self, id: u32) -> State {
        match self.streams.stream(id) {
            Some(stream) => stream.state,
            // Clients open odd ones, and servers none, for they could only push.
            None if id.is_multiple_of(2) || id > self.last_stream => State::Idle,
            // Its head was dropped, and so is what its sender still had on the way (RFC 9113 §6.8).
            None if self.role == Role::Server && self.life.has_left_out(id) => State::ResetHere,
            None => self.ended.state(id),
        }
    }

    /// A stream has come into this state by a frame.
    pub(super) fn enter(&mut self, slot: Slot, state: State) {
        let Some(stream) = self.streams.get_mut(slot) else { return };
        stream.state = state;
        if state == State::Closed {
            self.closed += 1;
            // The answer to a malformed head is no progress, or such heads would cost nothing.
            if stream.fault.is_none() {
                self.account.end_whole();
            }
        }
        if !state.may_receive() {
            self.end_receiving(slot);
        }
    }

    /// A stream was reset, by either side.
    pub(super) fn cut(&mut self, now_ns: u64, slot: Slot, state: State) {
        let Some(stream) = self.streams.get_mut(slot) else { return };
        (stream.state, stream.part) = (state, Part::Unwanted);
        (stream.pending, stream.has_end) = (0, false);
        let id = stream.id;
        let held = stream.receive.release_all();
        if std::mem::take(&mut stream.is_ready) {
            self.schedule.remove(slot);
        }
        self.receive.release(held);
        self.end_receiving(slot);
        self.ended.push(id, state, now_ns);
    }

    /// Ends a stream by the peer's fault, which costs as much as a reset by the peer (CVE-2025-8671).
    pub(super) fn blame(&mut self, now_ns: u64, slot: Slot, why: Id) -> Option<Event> {
        let why = Malformed::from(why);
        self.account.charge();
        let stream = self.streams.get(slot)?;
        let (id, begun_ns) = (stream.id, stream.begun_ns);
        if stream.state.is_over() {
            return None;
        }
        self.owe_reset(now_ns, id, begun_ns, why.code());
        self.cut(now_ns, slot, State::ResetHere);
        Some(Event::Malformed { stream: id, why, may_answer: false })
    }

    /// The same for a stream that may not be there. An idle one may not be reset (RFC 9113 §6.4): the connection ends, but
    /// for that with an origin, on which are the requests of others.
    pub(super) fn blame_id(
        &mut self,
        now_ns: u64,
        id: u32,
        why: Id,
    ) -> Result<Option<Event>, ConnectionError> {
        if let Some(slot) = self.streams.find(id) {
            return Ok(self.blame(now_ns, slot, why));
        }
        let code = Malformed::from(why).code();
        match (self.state(id), self.role) {
            (State::Idle, Role::Server) => {
                let text = "PRIORITY of an idle stream is malformed (RFC 9113 section 6.3)";
                return Err(ConnectionError { code, text });
            }
            (State::Idle, Role::Client) => self.account.charge(),
            _ => self.refuse(now_ns, id, code),
        }
        Ok(None)
    }

    /// Resets a stream that is not there.
    pub(super) fn refuse(&mut self, now_ns: u64, id: u32, code: ErrorCode) {
        self.account.charge();
        // When it began is not known any more.
        self.owe_reset(now_ns, id, 0, code);
        if id <= self.last_stream {
            self.ended.push(id, State::ResetHere, now_ns);
        }
    }

    /// Ends a stream with this code, unless it is over.
    pub fn reset(&mut self, now_ns: u64, stream: u32, code: ErrorCode) {
        let Some(slot) = self.streams.find(stream) else { return };
        let Some(record) = self.streams.get(slot) else { return };
        let begun_ns = record.begun_ns;
        if let Outcome::To(state) = record.state.step(Input::SendReset) {
            self.owe_reset(now_ns, stream, begun_ns, code);
            self.cut(now_ns, slot, state);
        }
    }

    /// Owes the peer RST_STREAM for a stream that began then.
    fn owe_reset(&mut self, now_ns: u64, id: u32, begun_ns: u64, code: ErrorCode) {
        self.owed.push_reset(id, code);
        if self.role == Role::Client {
            let open = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
            // Each stream of a client has the next odd number.
            let finished = self.last_stream.div_ceil(2).saturating_sub(open);
            self.own_resets.count_reset(now_ns.saturating_sub(begun_ns), open, finished);
        }
    }

    /// Says that the caller has finished with a stream, once for each. Until then it counts as open, also when the peer has
    /// reset it: a peer that resets much gets no more work done at once (CVE-2023-44487). One that is not over is cancelled, or,
    /// if it is only the rest of a request that is not wanted, ended without an error (RFC 9113 §8.1).
    pub fn finish(&mut self, now_ns: u64, stream: u32) {
        let Some(slot) = self.streams.find(stream) else { return };
        let Some(record) = self.streams.get(slot) else { return };
        let code = match (self.role, record.state) {
            (Role::Server, State::HalfClosedLocal) => ErrorCode::NO_ERROR,
            (Role::Server, _) => ErrorCode::INTERNAL_ERROR,
            (Role::Client, _) => ErrorCode::CANCEL,
        };
        match record.fault {
            // A malformed message is a stream error also behind a whole answer (RFC 9113 §8.1.1); one over a limit is not.
            Some(fault) if record.state == State::Closed => {
                if fault.status() == 400 {
                    // Its head has cost what it costs.
                    self.owe_reset(now_ns, stream, record.begun_ns, fault.code());
                    self.ended.push(stream, State::ResetHere, now_ns);
                }
            }
            Some(fault) => self.reset(now_ns, stream, fault.code()),
            None => self.reset(now_ns, stream, code),
        }
        if self.role == Role::Client {
            self.account.end_own();
        }
        if let Some(mut record) = self.streams.remove(slot) {
            self.receive.release(record.receive.release_all());
            self.extra -= u64::from(record.extra);
            self.closed -= u32::from(record.state == State::Closed);
            if record.is_credited {
                self.owed.forget_update(slot);
            }
            if self.streams.is_empty() {
                self.schedule.rest();
            }
        }
    }

    /// Whether a server may soon end the connection, since this side has reset too many streams. Nothing new should begin on it.
    pub fn has_reset_many(&self) -> bool {
        self.own_resets.is_over_limit()
    }

    /// Applies the `priority` field of an answer: what it says counts, and the rest stays as the client asked for it (RFC
    /// 9218 §8).
    pub fn change_priority(&mut self, stream: u32, field: &[u8]) {
        if let Some(asked) = self.streams.stream(stream).map(|stream| stream.priority) {
            self.set_priority(stream, asked.changed_by(field));
        }
    }

    /// Sets how urgent a stream is.
    pub fn set_priority(&mut self, stream: u32, priority: Priority) {
        let Some(slot) = self.streams.find(stream) else { return };
        if let Some(stream) = self.streams.get_mut(slot) {
            stream.priority = priority;
            if std::mem::take(&mut stream.is_ready) {
                self.schedule.remove(slot);
                self.schedule_data(slot);
            }
        }
    }

    /// Whether nothing more happens on a stream: END_STREAM was written and has come, or either side has reset it. What was
    /// written need not have left.
    pub fn is_over(&self, stream: u32) -> bool {
        self.state(stream).is_over()
    }
}
