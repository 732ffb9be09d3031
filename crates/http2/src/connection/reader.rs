//! How far the reading of frames has come. A frame's head, and a payload of fixed length, wait inline for their missing
//! bytes; only blocks of fields are gathered on the heap.

use crate::config::Role;
use crate::frame::{FrameHead, HEAD};

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A client's preface, of which this many bytes have come.
    Preface(u8),
    Head,
    Payload,
}

/// A block of fields whose frames have not all come.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBlock {
    pub(super) stream: u32,
    pub(super) is_end: bool,
    /// RFC 7540's priority named the stream itself.
    pub(super) depends_on_itself: bool,
    pub(super) frames: u8,
    /// Bytes of their payloads.
    pub(super) bytes: u32,
    /// It is longer than what is gathered: its message was refused, and what follows is decoded for the table alone.
    pub(super) is_overlong: bool,
}

/// The payload of a DATA frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenData {
    /// Whether it goes to its stream.
    pub(super) is_wanted: bool,
    /// The length of the padding comes first.
    pub(super) has_pad_length: bool,
    /// Bytes of padding at its end.
    pub(super) padding: u8,
}

/// The state of reading.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) stage: Stage,
    /// The frame whose payload comes.
    pub(super) frame: FrameHead,
    /// Bytes of its payload that have not come.
    pub(super) left: u32,
    /// Bytes that wait for others.
    unit: [u8; HEAD],
    have: u8,
    pub(super) data: OpenData,
    pub(super) block: Option<OpenBlock>,
    /// Bytes of blocks of fields that came in pieces.
    pub(super) gathered: Vec<u8>,
    /// How many of them were decoded, of a block that is too long.
    pub(super) decoded: u32,
}

impl Reader {
    pub(super) fn new(role: Role) -> Reader {
        Reader {
            stage: if role == Role::Server { Stage::Preface(0) } else { Stage::Head },
            frame: FrameHead::default(),
            left: 0,
            unit: [0; HEAD],
            have: 0,
            data: OpenData { is_wanted: false, has_pad_length: false, padding: 0 },
            block: None,
            gathered: Vec::new(),
            decoded: 0,
        }
    }

    /// Takes the head of a frame; `None`: it has not come whole.
    pub(super) fn head(&mut self, input: &mut Cursor<'_>) -> Option<FrameHead> {
        self.unit(input).map(FrameHead::parse)
    }

    /// Takes this many bytes of a payload; `None`: they have not all come.
    pub(super) fn unit<const N: usize>(&mut self, input: &mut Cursor<'_>) -> Option<[u8; N]> {
        if self.have == 0
            && let Some(whole) = input.rest().first_chunk::<N>()
        {
            input.at += N;
            return Some(*whole);
        }
        let have = usize::from(self.have);
        let taken = (N - have).min(input.rest().len());
        self.unit[have..have + taken].copy_from_slice(&input.rest()[..taken]);
        input.at += taken;
        self.have += taken as u8;
        if usize::from(self.have) < N {
            return None;
        }
        self.have = 0;
        self.unit.first_chunk().copied()
    }

    /// Takes as much of the payload as has come; returns where it lies.
    pub(super) fn piece(&mut self, most: u32, input: &mut Cursor<'_>) -> std::ops::Range<usize> {
        let taken = input.rest().len().min(most.min(self.left) as usize);
        let range = input.at..input.at + taken;
        input.at += taken;
        self.left -= taken as u32;
        range
    }

    /// Takes the payload from where it lies, if all of it has come at once.
    pub(super) fn whole<'a>(&mut self, input: &mut Cursor<'a>) -> Option<&'a [u8]> {
        let has_come = self.left == self.frame.length && input.rest().len() >= self.left as usize;
        has_come.then(|| &input.bytes[self.piece(u32::MAX, input)])
    }

    /// Gathers as much of the payload as has come, and no more than this many bytes.
    pub(super) fn gather(&mut self, most: u32, input: &mut Cursor<'_>) {
        let expected = most.min(self.left) as usize;
        let range = self.piece(most, input);
        if self.gathered.capacity() == 0 {
            // No more than is expected, lest many small pieces hold much.
            self.gathered.reserve(expected);
        }
        self.gathered.extend_from_slice(&input.bytes[range]);
    }

    /// Bytes on the heap.
    pub(super) fn footprint(&self) -> usize {
        self.gathered.capacity()
    }
}

/// Received bytes, and how many of them were read.
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }
}
