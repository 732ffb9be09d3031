//! Answers that break a rule: each ends its own stream as `bad_response`, and the answers beside it go on, on the
//! origin's connection and on that of the client.

use crate::common::{RunningBalancer, serve_node};
use crate::frames::{DATA, Field, PRIORITY, RST_STREAM, RawPeer, WINDOW_UPDATE, block, data, head};
use crate::raw::{HEADERS, frame};
use std::net::TcpListener;

/// An answer that breaks a rule.
struct Case {
    name: &'static str,
    method: &'static [u8],
    /// Of the RST_STREAM that the origin gets.
    code: u32,
    /// Whether the client may have got its head.
    is_late: bool,
    /// Writes its frames.
    frames: Box<dyn Fn(u32) -> Vec<u8>>,
}

const OK: Field<'static> = (b":status", b"200");

/// An answer whose head breaks a rule.
fn broken(name: &'static str, fields: &[Field<'static>]) -> Case {
    let fields = fields.to_vec();
    framed(name, 1, move |stream| head(stream, true, &fields))
}

/// An answer in which frames come in the place of its head.
fn framed(name: &'static str, code: u32, frames: impl Fn(u32) -> Vec<u8> + 'static) -> Case {
    Case { name, method: b"GET", code, is_late: false, frames: Box::new(frames) }
}

/// An answer that breaks a rule behind its head.
fn later(
    name: &'static str,
    code: u32,
    fields: &[Field<'static>],
    more: impl Fn(u32) -> Vec<u8> + 'static,
) -> Case {
    let fields = fields.to_vec();
    let frames = move |stream| [head(stream, false, &fields), more(stream)].concat();
    Case { is_late: true, ..framed(name, code, frames) }
}

fn heads() -> Vec<Case> {
    static LARGE: [u8; 40_000] = [b'v'; 40_000];
    static HUGE: [u8; 100_000] = [b'v'; 100_000];
    let many: Vec<Field<'static>> = [OK].into_iter().chain([(&b"x"[..], &b"y"[..]); 101]).collect();
    vec![
        broken("no :status", &[(b"a", b"b")]),
        broken("two :status", &[OK, OK]),
        broken("a :status of two digits", &[(b":status", b"20")]),
        broken("a :status of four digits", &[(b":status", b"2000")]),
        broken("a :status below 100", &[(b":status", b"099")]),
        broken(":status is no number", &[(b":status", b"abc")]),
        broken("101", &[(b":status", b"101")]),
        broken("an upper-case name", &[OK, (b"X-Upper", b"1")]),
        broken("no name", &[OK, (b"", b"1")]),
        broken("a blank in a name", &[OK, (b"a b", b"1")]),
        broken("Connection", &[OK, (b"connection", b"close")]),
        broken("Keep-Alive", &[OK, (b"keep-alive", b"5")]),
        broken("Transfer-Encoding", &[OK, (b"transfer-encoding", b"chunked")]),
        broken("a late pseudo-field", &[(b"a", b"b"), OK]),
        broken("a pseudo-field of requests", &[OK, (b":path", b"/")]),
        broken("an unknown pseudo-field", &[OK, (b":other", b"/")]),
        broken("NUL in a value", &[OK, (b"x", b"a\x00b")]),
        broken("CR in a value", &[OK, (b"x", b"a\rb")]),
        broken("LF in a value", &[OK, (b"x", b"a\nb")]),
        broken("0x01 in a value", &[OK, (b"x", b"a\x01b")]),
        broken("a blank before a value", &[OK, (b"x", b" a")]),
        broken("a blank behind a value", &[OK, (b"x", b"a ")]),
        broken("a Content-Length that is no number", &[OK, (b"content-length", b"+5")]),
        broken("two Content-Lengths", &[OK, (b"content-length", b"5"), (b"content-length", b"6")]),
        broken("a Content-Length without a body", &[OK, (b"content-length", b"5")]),
        broken("an interim answer ends", &[(b":status", b"103")]),
        Case { code: 11, ..broken("a large head", &[OK, (b"x", &LARGE)]) },
        Case { code: 11, ..broken("a head that is not held", &[OK, (b"x", &HUGE)]) },
        Case { code: 11, ..broken("many fields", &many) },
        framed("DATA before the head", 1, |stream| data(stream, false, b"abc")),
        framed("many interim answers", 11, |stream| head(stream, false, &[(b":status", b"103")]).repeat(33)),
        framed("WINDOW_UPDATE of 0", 1, |stream| frame(WINDOW_UPDATE, 0, stream, &[0; 4])),
        framed("a window that overflows", 3, |stream| {
            frame(WINDOW_UPDATE, 0, stream, &[0x7f, 255, 255, 255])
        }),
        framed("PRIORITY on itself", 1, |stream| {
            frame(PRIORITY, 0, stream, &[&stream.to_be_bytes()[..], &[0]].concat())
        }),
        framed("PRIORITY of a wrong length", 6, |stream| frame(PRIORITY, 0, stream, &[0; 4])),
        framed("HEADERS that depend on themselves", 1, |stream| {
            frame(HEADERS, 0x25, stream, &[&stream.to_be_bytes()[..], &[0], &block(&[OK])].concat())
        }),
    ]
}

fn bodies() -> Vec<Case> {
    let sized = [OK, (&b"content-length"[..], &b"5"[..])];
    let trailers = |is_end: bool, last: &[Field<'static>]| {
        let last = last.to_vec();
        move |stream| [data(stream, false, b"abc"), head(stream, is_end, &last)].concat()
    };
    vec![
        later("a short body", 1, &sized, |stream| data(stream, true, b"abc")),
        later("a long body", 1, &sized, |stream| data(stream, true, b"abcdefgh")),
        later("a long body that goes on", 1, &sized, |stream| data(stream, false, b"abcdefgh")),
        later("204 with DATA", 1, &[(b":status", b"204")], |stream| data(stream, true, b"abc")),
        later("304 with DATA", 1, &[(b":status", b"304")], |stream| data(stream, true, b"abc")),
        Case { method: b"HEAD", ..later("HEAD with DATA", 1, &[OK], |stream| data(stream, true, b"abc")) },
        later("a short body before trailers", 1, &sized, trailers(true, &[(b"a", b"b")])),
        later("a pseudo-field in trailers", 1, &[OK], trailers(true, &[OK])),
        later("an upper-case name in trailers", 1, &[OK], trailers(true, &[(b"X-Upper", b"1")])),
        later("LF in trailers", 1, &[OK], trailers(true, &[(b"x", b"a\nb")])),
        later("Connection in trailers", 1, &[OK], trailers(true, &[(b"connection", b"close")])),
        later("trailers that do not end", 1, &[OK], trailers(false, &[(b"a", b"b")])),
        later("more than the window", 3, &[OK], |stream| data(stream, false, &[b'x'; 16_000]).repeat(150)),
    ]
}

/// The values of `weir_attempts_total`: of good ones and of malformed ones.
fn attempts(served: &RunningBalancer) -> (u64, u64) {
    let text = served.scrape(weir_serve::Exposition::Prometheus);
    let of = |outcome: &str| {
        let end = format!("outcome=\"{outcome}\"}} ");
        let lines = text.lines().filter(|line| line.starts_with("weir_attempts_total{"));
        lines.filter_map(|line| line.split_once(&end)?.1.parse::<u64>().ok()).sum()
    };
    (of("ok"), of("bad_response"))
}

fn request(stream: u32, method: &[u8]) -> Vec<u8> {
    let line = [(&b":method"[..], method), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"h")];
    head(stream, true, &line)
}

