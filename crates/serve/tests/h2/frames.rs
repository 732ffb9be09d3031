//! A peer by hand, at either end of a connection: it sends any frames, also wrong ones.

use crate::raw::{PREFACE, SETTINGS, frame};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;
use weir_http2::Decoder;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const PING: u8 = 6;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// A field as it is sent.
pub type Field<'a> = (&'a [u8], &'a [u8]);

/// A frame that has come.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
    /// Of HEADERS.
    pub fields: Vec<(String, String)>,
    /// The names of those that came as never to be indexed.
    pub marked: Vec<String>,
}

impl Frame {
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// A field of HEADERS.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// The code of RST_STREAM.
    pub fn code(&self) -> u32 {
        u32::from_be_bytes(*self.payload.first_chunk().expect("a code"))
    }
}

/// One end of a connection.
pub struct RawPeer {
    stream: TcpStream,
    decoder: Decoder,
    /// PINGs that were answered.
    pub pings: usize,
}

impl RawPeer {
    /// A client, whose preface and settings are sent.
    pub fn client(addr: &str) -> RawPeer {
        let mut peer = RawPeer::new(TcpStream::connect(addr).expect("a connection"));
        peer.send(PREFACE);
        peer.send(&frame(SETTINGS, 0, 0, &[]));
        peer
    }

    /// The origin's end of the next connection, which says these settings.
    pub fn origin(listener: &TcpListener, settings: &[u8]) -> RawPeer {
        let mut peer = RawPeer::new(listener.accept().expect("a connection").0);
        peer.stream.read_exact(&mut vec![0; PREFACE.len()]).expect("a preface");
        peer.send(&frame(SETTINGS, 0, 0, settings));
        peer
    }

    fn new(stream: TcpStream) -> RawPeer {
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
        stream.set_nodelay(true).expect("a socket");
        RawPeer { stream, decoder: Decoder::new(), pings: 0 }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("it is taken");
    }

    /// The same; whether it was taken.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// The next frame of a stream, or GOAWAY; what is of the connection alone is answered.
    pub fn next(&mut self) -> Frame {
        self.try_next().expect("a frame")
    }

    /// The same; `None`: the connection has ended.
    pub fn try_next(&mut self) -> Option<Frame> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).ok()?;
            let [a, b, c, kind, flags, stream @ ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.stream.read_exact(&mut payload).ok()?;
            match kind {
                SETTINGS if flags & ACK == 0 => {
                    self.try_send(&frame(SETTINGS, ACK, 0, &[]));
                }
                PING if flags & ACK == 0 => {
                    self.pings += 1;
                    self.try_send(&frame(PING, ACK, 0, &payload));
                }
                SETTINGS | PING | WINDOW_UPDATE => {}
                _ => {
                    let stream = u32::from_be_bytes(stream);
                    let (fields, marked) =
                        if kind == HEADERS { self.decode(&payload) } else { Default::default() };
                    return Some(Frame { kind, flags, stream, payload, fields, marked });
                }
            }
        }
    }

    /// The fields, and the names of those that came as never to be indexed.
    fn decode(&mut self, block: &[u8]) -> (Vec<(String, String)>, Vec<String>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (mut fields, mut marked) = (Vec::new(), Vec::new());
        let decoded = self.decoder.decode(block, &mut Vec::new(), |field| {
            fields.push((text(field.name), text(field.value)));
            if field.is_sensitive {
                marked.push(text(field.name));
            }
        });
        decoded.expect("a lawful block");
        (fields, marked)
    }

    /// The next HEADERS; returns its stream.
    pub fn next_request(&mut self) -> u32 {
        loop {
            let frame = self.next();
            if frame.kind == HEADERS {
                return frame.stream;
            }
        }
    }
}

/// A block of fields, none of them compressed.
pub fn block(fields: &[Field<'_>]) -> Vec<u8> {
    marked_block(fields, &[])
}

/// The same, in which fields of these names are never to be indexed.
pub fn marked_block(fields: &[Field<'_>], marked: &[&[u8]]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(if marked.contains(name) { 0x10 } else { 0 });
        put(&mut block, name);
        put(&mut block, value);
    }
    block
}

fn put(block: &mut Vec<u8>, text: &[u8]) {
    // RFC 7541 §5.1, with a prefix of 7 bits.
    let mut rest = text.len();
    if rest < 127 {
        block.push(rest as u8);
    } else {
        block.push(127);
        rest -= 127;
        while rest >= 128 {
            block.push((rest % 128 + 128) as u8);
            rest /= 128;
        }
        block.push(rest as u8);
    }
    block.extend_from_slice(text);
}

/// HEADERS, and CONTINUATION where the block is long.
pub fn head(stream: u32, is_end: bool, fields: &[Field<'_>]) -> Vec<u8> {
    let block = block(fields);
    let mut pieces = block.chunks(16_000).peekable();
    let (mut out, mut kind) = (Vec::new(), HEADERS);
    while let Some(piece) = pieces.next() {
        let last = if pieces.peek().is_none() { END_HEADERS } else { 0 };
        let end = if is_end && kind == HEADERS { END_STREAM } else { 0 };
        out.extend(frame(kind, last | end, stream, piece));
        kind = CONTINUATION;
    }
    out
}

/// DATA.
pub fn data(stream: u32, is_end: bool, bytes: &[u8]) -> Vec<u8> {
    frame(DATA, if is_end { END_STREAM } else { 0 }, stream, bytes)
}
