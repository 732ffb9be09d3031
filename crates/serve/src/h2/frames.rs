//! Counts what a peer's frames cost and what they bring, in front of the parser: PING, SETTINGS, PRIORITY, resets and empty
//! DATA are lawful one by one, and a flood of them keeps a loop busy with nothing (CVE-2019-9512 to 9518, CVE-2023-44487).
//!
//! Sans-I/O: the bytes of both directions go in, in any pieces; a verdict comes out. The account is of what is still owed. A
//! frame that brings nothing costs one. A head costs by its size until it is accepted, so that only heads cost which the parser
//! refuses (an HPACK bomb). Progress pays back: DATA that is read, DATA that is sent (gRPC measures its bandwidth by a PING for
//! each), bytes that the peer takes, and the end of a request. An origin may send [`OWED`] frames more for each request that is
//! open with it, since weir opened them: a head, trailers, a reset, a PING. WINDOW_UPDATE is free: a peer that reads much sends
//! many.

use weir_plan::fixed::{MAX_IDLE_FRAMES as MOST, MAX_IDLE_FRAMES_NS as PERIOD_NS};

/// Bytes of a frame's head (RFC 9113 §4.1).
const HEAD: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const WINDOW_UPDATE: u8 = 0x8;
const CONTINUATION: u8 = 0x9;

const END_STREAM: u8 = 0x1;

/// Bytes of a head, as it came or as it is written, that cost one.
const HEAD_UNIT: usize = 1024;

/// Bytes that the peer reads for which one is given back.
const READ_UNIT: usize = 4096;

/// What an answered request of a client gives back.
const ANSWER: u32 = 2;

/// Frames without progress that an origin may send for each request that weir has begun with it.
const OWED: u32 = 4;

/// Streams whose end is remembered.
const ENDED: usize = 16;

/// The head of a frame.
struct FrameHead {
    kind: u8,
    flags: u8,
    stream: u32,
    /// Bytes of its payload.
    length: usize,
}

/// Finds the heads of frames in bytes that come in any pieces.
#[derive(Debug, Default)]
struct FrameHeads {
    /// The head of the frame that comes, as far as it has come.
    head: [u8; HEAD],
    have: usize,
    /// What is left of the preface, or of a frame's payload.
    skip: usize,
}

impl FrameHeads {
    /// The next head that comes whole; takes the bytes before and of it.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<FrameHead> {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        *bytes = &bytes[skipped..];
        let taken = (HEAD - self.have).min(bytes.len());
        self.head[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
        self.have += taken;
        *bytes = &bytes[taken..];
        if self.have < HEAD {
            return None;
        }
        self.have = 0;
        let [a, b, c, kind, flags, stream @ ..] = self.head;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.skip = length;
        Some(FrameHead { kind, flags, stream: u32::from_be_bytes(stream) & 0x7fff_ffff, length })
    }
}

/// The account of one connection.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    received: FrameHeads,
    sent: FrameHeads,
    score: u32,
    is_over: bool,
    /// When the period began that the score is of.
    since_ns: u64,
    /// Bytes that were read and gave nothing back yet.
    read: usize,
    /// Requests that weir has begun on it, and that are not over.
    open: u32,
    /// The streams that the peer has ended last, and the place of the next one.
    ended: [u32; ENDED],
    next_ended: usize,
}

impl Frames {
    /// The account of a connection whose peer sends a preface of this many bytes before its first frame.
    pub fn after(preface: usize) -> Frames {
        Frames { received: FrameHeads { skip: preface, ..FrameHeads::default() }, ..Frames::default() }
    }

    /// The account of a connection on which weir sends a preface of this many bytes before its own first frame.
    pub fn behind_own(preface: usize) -> Frames {
        Frames { sent: FrameHeads { skip: preface, ..FrameHeads::default() }, ..Frames::default() }
    }

    /// Takes bytes that the peer has sent.
    pub fn received(&mut self, mut bytes: &[u8], now_ns: u64) {
        if now_ns.saturating_sub(self.since_ns) > PERIOD_NS && !self.is_over {
            (self.since_ns, self.score) = (now_ns, 0);
        }
        while let Some(head) = self.received.next(&mut bytes) {
            self.frame(&head);
        }
    }