/// What comes of an answer: its status, and whether it came whole; then its body.
fn answer(client: &mut RawPeer, stream: u32) -> (Option<u16>, bool, Vec<u8>) {
    let (mut status, mut body) = (None, Vec::new());
    loop {
        let frame = client.next();
        assert_eq!(frame.stream, stream, "{frame:?}");
        match frame.kind {
            RST_STREAM => return (status, false, body),
            DATA => body.extend_from_slice(&frame.payload),
            _ => status = frame.field(":status").and_then(|text| text.parse().ok()).or(status),
        }
        if frame.has(1) {
            return (status, true, body);
        }
    }
}

/// The streams of the case, and those beside it, have these numbers with the client.
fn try_case(client: &mut RawPeer, origin: &mut RawPeer, at: u32, case: &Case) {
    let (good, bad) = (4 * at + 1, 4 * at + 3);
    client.send(&request(good, b"GET"));
    let beside = origin.next_request();
    origin.send(&head(beside, false, &[OK]));
    origin.send(&data(beside, false, b"half "));
    client.send(&request(bad, case.method));
    let stream = origin.next_request();
    // The head and the first half of the good answer.
    assert_eq!((client.next().kind, client.next().kind), (HEADERS, DATA), "{}", case.name);
    origin.send(&(case.frames)(stream));
    let reset = origin.next();
    assert_eq!((reset.kind, reset.stream), (RST_STREAM, stream), "{}: {reset:?}", case.name);
    assert_eq!(reset.code(), case.code, "{}", case.name);
    let (status, is_whole, _) = answer(client, bad);
    match case.is_late {
        false => assert_eq!((status, is_whole), (Some(502), true), "{}", case.name),
        true => assert!(status == Some(502) || !is_whole, "{}: {status:?}", case.name),
    }
    origin.send(&data(beside, true, b"whole"));
    assert_eq!(answer(client, good), (None, true, b"whole".to_vec()), "{}", case.name);
}

#[test]
fn a_malformed_answer_ends_its_own_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addr = listener.local_addr().expect("an address");
    let served = serve_node(&format!("lb.random([server(\"origin\", addr=\"{addr}\", protocol=\"h2\")])"));
    let mut client = RawPeer::client(&served.addr);
    client.send(&request(1, b"GET"));
    let mut origin = RawPeer::origin(&listener, &[]);
    let first = origin.next_request();
    origin.send(&head(first, true, &[(b":status", b"204")]));
    assert_eq!(answer(&mut client, 1).0, Some(204));
    let cases: Vec<Case> = heads().into_iter().chain(bodies()).collect();
    for (at, case) in cases.iter().enumerate() {
        let before = attempts(&served);
        try_case(&mut client, &mut origin, at as u32 + 1, case);
        crate::common::until(|| attempts(&served).0 == before.0 + 1);
        assert_eq!(attempts(&served), (before.0 + 1, before.1 + 1), "{}", case.name);
    }
}
