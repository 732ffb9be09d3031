//! Frames of the connection that are to be written, as what they say and not as bytes. Each list is bounded.

use crate::error::{ConnectionError, ErrorCode};
use crate::stream::Slot;

/// PINGs that are answered at once; more is a flood (CVE-2019-9512).
const MOST_PONGS: usize = 1000;

/// Streams that are reset at once; more is a flood (CVE-2019-9514).
const MOST_RESETS: usize = 2000;

/// What is to be written.
#[derive(Debug)]
pub(super) struct Owed {
    /// The preface and SETTINGS.
    pub(super) has_opening: bool,
    /// SETTINGS to be acknowledged.
    pub(super) acks: u32,
    /// PINGs to be answered.
    pub(super) pongs: Vec<[u8; 8]>,
    /// PINGs of this side: one asks whether the peer is there, the other whether it has read GOAWAY.
    pub(super) has_question: bool,
    pub(super) has_drain: bool,
    pub(super) resets: Vec<(u32, ErrorCode)>,
    /// Streams that are to get window.
    pub(super) updates: Vec<Slot>,
    /// GOAWAY, with its last stream.
    pub(super) goaway: Option<(u32, ConnectionError)>,
}

impl Owed {
    pub(super) fn new() -> Owed {
        Owed {
            has_opening: true,
            acks: 0,
            pongs: Vec::new(),
            has_question: false,
            has_drain: false,
            resets: Vec::new(),
            updates: Vec::new(),
            goaway: None,
        }
    }

    /// Whether there is something but window.
    pub(super) fn has_frames(&self) -> bool {
        self.has_opening
            || self.acks > 0
            || !self.pongs.is_empty()
            || self.has_question
            || self.has_drain
            || !self.resets.is_empty()
            || self.goaway.is_some()
    }

    pub(super) fn push_pong(&mut self, payload: [u8; 8]) -> Result<(), ConnectionError> {
        if self.pongs.len() >= MOST_PONGS {
            return Err(ConnectionError::flood(
                "PING frames come while answers to them are not taken (RFC 9113 section 10.5)",
            ));
        }
        self.pongs.push(payload);
        Ok(())
    }

    pub(super) fn push_ack(&mut self) -> Result<(), ConnectionError> {
        self.acks += 1;
        if self.acks as usize > MOST_PONGS {
            return Err(ConnectionError::flood(
                "SETTINGS frames come while answers to them are not taken (RFC 9113 section 10.5)",
            ));
        }
        Ok(())
    }

    /// Resets a stream. Past the bound nothing is said: the account of frames ends the connection long before.
    pub(super) fn push_reset(&mut self, stream: u32, code: ErrorCode) {
        if self.resets.len() < MOST_RESETS {
            self.resets.push((stream, code));
        }
    }

    /// A stream is not there any more.
    pub(super) fn forget_update(&mut self, slot: Slot) {
        self.updates.retain(|credited| *credited != slot);
        if self.updates.is_empty() {
            self.updates = Vec::new();
        }
    }

    /// Bytes on the heap.
    pub(super) fn footprint(&self) -> usize {
        self.pongs.capacity() * 8
            + self.resets.capacity() * size_of::<(u32, ErrorCode)>()
            + self.updates.capacity() * size_of::<Slot>()
    }
}