    /// Takes bytes that go to the peer. Each piece of a body pays for the PING that it may be answered with.
    pub fn sent(&mut self, mut bytes: &[u8]) {
        while let Some(head) = self.sent.next(&mut bytes) {
            if head.kind == DATA && head.length > 0 {
                self.brings(1);
            }
        }
    }

    /// Whether all that was sent are whole frames.
    pub fn is_between_frames(&self) -> bool {
        self.sent.have == 0 && self.sent.skip == 0
    }

    /// The head of a frame has come whole.
    fn frame(&mut self, head: &FrameHead) {
        if matches!(head.kind, DATA | HEADERS) && head.flags & END_STREAM != 0 {
            self.ended[self.next_ended] = head.stream;
            self.next_ended = (self.next_ended + 1) % ENDED;
        }
        match head.kind {
            DATA if head.length > 0 => self.brings(1),
            // The end of a body.
            DATA if head.flags & END_STREAM != 0 => {}
            HEADERS | CONTINUATION => self.costs(1 + head.length / HEAD_UNIT),
            WINDOW_UPDATE => {}
            _ => self.costs(1),
        }
    }

    /// Whether this stream is among the last that the peer has ended, by the flag of a frame.
    pub fn has_ended(&self, stream: u32) -> bool {
        self.ended.contains(&stream)
    }

    /// The parser accepted a head of this many bytes, which costs nothing any more.
    pub fn accepted(&mut self, head: usize) {
        self.brings(u32::try_from(1 + head / HEAD_UNIT).unwrap_or(u32::MAX));
    }

    /// A client's request was answered to its end.
    pub fn answered(&mut self) {
        self.brings(ANSWER);
    }

    /// A client has given up a request that had been under way for a while: its reset costs nothing.
    pub fn given_up(&mut self) {
        self.brings(1);
    }

    /// weir begins a request on it.
    pub fn begun(&mut self) {
        self.open += 1;
    }

    /// A request that weir has begun is over, however it ended.
    pub fn is_done(&mut self) {
        self.open -= 1;
        self.brings(OWED);
    }

    /// The peer has taken this many bytes.
    pub fn taken(&mut self, bytes: usize) {
        self.read += bytes;
        self.brings(u32::try_from(self.read / READ_UNIT).unwrap_or(u32::MAX));
        self.read %= READ_UNIT;
    }

    /// Whether the connection is to end (ENHANCE_YOUR_CALM).
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn costs(&mut self, n: usize) {
        self.score = self.score.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
        self.is_over |= self.score >= MOST.saturating_add(OWED.saturating_mul(self.open));
    }

