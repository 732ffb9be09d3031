//! A field that came as never to be indexed leaves so on the other side (RFC 7541 §6.2.3, §7.1.3):
//! requests, answers, interim ones, and trailers.

use crate::common::serve_node;
use crate::frames::{DATA, END_HEADERS, END_STREAM, Field, Frame, RawPeer, data, marked_block};
use crate::raw::{HEADERS, frame};
use std::net::TcpListener;

/// HEADERS in which fields of these names are never to be indexed.
fn marked_head(stream: u32, flags: u8, fields: &[Field<'_>], marked: &[&[u8]]) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | flags, stream, &marked_block(fields, marked))
}

/// The next HEADERS.
fn next_head(peer: &mut RawPeer) -> Frame {
    loop {
        let frame = peer.next();
        if frame.kind == HEADERS {
            return frame;
        }
        assert_eq!(frame.kind, DATA);
    }
}

/// Sends a POST whose fields of these names are marked, and answers it; what passes weir is marked as it came.
fn pass(client: &mut RawPeer, origin: &mut RawPeer, stream: u32, marked: &[&[u8]]) {
    // Weir repeats the authority in a field of its own.
    let cause = |name: &str| if name == "x-forwarded-host" { ":authority" } else { name }.to_owned();
    let expected = |names: &[&str]| -> Vec<String> {
        let names = names.iter().filter(|name| marked.contains(&cause(name).as_bytes()));
        names.map(|name| (*name).to_owned()).collect()
    };
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let request: [Field<'_>; 7] = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/secret"),
        (b":authority", b"h.example"),
        (b"cookie", b"session=0123456789012345678901234567890"),
        (b"x-token", b"token"),
        (b"x-plain", b"plain"),
    ];
    let last: [Field<'_>; 1] = [(b"x-check", b"sum")];
    client.send(&marked_head(stream, 0, &request, marked));
    client.send(&data(stream, false, b"body"));
    client.send(&marked_head(stream, END_STREAM, &last, marked));
    let got = next_head(origin);
    assert_eq!(got.field("x-token"), Some("token"));
    assert_eq!(
        sorted(got.marked),
        expected(&[":authority", ":path", "cookie", "x-forwarded-host", "x-token"])
    );
    assert_eq!(next_head(origin).marked, expected(&["x-check"]));

    let hint: [Field<'_>; 2] = [(b":status", b"103"), (b"link", b"</a>")];
    let answer: [Field<'_>; 3] = [(b":status", b"200"), (b"x-token", b"new"), (b"server", b"origin")];
    origin.send(&marked_head(got.stream, 0, &hint, marked));
    origin.send(&marked_head(got.stream, 0, &answer, marked));
    origin.send(&data(got.stream, false, b"answer"));
    origin.send(&marked_head(got.stream, END_STREAM, &last, marked));
    assert_eq!(next_head(client).marked, expected(&["link"]));
    assert_eq!(next_head(client).marked, expected(&["x-token"]));
    assert_eq!(next_head(client).marked, expected(&["x-check"]));
}

#[test]
fn never_indexed_fields_leave_so() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    let node = format!("server(\"origin\", addr=\"{addr}\", protocol=\"h2\")");
    let served = serve_node(&node);
    let accepting = std::thread::spawn(move || RawPeer::origin(&listener, &[]));
    let mut client = RawPeer::client(&served.addr);
    let get: [Field<'_>; 4] =
        [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"h")];
    client.send(&marked_head(1, END_STREAM, &get, &[]));
    let mut origin = accepting.join().expect("a connection");
    let first = next_head(&mut origin).stream;
    origin.send(&marked_head(first, END_STREAM, &[(b":status", b"204")], &[]));
    assert_eq!(next_head(&mut client).field(":status"), Some("204"));
    // What is not marked repeats, and is in the tables when it comes marked.
    let all: [&[u8]; 6] = [b":path", b":authority", b"cookie", b"x-token", b"x-check", b"link"];
    for (i, marked) in [&[][..], &[], &all, &all, &[b"x-token"], &[]].into_iter().enumerate() {
        pass(&mut client, &mut origin, 3 + 2 * i as u32, marked);
    }
}
