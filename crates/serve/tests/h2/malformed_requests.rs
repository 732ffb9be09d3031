//! Requests that break a rule: each ends its own stream, with its rule counted once, and the requests beside it go on,
//! on the client's connection and on that to the origin.

use crate::common::{RunningBalancer, serve_node};
use crate::frames::{DATA, Field, PRIORITY, RST_STREAM, RawPeer, WINDOW_UPDATE, block, data, head};
use crate::peer::{Origin, Reply};
use crate::raw::{GOAWAY, HEADERS, frame};
use std::collections::BTreeMap;

/// A stream that breaks a rule.
struct Case {
    rule: &'static str,
    /// Of the answer, if there is one.
    status: Option<u16>,
    /// Of RST_STREAM, if there is one.
    code: Option<u32>,
    /// Writes its frames.
    frames: Box<dyn Fn(u32) -> Vec<u8>>,
}

const PROTOCOL: Option<u32> = Some(1);
const GET: [Field<'static>; 4] =
    [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"h")];

/// A GET in which this pseudo-field has another value.
fn with(name: &[u8], value: &'static [u8]) -> Vec<Field<'static>> {
    GET.iter().map(|(have, old)| (*have, if *have == name { value } else { *old })).collect()
}

/// A GET without this pseudo-field.
fn without(name: &[u8]) -> Vec<Field<'static>> {
    GET.into_iter().filter(|(have, _)| *have != name).collect()
}

/// A GET with another field.
fn and(name: &'static [u8], value: &'static [u8]) -> Vec<Field<'static>> {
    GET.into_iter().chain([(name, value)]).collect()
}

/// A POST with these fields, which goes on.
fn post(path: &'static [u8], fields: &[Field<'static>]) -> Vec<Field<'static>> {
    let line =
        [(&b":method"[..], &b"POST"[..]), (b":scheme", b"http"), (b":path", path), (b":authority", b"h")];
    line.into_iter().chain(fields.iter().copied()).collect()
}

/// A head that breaks a rule of HTTP/2, alone.
fn broken(rule: &'static str, fields: Vec<Field<'static>>) -> Case {
    let frames = Box::new(move |stream| head(stream, true, &fields));
    Case { rule, status: Some(400), code: PROTOCOL, frames }
}

/// A head that breaks a rule of both versions.
fn refused(rule: &'static str, fields: Vec<Field<'static>>) -> Case {
    Case { code: None, ..broken(rule, fields) }
}

/// A stream that breaks a rule behind its head.
fn later(rule: &'static str, code: u32, frames: impl Fn(u32) -> Vec<u8> + 'static) -> Case {
    Case { rule, status: None, code: Some(code), frames: Box::new(frames) }
}

fn heads() -> Vec<Case> {
    vec![
        broken("name-upper", and(b"X-Upper", b"1")),
        broken("name-empty", and(b"", b"1")),
        broken("name-invalid", and(b"a b", b"1")),
        broken("name-invalid", and(b"a\x00", b"1")),
        broken("name-invalid", and(b"a:b", b"1")),
        broken("value-invalid", and(b"x", b"a\x00b")),
        broken("value-invalid", and(b"x", b"a\rb")),
        broken("value-invalid", and(b"x", b"a\nb")),
        broken("value-invalid", and(b"x", b"a\x01b")),
        broken("value-blank", and(b"x", b" a")),
        broken("value-blank", and(b"x", b"a\t")),
        broken("connection-field", and(b"connection", b"close")),
        broken("connection-field", and(b"keep-alive", b"5")),
        broken("connection-field", and(b"proxy-connection", b"close")),
        broken("connection-field", and(b"transfer-encoding", b"chunked")),
        broken("connection-field", and(b"upgrade", b"h2c")),
        broken("te", and(b"te", b"gzip")),
        broken("pseudo-unknown", [&GET[..], &[(b":other", b"1")]].concat()),
        broken("pseudo-unknown", [&GET[..], &[(b":status", b"200")]].concat()),
        broken("pseudo-twice", [&GET[..], &[(b":path", b"/")]].concat()),
        broken("pseudo-twice", [&GET[..], &[(b":method", b"GET")]].concat()),
        broken("pseudo-late", [&[(&b"a"[..], &b"b"[..])], &GET[..]].concat()),
        broken("pseudo-missing", without(b":method")),
        broken("pseudo-missing", without(b":scheme")),
        broken("pseudo-missing", without(b":path")),
        broken("protocol", [&GET[..], &[(b":protocol", b"websocket")]].concat()),
        broken("method", with(b":method", b"G T")),
        broken("method", with(b":method", b"")),
        broken("scheme", with(b":scheme", b"1http")),
        broken("path", with(b":path", b"")),
        broken("path", with(b":path", b"relative")),
        broken("path", with(b":path", b"*")),
        broken("authority", with(b":authority", b"user@h")),
        broken("authority", with(b":authority", b"")),
        broken("authority-differs", and(b"host", b"other")),
        broken("host-twice", [&GET[..], &[(b"host", b"h"), (b"host", b"h")]].concat()),
        broken("length-invalid", and(b"content-length", b"+5")),
        broken("length-invalid", and(b"content-length", b"5,5")),
        broken("length-twice", [&GET[..], &[(b"content-length", b"0"), (b"content-length", b"0")]].concat()),
        broken("body-too-short", and(b"content-length", b"5")),
        broken("pseudo-of-connect", with(b":method", b"CONNECT")),
        broken(
            "length-of-connect",
            vec![(b":method", b"CONNECT"), (b":authority", b"h:1"), (b"content-length", b"1")],
        ),
    ]
}

