//! Frames (RFC 9113 §4.1, §6): their heads, and which lengths and streams each kind may have.

mod check;
mod write;

pub(crate) use check::check;
pub(crate) use write::{
    CONNECTION_FRAME, goaway, head as write_head, ping, preface, reset, settings, settings_ack, split_block,
    window_update,
};

/// Bytes of a frame's head (RFC 9113 §4.1).
pub(crate) const HEAD: usize = 9;

/// The longest payload that each side takes unless it says otherwise (RFC 9113 §4.2), which weir never does: longer
/// frames only delay others.
pub(crate) const PAYLOAD: u32 = 16_384;

/// What a client's connection begins with (RFC 9113 §3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The kinds of frames (RFC 9113 §6, RFC 9218 §7.1). Others are ignored (RFC 9113 §4.1).
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0x0;
    pub(crate) const HEADERS: u8 = 0x1;
    pub(crate) const PRIORITY: u8 = 0x2;
    pub(crate) const RST_STREAM: u8 = 0x3;
    pub(crate) const SETTINGS: u8 = 0x4;
    pub(crate) const PUSH_PROMISE: u8 = 0x5;
    pub(crate) const PING: u8 = 0x6;
    pub(crate) const GOAWAY: u8 = 0x7;
    pub(crate) const WINDOW_UPDATE: u8 = 0x8;
    pub(crate) const CONTINUATION: u8 = 0x9;
    pub(crate) const PRIORITY_UPDATE: u8 = 0x10;
}

/// Flags; those that a kind does not have are ignored (RFC 9113 §4.1).
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct FrameHead {
    /// Bytes of its payload.
    pub(crate) length: u32,
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    /// Its stream; 0 is the connection.
    pub(crate) stream: u32,
}

impl FrameHead {
    /// Reads a head; the reserved bit is ignored.
    pub(crate) fn parse(bytes: [u8; HEAD]) -> FrameHead {
        let [a, b, c, kind, flags, stream @ ..] = bytes;
        FrameHead {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        }
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
