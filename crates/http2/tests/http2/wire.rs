//! Frames as bytes, written and read without the codec.

use weir_http2::{ErrorCode, PREFACE};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const PRIORITY_UPDATE: u8 = 16;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const DEPENDENT: u8 = 0x20;

/// One frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![a, b, c, kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A block of fields, as literals without indexing.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let bytes: Vec<(&[u8], &[u8])> = fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
    raw_block(&bytes)
}

pub fn raw_block(fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            integer(text.len(), &mut block);
            block.extend_from_slice(text);
        }
    }
    block
}

/// RFC 7541 §5.1, with a prefix of 7 bits.
fn integer(mut n: usize, out: &mut Vec<u8>) {
    if n < 127 {
        return out.push(n as u8);
    }
    n -= 127;
    out.push(127);
    while n >= 128 {
        out.push(0x80 | (n % 128) as u8);
        n /= 128;
    }
    out.push(n as u8);
}

/// HEADERS with a whole block.
pub fn headers(stream: u32, fields: &[(&str, &str)], is_end: bool) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | u8::from(is_end), stream, &block(fields))
}

pub const GET: &[(&str, &str)] =
    &[(":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/")];
pub const POST: &[(&str, &str)] =
    &[(":method", "POST"), (":scheme", "http"), (":authority", "h"), (":path", "/")];
pub const OK: &[(&str, &str)] = &[(":status", "200")];

/// Fields with others behind them.
pub fn with<'a>(fields: &[(&'a str, &'a str)], more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    [fields, more].concat()
}

pub fn get(stream: u32) -> Vec<u8> {
    headers(stream, GET, true)
}

pub fn post(stream: u32) -> Vec<u8> {
    headers(stream, POST, false)
}

pub fn data(stream: u32, bytes: &[u8], is_end: bool) -> Vec<u8> {
    frame(DATA, u8::from(is_end), stream, bytes)
}

pub fn settings(parameters: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (id, value) in parameters {
        payload.extend_from_slice(&id.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, &payload)
}

pub fn update(stream: u32, increment: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

pub fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.0.to_be_bytes())
}

pub fn goaway(last: u32, code: ErrorCode) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.0.to_be_bytes()].concat())
}

/// What a client begins with.
pub fn opening() -> Vec<u8> {
    [&PREFACE[..], &settings(&[])].concat()
}

/// A frame that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    /// A number in the payload.
    pub fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(*self.payload[at..].first_chunk().expect("a number"))
    }
}

/// Reads whole frames, behind a preface if there is one.
pub fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    bytes = bytes.strip_prefix(&PREFACE[..]).unwrap_or(bytes);
    let mut frames = Vec::new();
    while let Some(([a, b, c, kind, flags, stream @ ..], rest)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let payload = rest[..length].to_vec();
        frames.push(Frame { kind: *kind, flags: *flags, stream: u32::from_be_bytes(*stream), payload });
        bytes = &rest[length..];
    }
    assert!(bytes.is_empty(), "a frame is cut");
    frames
}

/// The streams that were reset, and why.
pub fn resets(bytes: &[u8]) -> Vec<(u32, ErrorCode)> {
    let resets = frames(bytes).into_iter().filter(|frame| frame.kind == RST_STREAM);
    resets.map(|frame| (frame.stream, ErrorCode(frame.number(0)))).collect()
}

/// The last streams, codes and debug data of GOAWAY.
pub fn goaways(bytes: &[u8]) -> Vec<(u32, ErrorCode, String)> {
    let goaways = frames(bytes).into_iter().filter(|frame| frame.kind == GOAWAY);
    let read = |frame: Frame| {
        let text = String::from_utf8_lossy(&frame.payload[8..]).into_owned();
        (frame.number(0), ErrorCode(frame.number(4)), text)
    };
    goaways.map(read).collect()
}