/// Heads that are refused, or answered by another status.
fn other_heads() -> Vec<Case> {
    vec![
        refused("target-bytes", with(b":path", b"/a#b")),
        refused("target-bytes", with(b":path", b"/a\xffb")),
        refused("name-alias", and(b"content_length", b"1")),
        Case { status: Some(431), ..refused("head-too-large", large()) },
        Case { status: Some(431), ..refused("head-too-large", and(b"x", &HUGE)) },
        Case {
            status: Some(431),
            ..refused("too-many-fields", GET.into_iter().chain([(&b"x"[..], &HUGE[..200]); 500]).collect())
        },
        Case {
            status: Some(431),
            ..refused("too-many-fields", GET.into_iter().chain([(&b"x"[..], &b"y"[..]); 101]).collect())
        },
        Case {
            frames: Box::new(|stream| {
                let priority = [&stream.to_be_bytes()[..], &[0], &block(&GET)].concat();
                frame(HEADERS, 0x25, stream, &priority)
            }),
            ..broken("self-dependency", Vec::new())
        },
    ]
}

/// So much that it is not held: a block of it is refused before it has come whole.
static HUGE: [u8; 100_000] = [b'v'; 100_000];

/// More than the limit of a head, and less than what is held of one.
fn large() -> Vec<Field<'static>> {
    static VALUE: [u8; 40_000] = [b'v'; 40_000];
    and(b"x", &VALUE)
}

/// A POST with these fields and this body.
fn body(fields: &[Field<'static>], is_end: bool, bytes: &'static [u8]) -> impl Fn(u32) -> Vec<u8> + 'static {
    let fields = post(b"/echo", fields);
    move |stream| [head(stream, false, &fields), data(stream, is_end, bytes)].concat()
}

/// The same with these trailers.
fn trailers(
    fields: &[Field<'static>],
    is_end: bool,
    last: &[Field<'static>],
) -> impl Fn(u32) -> Vec<u8> + 'static {
    let (first, last) = (body(fields, false, b"abc"), last.to_vec());
    move |stream| [first(stream), head(stream, is_end, &last)].concat()
}

/// A POST that is not answered, and these frames.
fn silent(more: fn(u32) -> Vec<u8>) -> impl Fn(u32) -> Vec<u8> + 'static {
    move |stream| [head(stream, false, &post(b"/silent", &[])), more(stream)].concat()
}

