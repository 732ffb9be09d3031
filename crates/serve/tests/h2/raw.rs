//! Raw frames: what no library sends.

use crate::common::serve;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const HEADERS: u8 = 1;
const PING: u8 = 6;

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Kinds and payloads of the frames that come until the end of the stream.
fn frames(stream: &mut TcpStream) -> Vec<(u8, Vec<u8>)> {
    stream.set_read_timeout(Some(Duration::from_secs(15))).expect("a socket");
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(e) => assert_ne!(e.kind(), ErrorKind::WouldBlock, "the connection stays open"),
    }
    let mut frames = Vec::new();
    let mut rest = &bytes[..];
    while rest.len() >= 9 {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        frames.push((rest[3], rest[9..9 + length].to_vec()));
        rest = &rest[9 + length..];
    }
    frames
}

/// The error that the last GOAWAY tells.
fn goaway(frames: &[(u8, Vec<u8>)]) -> Option<u8> {
    frames.iter().rev().find(|(kind, _)| *kind == GOAWAY).map(|(_, payload)| payload[7])
}

#[test]
fn floods_end_in_enhance_your_calm() {
    let served = serve("listen(\"127.0.0.1:0\", respond(200))");
    for one in [frame(PING, 0, 0, b"12345678"), frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255])] {
        let mut stream = TcpStream::connect(&served.addr).expect("a connection");
        stream.write_all(PREFACE).expect("taken");
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).expect("taken");
        // The connection may end before all was taken.
        let _ = stream.write_all(&one.repeat(2000));
        assert_eq!(goaway(&frames(&mut stream)), Some(0xb));
    }
}

#[test]
fn what_is_no_preface_is_no_http_2() {
    let served = serve("listen(\"127.0.0.1:0\", respond(200), http=http(versions=[\"h2\"]))");
    let mut stream = TcpStream::connect(&served.addr).expect("a connection");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("taken");
    assert_eq!(goaway(&frames(&mut stream)), Some(1));
}

#[test]
fn a_preface_that_comes_in_pieces_is_one() {
    let served = serve("listen(\"127.0.0.1:0\", respond(200))");
    let mut stream = TcpStream::connect(&served.addr).expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    for byte in PREFACE {
        stream.write_all(&[*byte]).expect("taken");
    }
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).expect("taken");
    let mut head = [0; 9];
    stream.read_exact(&mut head).expect("settings");
    assert_eq!(head[3], SETTINGS);
}

/// An origin that says on its first connection, as soon as a request is there, that it has done none; what comes then
/// goes on to another address.
pub fn leaving(then: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        let (mut first, _) = listener.accept().expect("a connection");
        first.write_all(&frame(SETTINGS, 0, 0, &[])).expect("taken");
        let mut bytes = Vec::new();
        let mut piece = [0; 4096];
        let has_request = |bytes: &[u8]| {
            let mut rest = bytes.get(PREFACE.len()..).unwrap_or_default();
            while rest.len() >= 9 {
                let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
                if rest[3] == HEADERS {
                    return true;
                }
                rest = rest.get(9 + length..).unwrap_or_default();
            }
            false
        };
        while !has_request(&bytes) {
            let n = first.read(&mut piece).expect("it goes on");
            bytes.extend_from_slice(&piece[..n]);
        }
        first.write_all(&frame(GOAWAY, 0, 0, &[0; 8])).expect("taken");
        let (mut client, _) = listener.accept().expect("another connection");
        let mut origin = TcpStream::connect(then).expect("an origin");
        let (mut up, mut down) =
            (client.try_clone().expect("a socket"), origin.try_clone().expect("a socket"));
        std::thread::spawn(move || std::io::copy(&mut up, &mut origin));
        let _ = std::io::copy(&mut down, &mut client);
    });
    addr
}
