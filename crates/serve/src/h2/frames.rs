//! Counts what a client's frames cost and what they bring, in front of the parser: PING, SETTINGS, PRIORITY, resets and empty
//! DATA are lawful one by one, and a flood of them keeps a loop busy with nothing (CVE-2019-9512 to 9518, CVE-2023-44487).
//!
//! Sans-I/O: bytes in any pieces go in, a verdict comes out. A frame that brings nothing costs one; heads cost by their size until
//! their request is accepted, so that those cost which the parser refuses (an HPACK bomb). DATA, answers that the client takes
//! and bytes that it reads give back. WINDOW_UPDATE is free: whoever reads much sends many.

use weir_topology::plan::fixed::{MAX_IDLE_FRAMES as MOST, MAX_IDLE_FRAMES_NS as PERIOD_NS};

/// Bytes of a frame's head (RFC 9113 §4.1).
const HEAD: usize = 9;

const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const WINDOW_UPDATE: u8 = 0x8;
const CONTINUATION: u8 = 0x9;

const END_STREAM: u8 = 0x1;

/// Bytes of a head, as it came or as it is written, that cost one.
const HEAD_UNIT: usize = 1024;

/// Bytes that the client reads for which one is given back.
const READ_UNIT: usize = 4096;

/// What an answered request gives back.
const ANSWER: u32 = 2;

/// The account of one connection.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// The head of the frame that comes, as far as it has come.
    head: [u8; HEAD],
    have: usize,
    /// What is left of the preface, or of a frame's payload.
    skip: usize,
    score: u32,
    /// When the period began that the score is of.
    since_ns: u64,
    /// Bytes that were read and gave nothing back yet.
    read: usize,
}

impl Frames {
    /// The account of a connection whose next so many bytes are no frame.
    pub fn after(preface: usize) -> Frames {
        Frames { skip: preface, ..Frames::default() }
    }

    /// These bytes have come.
    pub fn received(&mut self, mut bytes: &[u8], now_ns: u64) {
        if now_ns.saturating_sub(self.since_ns) > PERIOD_NS && !self.is_over() {
            (self.since_ns, self.score) = (now_ns, 0);
        }
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let taken = (HEAD - self.have).min(bytes.len());
            self.head[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
            self.have += taken;
            bytes = &bytes[taken..];
            if self.have == HEAD {
                self.have = 0;
                self.frame();
            }
        }
    }

    /// The head of a frame has come whole.
    fn frame(&mut self) {
        let [a, b, c, kind, flags, ..] = self.head;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.skip = length;
        match kind {
            DATA if length > 0 => self.brings(1),
            // The end of a body.
            DATA if flags & END_STREAM != 0 => {}
            HEADERS | CONTINUATION => self.costs(1 + length / HEAD_UNIT),
            WINDOW_UPDATE => {}
            _ => self.costs(1),
        }
    }

    /// The parser accepted a request with a head of so many bytes, which costs nothing any more.
    pub fn accepted(&mut self, head: usize) {
        self.brings(u32::try_from(1 + head / HEAD_UNIT).unwrap_or(u32::MAX));
    }

    /// A request was answered to its end.
    pub fn answered(&mut self) {
        self.brings(ANSWER);
    }

    /// The client has taken so many bytes.
    pub fn taken(&mut self, bytes: usize) {
        self.read += bytes;
        self.brings(u32::try_from(self.read / READ_UNIT).unwrap_or(u32::MAX));
        self.read %= READ_UNIT;
    }

    /// Whether the connection is to end (ENHANCE_YOUR_CALM).
    pub fn is_over(&self) -> bool {
        self.score >= MOST
    }

    fn costs(&mut self, n: usize) {
        self.score = self.score.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
    }

    fn brings(&mut self, n: u32) {
        if !self.is_over() {
            self.score = self.score.saturating_sub(n);
        }
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
            (frames.score, frames.have, frames.skip)
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