fn bodies() -> Vec<Case> {
    vec![
        later("body-too-short", 1, body(&[(b"content-length", b"5")], true, b"abc")),
        later("body-too-long", 1, body(&[(b"content-length", b"2")], true, b"abc")),
        later("body-too-long", 1, body(&[(b"content-length", b"2")], false, b"abc")),
        later("body-too-short", 1, trailers(&[(b"content-length", b"5")], true, &[(b"a", b"b")])),
        later("pseudo-in-trailers", 1, trailers(&[], true, &[(b":path", b"/")])),
        later("name-upper", 1, trailers(&[], true, &[(b"X-Upper", b"1")])),
        later("value-invalid", 1, trailers(&[], true, &[(b"x", b"a\nb")])),
        later("connection-field", 1, trailers(&[], true, &[(b"connection", b"close")])),
        later("trailers-unended", 1, trailers(&[], false, &[(b"a", b"b")])),
        later("head-too-large", 11, trailers(&[], true, &large()[4..])),
        later("head-too-large", 11, trailers(&[], true, &[(b"x", &HUGE)])),
        later("window-zero", 1, silent(|stream| frame(WINDOW_UPDATE, 0, stream, &[0; 4]))),
        later("window-overflow", 3, silent(|stream| frame(WINDOW_UPDATE, 0, stream, &[0x7f, 255, 255, 255]))),
        later(
            "self-dependency",
            1,
            silent(|stream| frame(PRIORITY, 0, stream, &[&stream.to_be_bytes()[..], &[0]].concat())),
        ),
        later("priority-size", 6, silent(|stream| frame(PRIORITY, 0, stream, &[0; 4]))),
        later("window-passed", 3, silent(|stream| data(stream, false, &[b'x'; 16_000]).repeat(20))),
        later("stream-closed", 5, |stream| {
            [head(stream, true, &post(b"/silent", &[])), data(stream, true, b"late")].concat()
        }),
        later("stream-closed", 5, |stream| {
            [head(stream, true, &post(b"/silent", &[])), head(stream, true, &[(b"a", b"b")])].concat()
        }),
    ]
}

/// How often each rule was broken.
fn rules(served: &RunningBalancer) -> BTreeMap<String, u64> {
    let text = served.scrape(weir_serve::Exposition::Prometheus);
    let lines = text.lines().filter_map(|line| line.strip_prefix("weir_bad_requests_total{"));
    let parts = lines.filter_map(|line| {
        let (labels, count) = line.rsplit_once("\"} ")?;
        Some((labels.rsplit_once("rule=\"")?.1.to_owned(), count.parse().ok()?))
    });
    parts.filter(|(_, count)| *count > 0).collect()
}

/// The status and the code of RST_STREAM that a stream ends with. `beside`: what comes on the other.
fn end_of(
    client: &mut RawPeer,
    stream: u32,
    case: &Case,
    beside: &mut Vec<u8>,
) -> (Option<u16>, Option<u32>) {
    let mut status = None;
    loop {
        let frame = client.next();
        assert_ne!(frame.kind, GOAWAY, "{}: {:?}", case.rule, String::from_utf8_lossy(&frame.payload[8..]));
        if frame.stream != stream {
            if frame.kind == DATA {
                beside.extend_from_slice(&frame.payload);
            }
            continue;
        }
        if frame.kind == RST_STREAM {
            return (status, Some(frame.code()));
        }
        if let Some(text) = frame.field(":status") {
            status = text.parse().ok();
        }
        if frame.has(1) && frame.kind <= HEADERS && case.code.is_none() {
            return (status, None);
        }
    }
}

/// Sends a request whose second half comes after that of the case; what the case ends is its own stream.
fn try_case(served: &RunningBalancer, case: &Case) {
    let mut client = RawPeer::client(&served.addr);
    client.send(&head(1, false, &post(b"/echo", &[])));
    client.send(&data(1, false, b"half "));
    let before = rules(served);
    client.send(&(case.frames)(3));
    let mut body = Vec::new();
    let (status, code) = end_of(&mut client, 3, case, &mut body);
    // A body may be wrong after its answer has begun.
    assert_eq!((case.status.and(status), code), (case.status, case.code), "{}", case.rule);
    let mut expected = before;
    *expected.entry(case.rule.to_owned()).or_default() += 1;
    assert_eq!(rules(served), expected, "{}", case.rule);
    client.send(&data(1, true, b"whole"));
    loop {
        let frame = client.next();
        assert!(frame.kind <= HEADERS && frame.stream == 1, "{}: {frame:?}", case.rule);
        if frame.kind == DATA {
            body.extend_from_slice(&frame.payload);
        }
        if frame.has(1) {
            break;
        }
    }
    assert_eq!(String::from_utf8_lossy(&body), "half whole", "{}", case.rule);
}

#[test]
fn a_malformed_request_ends_its_own_stream() {
    let origin = Origin::new(100, |_, got| match got.uri.path() {
        "/echo" => Reply::Echo,
        _ => Reply::Silence,
    });
    let served = serve_node(&format!("server(\"origin\", addr=\"{}\", protocol=\"h2\")", origin.addr));
    let heads: Vec<Case> = heads().into_iter().chain(other_heads()).collect();
    let bodies = bodies();
    heads.iter().for_each(|case| try_case(&served, case));
    assert_eq!(origin.got().len(), heads.len(), "a malformed head goes no further");
    bodies.iter().for_each(|case| try_case(&served, case));
    assert_eq!(origin.connections(), 1);
}