    fn brings(&mut self, n: u32) {
        self.score = self.score.saturating_sub(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: u8 = 0x6;
    const RST_STREAM: u8 = 0x3;
    const SECOND: u64 = 1_000_000_000;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let [_, a, b, c] = (length as u32).to_be_bytes();
        let mut frame = vec![a, b, c, kind, flags, 0, 0, 0, 1];
        frame.resize(HEAD + length, 0x7);
        frame
    }

    /// How many of these in a row end a connection, if any does.
    fn ends_after(one: &[u8], most: usize) -> Option<usize> {
        let mut frames = Frames::default();
        (1..=most).find(|_| {
            frames.received(one, 0);
            frames.is_over()
        })
    }

    #[test]
    fn a_thousand_frames_that_bring_nothing_end_it() {
        for (kind, flags, length, expected) in [
            (PING, 0, 8, Some(1000)),
            (0x4, 0, 6, Some(1000)),
            (0x2, 0, 5, Some(1000)),
            (RST_STREAM, 0, 4, Some(1000)),
            (DATA, 0, 0, Some(1000)),
            (0xfa, 0, 3, Some(1000)),
            (DATA, END_STREAM, 0, None),
            (DATA, 0, 1, None),
            (WINDOW_UPDATE, 0, 4, None),
            (HEADERS, 0, 100, Some(1000)),
            // Never accepted: by their size.
            (HEADERS, 0, 8 * HEAD_UNIT, Some(112)),
            (CONTINUATION, 0, 0, Some(1000)),
        ] {
            assert_eq!(ends_after(&frame(kind, flags, length), 3000), expected, "{kind} {flags} {length}");
        }
    }

    #[test]
    fn what_is_answered_pays_for_what_it_took() {
        let (open, reset) = (frame(HEADERS, 0, 40), frame(RST_STREAM, 0, 4));
        let mut good = Frames::default();
        for _ in 0..100_000 {
            good.received(&open, 0);
            good.accepted(200);
            good.received(&frame(PING, 0, 8), 0);
            good.answered();
        }
        assert!(!good.is_over());
        let mut rapid = Frames::default();
        let resets = (1..).find(|_| {
            rapid.received(&open, 0);
            rapid.accepted(200);
            rapid.received(&reset, 0);
            rapid.is_over()
        });
        assert_eq!(resets, Some(1000));
        let mut reader = Frames::default();
        for _ in 0..10_000 {
            reader.received(&frame(PING, 0, 8), 0);
            reader.taken(2 * READ_UNIT);
        }
        assert!(!reader.is_over());
    }

    /// RFC 9113 §8.1: an answer may end in trailers, or have no body; neither has DATA that ends its stream.
    #[test]
    fn answers_of_an_origin_cost_nothing() {
        let (head, trailers, data) = (frame(HEADERS, 4, 30), frame(HEADERS, 5, 20), frame(DATA, 0, 5));
        let mut origin = Frames::behind_own(0);
        // All of them come before any request is over, as in one turn of a busy loop.
        (0..2000).for_each(|_| origin.begun());
        for _ in 0..2000 {
            [&head, &data, &trailers].iter().for_each(|bytes| origin.received(bytes, 0));
            origin.received(&frame(PING, 0, 8), 0);
        }
        assert!(!origin.is_over());
        (0..2000).for_each(|_| origin.is_done());
        for _ in 0..10_000 {
            origin.begun();
            origin.received(&frame(HEADERS, 5, 30), 0);
            origin.is_done();
        }
        assert!(!origin.is_over());
        (0..1000).for_each(|_| origin.received(&frame(PING, 0, 8), 0));
        assert!(origin.is_over());
    }

    /// gRPC's servers and clients measure their bandwidth by a PING for each piece that they get.
    #[test]
    fn a_ping_for_each_piece_costs_nothing() {
        let mut frames = Frames::after(0);
        for _ in 0..10_000 {
            frames.sent(&frame(DATA, 0, 12));
            frames.received(&frame(PING, 0, 8), 0);
        }
        assert!(!frames.is_over());
        (0..1000).for_each(|_| frames.received(&frame(PING, 0, 8), 0));
        assert!(frames.is_over());
    }

    #[test]
    fn the_end_of_a_stream_is_remembered() {
        let mut frames = Frames::default();
        frames.received(&frame(DATA, 0, 4), 0);
        assert!(!frames.has_ended(1));
        frames.received(&frame(HEADERS, 5, 4), 0);
        assert!(frames.has_ended(1) && !frames.has_ended(3));
    }

    #[test]
    fn a_period_forgets_and_an_end_stays() {
        let ping = frame(PING, 0, 8);
        let mut slow = Frames::default();
        for n in 0..5000u64 {
            slow.received(&ping, n * SECOND / 50);
        }
        assert!(!slow.is_over());
        let mut fast = Frames::default();
        (0..1000).for_each(|_| fast.received(&ping, 0));
        assert!(fast.is_over());
        fast.received(&ping, 1000 * SECOND);
        fast.taken(1 << 30);
        assert!(fast.is_over());
    }

    /// However the bytes are cut, the account is the same.
    #[test]
    fn cuts_make_no_difference() {
        let mut bytes = b"the preface".to_vec();
        for (kind, flags, length) in [
            (0x4, 0, 18),
            (HEADERS, 4, 2500),
            (DATA, 0, 700),
            (PING, 0, 8),
            (DATA, 0, 0),
            (CONTINUATION, 0, 1023),
        ] {
            bytes.extend(frame(kind, flags, length));
        }
        let account = |cut: usize| {
            let mut frames = Frames::after(11);
            bytes.chunks(cut).for_each(|piece| frames.received(piece, 0));
            (frames.score, frames.received.have, frames.received.skip)
        };
        let whole = account(bytes.len());
        assert_eq!(whole, (1 + 3 - 1 + 1 + 1 + 1, 0, 0));
        for cut in 1..bytes.len() {
            assert_eq!(account(cut), whole, "pieces of {cut}");
        }
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod generated_tests;
