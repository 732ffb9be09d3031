//! Counts what a peer's frames cost and what they bring, in front of the parser: PING, SETTINGS, PRIORITY, resets and
//! empty DATA are lawful one by one, and a flood of them keeps a loop busy with nothing (CVE-2019-9512 to 9518,
//! CVE-2023-44487).
//!
//! Sans-I/O: the bytes of both directions go in, in any pieces; a verdict comes out. The account is of what is still
//! owed. A frame that brings nothing costs one. A head costs by its size until it is accepted, so that only heads cost
//! which the parser refuses (an HPACK bomb). Progress pays back: DATA that is read, bytes that the peer takes, and the
//! end of a request. Each DATA frame that is sent pays for one PING, by which gRPC measures its bandwidth. weir opens
//! the requests to an origin itself, so each of them entitles the origin to [`OWED`] frames: a head, trailers, a reset,
//! a PING. It may use them after the end of the request, since frames may be on their way when weir cancels it.
//! WINDOW_UPDATE is free: a peer that reads much sends many; the `h2` crate's limit of stream errors bounds what
//! invalid ones cost (CVE-2025-8671).

use weir_plan::fixed::{MAX_IDLE_FRAMES as MOST, MAX_IDLE_FRAMES_NS as PERIOD_NS};

/// Bytes of a frame's head (RFC 9113 §4.1).
const HEAD: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const PING: u8 = 0x6;
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

/// What the heads that lie unread may cost for each open request, beyond [`OWED`]: the largest head that is accepted.
const OWED_HEAD: u32 = 32;

/// Streams whose end is remembered.
const ENDED: usize = 64;

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
#[derive(Debug)]
pub(crate) struct Frames {
    received: FrameHeads,
    sent: FrameHeads,
    /// What is owed; below zero what was paid ahead.
    score: i32,
    /// How much may be paid ahead.
    floor: i32,
    is_over: bool,
    /// PINGs that were paid for by DATA that was sent.
    pings: u32,
    /// When the period of the score began.
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
    /// The account of a client, which sends a preface of this many bytes before its first frame.
    pub fn of_client(preface: usize) -> Frames {
        Frames {
            received: FrameHeads { skip: preface, ..FrameHeads::default() },
            sent: FrameHeads::default(),
            score: 0,
            floor: 0,
            is_over: false,
            pings: 0,
            since_ns: 0,
            read: 0,
            open: 0,
            ended: [0; ENDED],
            next_ended: 0,
        }
    }

    /// The account of an origin, to which weir sends a preface of this many bytes before its own first frame.
    pub fn of_origin(preface: usize) -> Frames {
        let sent = FrameHeads { skip: preface, ..FrameHeads::default() };
        Frames { sent, floor: -(MOST as i32), ..Frames::of_client(0) }
    }

    /// Takes bytes that the peer has sent.
    pub fn count_received(&mut self, mut bytes: &[u8], now_ns: u64) {
        if now_ns.saturating_sub(self.since_ns) > PERIOD_NS && !self.is_over {
            (self.since_ns, self.score, self.pings) = (now_ns, 0, 0);
        }
        while let Some(head) = self.received.next(&mut bytes) {
            self.frame(&head);
        }
    }

