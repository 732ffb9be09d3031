//! How a connection ends: errors, GOAWAY of both sides (RFC 9113 §5.4.1, §6.8), and what becomes late.

use super::{Connection, Event};
use crate::config::Role;
use crate::error::{ConnectionError, ErrorCode};
use crate::stream::State;

/// The highest number of a stream: GOAWAY with it says that an end is near, and refuses nothing.
pub(super) const HIGHEST: u32 = 0x7fff_ffff;

/// How long a client may take to answer the PING behind the first GOAWAY.
const DRAIN_NS: u64 = 1_000_000_000;

/// The payloads of PING: one asks whether the peer is there, the other whether it has read GOAWAY.
pub(super) const QUESTION: [u8; 8] = *b"weir ask";
pub(super) const DRAIN: [u8; 8] = *b"weir end";

/// What was said of the end.
#[derive(Debug, Default)]
pub(super) struct Life {
    stage: Stage,
    /// The last stream that the last GOAWAY has named: those above it are not processed.
    last_taken: Option<u32>,
    /// What the peer has said last in GOAWAY: the last stream that it processes.
    peer_last: Option<u32>,
    /// Streams above that may be there which no event has named.
    has_unprocessed: bool,
    is_asking: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Alive,
    /// The first GOAWAY was said, and streams that are on their way are still taken.
    Draining { due_ns: u64 },
    /// The last GOAWAY was said: nothing new is taken.
    Last,
    /// An error ended it.
    Failed,
}

impl Life {
    pub(super) fn has_failed(&self) -> bool {
        self.stage == Stage::Failed
    }

    /// Whether streams that the peer opens are not processed.
    pub(super) fn is_closed_to_peer(&self) -> bool {
        matches!(self.stage, Stage::Last | Stage::Failed)
    }

    /// Whether GOAWAY has left a stream of the peer out.
    pub(super) fn has_left_out(&self, id: u32) -> bool {
        self.last_taken.is_some_and(|last| id > last)
    }

    /// Whether this side may open streams.
    pub(super) fn may_open(&self) -> bool {
        self.stage == Stage::Alive && self.peer_last.is_none()
    }

    pub(super) fn drain_due_ns(&self) -> Option<u64> {
        match self.stage {
            Stage::Draining { due_ns } => Some(due_ns),
            _ => None,
        }
    }
}

impl Connection {
    /// An error of the connection: GOAWAY says why, and nothing more is read.
    pub(super) fn fail(&mut self, error: ConnectionError) {
        self.life.stage = Stage::Failed;
        self.settings_due_ns = None;
        self.reader.gathered = Vec::new();
        self.owed.goaway = Some((self.last_processed(), error));
    }

    /// The last stream of the peer that may have been processed. It never grows (RFC 9113 §6.8).
    fn last_processed(&self) -> u32 {
        match self.role {
            Role::Server => self.life.last_taken.unwrap_or(self.last_stream),
            Role::Client => 0,
        }
    }

    /// Announces the end, as in a drain: requests that are on their way are still answered. A second GOAWAY, with the true
    /// last stream, follows when the client has read the first (RFC 9113 §6.8).
    pub fn drain(&mut self, now_ns: u64) {
        if self.life.stage != Stage::Alive {
            return;
        }
        if self.role == Role::Client {
            return self.close();
        }
        self.life.stage = Stage::Draining { due_ns: now_ns.saturating_add(DRAIN_NS) };
        self.say_goaway(HIGHEST);
        self.owed.has_drain = true;
    }

    /// Takes nothing new from here on. What is open comes to its end.
    pub fn close(&mut self) {
        if !self.life.is_closed_to_peer() {
            let last = self.last_processed();
            (self.life.stage, self.life.last_taken) = (Stage::Last, Some(last));
            self.say_goaway(last);
        }
    }

    fn say_goaway(&mut self, last: u32) {
        self.owed.goaway = Some((last, ConnectionError { code: ErrorCode::NO_ERROR, text: "" }));
    }

    /// Ends the connection at once, for a reason of this side's.
    pub fn abort(&mut self, error: ConnectionError) {
        if !self.life.has_failed() {
            self.fail(error);
        }
    }

    /// Whether nothing more happens on it: it has failed, or an end was said and the last stream is finished.
    pub fn is_done(&self) -> bool {
        let is_ending = self.life.is_closed_to_peer() || self.life.peer_last.is_some();
        self.life.has_failed() || is_ending && self.streams.is_empty()
    }

    /// Whether the peer has announced its end, or this side has.
    pub fn is_ending(&self) -> bool {
        self.life.stage != Stage::Alive || self.life.peer_last.is_some()
    }

    /// Asks by PING whether the peer is there; [`Event::Pong`] says so. Not while it is being asked.
    pub fn ping(&mut self) {
        if !std::mem::replace(&mut self.life.is_asking, true) {
            self.owed.has_question = true;
        }
    }

    pub(super) fn take_pong(&mut self, payload: [u8; 8]) -> Option<Event> {
        match payload {
            QUESTION if std::mem::take(&mut self.life.is_asking) => return Some(Event::Pong),
            DRAIN if self.life.drain_due_ns().is_some() => self.close(),
            _ => self.account.charge(),
        }
        None
    }

    /// RFC 9113 §6.8. The last stream may only become lower; one that grows is taken for what it was.
    pub(super) fn take_goaway(&mut self, numbers: [u8; 8], text: &[u8]) -> Event {
        let [a, b, c, d, code @ ..] = numbers;
        let last = u32::from_be_bytes([a, b, c, d]) & HIGHEST;
        let last = self.life.peer_last.map_or(last, |before| before.min(last));
        self.life.peer_last = Some(last);
        self.life.has_unprocessed = self.role == Role::Client;
        let code = ErrorCode(u32::from_be_bytes(code));
        Event::GoAway { last, code, text: text.into() }
    }

    /// The next of the streams that the peer's GOAWAY has left out.
    pub(super) fn next_unprocessed(&mut self, now_ns: u64) -> Option<Event> {
        if !self.life.has_unprocessed {
            return None;
        }
        let last = self.life.peer_last?;
        let left_out = self.streams.iter().rev().take_while(|s| s.id > last).find(|s| !s.state.is_over());
        let Some((id, is_answered)) = left_out.map(|stream| (stream.id, stream.is_answered)) else {
            self.life.has_unprocessed = false;
            return None;
        };
        let slot = self.streams.find(id)?;
        self.cut(now_ns, slot, State::ResetThere);
        // One that was answered was processed, and ends as if it had been refused (RFC 9113 §8.7).
        Some(match is_answered {
            true => Event::Reset { stream: id, code: ErrorCode::REFUSED_STREAM },
            false => Event::Unprocessed { stream: id },
        })
    }

    /// Does what is late at this time. An error has ended the connection.
    pub fn on_time(&mut self, now_ns: u64) -> Result<(), ConnectionError> {
        self.ended.forget(now_ns);
        if self.life.drain_due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.close();
        }
        if self.settings_due_ns.is_some_and(|due_ns| due_ns.get() <= now_ns) {
            let error = ConnectionError {
                code: ErrorCode::SETTINGS_TIMEOUT,
                text: "SETTINGS were not acknowledged in time (RFC 9113 section 6.5.3)",
            };
            self.fail(error);
            return Err(error);
        }
        Ok(())
    }
}
