//! Large answers of many streams at once, to a client that takes them more slowly than they come: every byte is in its
//! place, whether it left from where it was read or waited in a queue.

use crate::common::{Origin, Reply, serve_node};
use crate::frames::{DATA, END_STREAM, Field, HEADERS, RawPeer, WINDOW_UPDATE, head};
use crate::peer;
use crate::raw::{SETTINGS, frame};
use std::collections::BTreeMap;

const STREAMS: u32 = 8;
const LENGTH: usize = 2 << 20;

/// The body for this path, which differs at each place from that of the others.
fn body(path: &str) -> Vec<u8> {
    let which: usize = path.trim_start_matches('/').parse().expect("a number");
    (0..LENGTH).map(|i| b'a' + ((i / 3 + i / 4096 + which * 5) % 26) as u8).collect()
}

/// Reads all answers behind a proxy of this node; the window is as large as there is.
fn answers(node: &str) -> BTreeMap<u32, Vec<u8>> {
    let served = serve_node(node);
    let mut client = RawPeer::client(&served.addr);
    client.send(&frame(SETTINGS, 0, 0, &[0, 4, 0x7f, 255, 255, 255]));
    client.send(&frame(WINDOW_UPDATE, 0, 0, &[0x7f, 255, 0, 0]));
    for n in 0..STREAMS {
        let path = format!("/{n}");
        let line: [Field<'_>; 4] =
            [(b":method", b"GET"), (b":scheme", b"http"), (b":path", path.as_bytes()), (b":authority", b"h")];
        client.send(&head(2 * n + 1, true, &line));
    }
    let (mut bodies, mut ended) = (BTreeMap::<u32, Vec<u8>>::new(), 0);
    while ended < STREAMS {
        let frame = client.next();
        match frame.kind {
            DATA => bodies.entry(frame.stream).or_default().extend_from_slice(&frame.payload),
            kind => assert_eq!((kind, frame.field(":status")), (HEADERS, Some("200"))),
        }
        ended += u32::from(frame.has(END_STREAM));
    }
    bodies
}

fn check(bodies: &BTreeMap<u32, Vec<u8>>) {
    assert_eq!(bodies.len(), STREAMS as usize);
    for (stream, got) in bodies {
        let expected = body(&format!("/{}", stream / 2));
        let differs = got.iter().zip(&expected).position(|(got, expected)| got != expected);
        assert_eq!((got.len(), differs), (LENGTH, None), "stream {stream}");
    }
}

#[test]
fn they_come_whole_from_an_origin_of_http_1() {
    let origin = Origin::new(|_, head| {
        let path = head.split(' ').nth(1).expect("a path");
        Reply::Ok(String::from_utf8(body(path)).expect("letters"))
    });
    check(&answers(&format!("server(\"origin\", addr=\"{}\")", origin.addr)));
}

#[test]
fn they_come_whole_from_an_origin_of_http_2() {
    let origin = peer::Origin::new(100, |_, got| peer::Reply::Ok(&[], body(got.uri.path()), None));
    check(&answers(&format!("server(\"origin\", addr=\"{}\", protocol=\"h2\")", origin.addr)));
}