    /// Takes bytes that go to the peer. Each piece of a body pays for the PING that it may be answered with.
    pub fn count_sent(&mut self, mut bytes: &[u8]) {
        while let Some(head) = self.sent.next(&mut bytes) {
            if head.kind == DATA && head.length > 0 {
                self.pings = (self.pings + 1).min(MOST);
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
            PING if self.pings > 0 => self.pings -= 1,
            _ => self.costs(1),
        }
    }

    /// Whether this stream is among the last that the peer has ended, by the flag of a frame.
    pub fn has_ended(&self, stream: u32) -> bool {
        self.ended.contains(&stream)
    }

    /// The parser accepted a head of this many bytes, which costs nothing any more.
    pub fn accept_head(&mut self, head: usize) {
        self.brings(u32::try_from(1 + head / HEAD_UNIT).unwrap_or(u32::MAX));
    }

    /// A client's request was answered to its end.
    pub fn end_answer(&mut self) {
        self.brings(ANSWER);
    }

    /// A client has given up a request that had been under way for a while: its reset costs nothing.
    pub fn forgive_reset(&mut self) {
        self.brings(1);
    }

    /// weir begins a request on it.
    pub fn begin_request(&mut self) {
        self.open += 1;
    }

    /// A request that weir has begun is over, however it ended.
    pub fn end_request(&mut self) {
        self.open -= 1;
        self.brings(OWED);
    }

    /// The peer has taken this many bytes.
    pub fn count_taken(&mut self, bytes: usize) {
        self.read += bytes;
        self.brings(u32::try_from(self.read / READ_UNIT).unwrap_or(u32::MAX));
        self.read %= READ_UNIT;
    }

    /// Whether the connection is to end (ENHANCE_YOUR_CALM).
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    fn costs(&mut self, n: usize) {
        self.score = self.score.saturating_add(i32::try_from(n).unwrap_or(i32::MAX));
        let most = MOST.saturating_add((OWED + OWED_HEAD).saturating_mul(self.open));
        self.is_over |= self.score >= i32::try_from(most).unwrap_or(i32::MAX);
    }

    fn brings(&mut self, n: u32) {
        self.score = self.score.saturating_sub_unsigned(n).max(self.floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut frames = Frames::of_client(0);
        (1..=most).find(|_| {
            frames.count_received(one, 0);
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
        let mut good = Frames::of_client(0);
        for _ in 0..100_000 {
            good.count_received(&open, 0);
            good.accept_head(200);
            good.count_received(&frame(PING, 0, 8), 0);
            good.end_answer();
        }
        assert!(!good.is_over());
        let mut rapid = Frames::of_client(0);
        let resets = (1..).find(|_| {
            rapid.count_received(&open, 0);
            rapid.accept_head(200);
            rapid.count_received(&reset, 0);
            rapid.is_over()
        });
        assert_eq!(resets, Some(1000));
        let mut reader = Frames::of_client(0);
        for _ in 0..10_000 {
            reader.count_received(&frame(PING, 0, 8), 0);
            reader.count_taken(2 * READ_UNIT);
        }
        assert!(!reader.is_over());
    }

    /// RFC 9113 §8.1: an answer may end in trailers, or have no body; neither has DATA that ends its stream.
    #[test]
    fn answers_of_an_origin_cost_nothing() {
        let (head, trailers, data) = (frame(HEADERS, 4, 30), frame(HEADERS, 5, 20), frame(DATA, 0, 5));
        let mut origin = Frames::of_origin(0);
        // All of them come before any request is over, as in one turn of a busy loop.
        (0..2000).for_each(|_| origin.begin_request());
        for _ in 0..2000 {
            [&head, &data, &trailers].iter().for_each(|bytes| origin.count_received(bytes, 0));
            origin.count_received(&frame(PING, 0, 8), 0);
        }
        assert!(!origin.is_over());
        (0..2000).for_each(|_| origin.end_request());
        for _ in 0..10_000 {
            origin.begin_request();
            origin.count_received(&frame(HEADERS, 5, 30), 0);
            origin.end_request();
        }
        assert!(!origin.is_over());
        (0..2000).for_each(|_| origin.count_received(&frame(PING, 0, 8), 0));
        assert!(origin.is_over());
    }

    /// What weir cancels (a hedge that lost, a `timeout`) may be answered all the same.
    #[test]
    fn late_answers_cost_nothing() {
        let mut origin = Frames::of_origin(0);
        for _ in 0..2000 {
            origin.begin_request();
            origin.end_request();
            origin.count_received(&frame(HEADERS, 4, 30), 0);
            origin.count_received(&frame(HEADERS, 5, 20), 0);
        }
        assert!(!origin.is_over());
    }

    /// Heads as large as may be, of many requests in one turn.
    #[test]
    fn large_heads_cost_nothing() {
        let mut origin = Frames::of_origin(0);
        (0..500).for_each(|_| origin.begin_request());
        (0..500).for_each(|_| origin.count_received(&frame(HEADERS, 5, 31 * HEAD_UNIT), 0));
        assert!(!origin.is_over());
    }

    /// gRPC's servers and clients measure their bandwidth by a PING for each piece that they get.
    #[test]
    fn a_ping_for_each_piece_costs_nothing() {
        let mut frames = Frames::of_client(0);
        for _ in 0..50 {
            (0..900).for_each(|_| frames.count_sent(&frame(DATA, 0, 12)));
            (0..900).for_each(|_| frames.count_received(&frame(PING, 0, 8), 0));
        }
        assert!(!frames.is_over());
        // It pays for nothing else.
        (0..900).for_each(|_| frames.count_sent(&frame(DATA, 0, 12)));
        let mut others = Frames::of_client(0);
        (0..2000).for_each(|_| others.count_sent(&frame(DATA, 0, 12)));
        (0..1000).for_each(|_| others.count_received(&frame(RST_STREAM, 0, 4), 0));
        assert!(others.is_over());
        (0..1900).for_each(|_| frames.count_received(&frame(PING, 0, 8), 0));
        assert!(frames.is_over());
    }

    #[test]
    fn the_end_of_a_stream_is_remembered() {
        let mut frames = Frames::of_client(0);
        frames.count_received(&frame(DATA, 0, 4), 0);
        assert!(!frames.has_ended(1));
        frames.count_received(&frame(HEADERS, 5, 4), 0);
        assert!(frames.has_ended(1) && !frames.has_ended(3));
    }

    #[test]
    fn a_period_forgets_and_an_end_stays() {
        let ping = frame(PING, 0, 8);
        let mut slow = Frames::of_client(0);
        for n in 0..5000u64 {
            slow.count_received(&ping, n * SECOND / 50);
        }
        assert!(!slow.is_over());
        let mut fast = Frames::of_client(0);
        (0..1000).for_each(|_| fast.count_received(&ping, 0));
        assert!(fast.is_over());
        fast.count_received(&ping, 1000 * SECOND);
        fast.count_taken(1 << 30);
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
            let mut frames = Frames::of_client(11);
            bytes.chunks(cut).for_each(|piece| frames.count_received(piece, 0));
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
