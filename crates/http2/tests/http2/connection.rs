//! Errors of the connection, by section of RFC 9113, as h2spec tries them: GOAWAY says why, and nothing more is read.

use crate::end::End;
use crate::wire::*;
use weir_http2::{Config, ConnectionError, ErrorCode, Event, PREFACE, Role};

/// The code by which a server fails that has got these frames; its GOAWAY says the same with a reason.
fn code(bytes: &[u8]) -> Option<ErrorCode> {
    let mut server = End::server();
    // What follows an error is not read.
    let code = server.fails(&[bytes, &get(99)].concat());
    let goaways = goaways(&server.write());
    assert_eq!(goaways.first().map(|(_, code, _)| *code), code);
    assert!(goaways.iter().all(|(_, _, text)| text.contains("RFC ")), "{goaways:?}");
    code
}

#[test]
fn by_section() {
    let (protocol, size, flow) =
        (ErrorCode::PROTOCOL_ERROR, ErrorCode::FRAME_SIZE_ERROR, ErrorCode::FLOW_CONTROL_ERROR);
    let first = &block(GET)[..5];
    let opened = |rest: &[u8]| [&frame(HEADERS, END_STREAM, 1, first)[..], rest].concat();
    for (section, bytes, expected) in [
        ("4.2 too long", data(1, &[0; 16_385], true), size),
        ("4.2 too long HEADERS", frame(HEADERS, 5, 1, &[0; 16_385]), size),
        ("4.3 not decodable", frame(HEADERS, 5, 1, &[0x80]), ErrorCode::COMPRESSION_ERROR),
        ("4.3 in trailers", [post(1), frame(HEADERS, 5, 1, &[0x80])].concat(), ErrorCode::COMPRESSION_ERROR),
        ("4.3 interrupted by DATA", opened(&data(1, b"", true)), protocol),
        ("4.3 by another stream", opened(&frame(CONTINUATION, 4, 3, b"")), protocol),
        ("4.3 by an unknown frame", opened(&frame(0xfe, 0, 0, b"")), protocol),
        ("5.1.1 an even stream", get(2), protocol),
        ("5.1.1 a lower stream", [get(5), get(3)].concat(), protocol),
        ("6.1 no stream", data(0, b"a", true), protocol),
        ("6.1 too much padding", [post(1), frame(DATA, PADDED, 1, &[2, 0])].concat(), protocol),
        ("6.1 no room for padding", [post(1), frame(DATA, PADDED, 1, &[])].concat(), size),
        ("6.2 no stream", get(0), protocol),
        ("6.2 too much padding", frame(HEADERS, 5 | PADDED, 1, &[9, 0]), protocol),
        ("6.3 no stream", frame(PRIORITY, 0, 0, &[0; 5]), protocol),
        ("6.4 no stream", reset(0, ErrorCode::CANCEL), protocol),
        ("6.4 an idle stream", reset(1, ErrorCode::CANCEL), protocol),
        ("6.4 size", [post(1), frame(RST_STREAM, 0, 1, &[0; 3])].concat(), size),
        ("6.5 ACK with a payload", frame(SETTINGS, ACK, 0, &[0; 6]), size),
        ("6.5 a stream", frame(SETTINGS, 0, 1, &[]), protocol),
        ("6.5 size", frame(SETTINGS, 0, 0, &[0; 3]), size),
        ("6.5.2 ENABLE_PUSH", settings(&[(2, 2)]), protocol),
        ("6.5.2 INITIAL_WINDOW_SIZE", settings(&[(4, 1 << 31)]), flow),
        ("6.5.2 MAX_FRAME_SIZE of 0", settings(&[(5, 0)]), protocol),
        ("6.5.2 MAX_FRAME_SIZE too small", settings(&[(5, 16_383)]), protocol),
        ("6.5.2 MAX_FRAME_SIZE too large", settings(&[(5, 1 << 24)]), protocol),
        ("6.6 a push", frame(PUSH_PROMISE, 4, 1, &[0; 4]), protocol),
        ("6.7 a stream", frame(PING, 0, 1, &[0; 8]), protocol),
        ("6.7 size", frame(PING, 0, 0, &[0; 7]), size),
        ("6.8 a stream", frame(GOAWAY, 0, 1, &[0; 8]), protocol),
        ("6.8 size", frame(GOAWAY, 0, 0, &[0; 7]), size),
        ("6.9 nothing", update(0, 0), protocol),
        ("6.9 an idle stream", update(1, 1), protocol),
        ("6.9 size", frame(WINDOW_UPDATE, 0, 0, &[0; 3]), size),
        ("6.9.1 too large", update(0, 0x7fff_ffff), flow),
        (
            "6.9.2 too large by settings",
            [get(1), update(1, 0x7fff_0000), settings(&[(4, 0x7fff_ffff)])].concat(),
            flow,
        ),
        ("6.10 continues nothing", frame(CONTINUATION, 4, 1, b""), protocol),
        ("RFC 9218 7.1 a stream", frame(PRIORITY_UPDATE, 0, 1, b"\0\0\0\x01u=1"), protocol),
        ("RFC 9218 7.1 no request", frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\0u=1"), protocol),
        ("RFC 9218 7.1 size", frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0"), size),
    ] {
        assert_eq!(code(&bytes), Some(expected), "{section}");
    }
}

#[test]
fn lawful_though_strange() {
    let unknown: Vec<u8> = (0x0a..=0x0f)
        .chain(0x11..=0xff)
        .flat_map(|kind| [frame(kind, 0xff, 0, b"abc"), frame(kind, 0, 9, b"")].concat())
        .collect();
    for (section, bytes) in [
        ("5.5 unknown frames", unknown),
        ("6.5.2 an unknown parameter", settings(&[(0xffff, 1)])),
        ("6.5.2 MAX_FRAME_SIZE", settings(&[(5, (1 << 24) - 1)])),
        ("6.7 flags", frame(PING, 0xfe, 0, &[0; 8])),
        ("6.8 debug data", frame(GOAWAY, 0, 0, &[0; 1000])),
        (
            "6.10 an empty CONTINUATION",
            [frame(HEADERS, 1, 1, &block(GET)), frame(CONTINUATION, 4, 1, b"")].concat(),
        ),
        ("5.3 PRIORITY of idle streams", frame(PRIORITY, 0, 77, &[0, 0, 0, 9, 1])),
        ("5.1.1 many numbers left out", [get(1), get(97)].concat()),
    ] {
        assert_eq!(code(&bytes), None, "{section}");
    }
}

#[test]
fn the_first_bytes() {
    for bytes in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nXX", &[PREFACE, &get(1)[..]].concat()]
    {
        let mut server = End::new(Role::Server, Config::SERVER);
        assert_eq!(server.fails(bytes), Some(ErrorCode::PROTOCOL_ERROR));
        // A client that is answered at all sees SETTINGS first.
        let frames = frames(&server.write());
        assert_eq!((frames[0].kind, frames.last().map(|frame| frame.kind)), (SETTINGS, Some(GOAWAY)));
    }
    let mut client = End::new(Role::Client, Config::CLIENT);
    assert_eq!(client.fails(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Some(ErrorCode::FRAME_SIZE_ERROR));
    let mut client = End::new(Role::Client, Config::CLIENT);
    assert_eq!(client.fails(&frame(PING, 0, 0, &[0; 8])), Some(ErrorCode::PROTOCOL_ERROR));
    // An acknowledgement is no preface.
    let ack = frame(SETTINGS, ACK, 0, &[]);
    let mut server = End::new(Role::Server, Config::SERVER);
    assert_eq!(server.fails(&[&PREFACE[..], &ack].concat()), Some(ErrorCode::PROTOCOL_ERROR));
    let mut client = End::new(Role::Client, Config::CLIENT);
    client.write();
    assert_eq!(client.fails(&ack), Some(ErrorCode::PROTOCOL_ERROR));
}

#[test]
fn the_first_request_leaves_with_the_preface() {
    let mut client = End::new(Role::Client, Config::CLIENT);
    let out = client.ask(b"GET", true);
    assert!(out.starts_with(PREFACE));
    let kinds: Vec<u8> = frames(&out).iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [SETTINGS, WINDOW_UPDATE, HEADERS]);
    assert!(!client.conn.has_output());
    let mut server = End::new(Role::Server, Config::SERVER);
    let happenings = server.take(&out);
    assert_eq!(happenings, ["settings", "request 1 end Method=GET Scheme=http Authority=h Path=/"]);
    // SETTINGS of the server come first, its acknowledgement before what follows the client's settings.
    let out = server.answer(1, 200, true);
    let kinds: Vec<u8> = frames(&out).iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [SETTINGS, WINDOW_UPDATE, SETTINGS, HEADERS]);
}

#[test]
fn an_error_frees_what_was_gathered() {
    let mut server = End::server();
    server.take(&[frame(HEADERS, END_STREAM, 1, &[0; 10_000]), post(3)].concat());
    server.write();
    assert!(server.conn.is_done() && server.conn.footprint() == 0);
}

#[test]
fn nothing_is_read_after_an_error_wherever_it_is_cut() {
    // CVE-2026-27135.
    let bytes = [post(1), frame(PING, 0, 1, &[0; 8]), post(3), data(1, b"late", true)].concat();
    let failed = post(1).len() + 9;
    for cut in 0..bytes.len() {
        let mut server = End::server();
        let happenings = [server.take(&bytes[..cut]), server.take(&bytes[cut..])].concat();
        let request = "request 1 Method=POST Scheme=http Authority=h Path=/";
        assert_eq!(happenings, [request, "failed PROTOCOL_ERROR"], "cut at {cut}, the error is at {failed}");
        assert_eq!(goaways(&server.write())[0].0, 1);
    }
}

#[test]
fn nothing_happens_after_an_error() {
    let mut server = End::server();
    server.take(&post(1));
    let bytes = [frame(CONTINUATION, 4, 1, b""), post(3), frame(PING, 0, 0, &[0; 8])].concat();
    let events = server.events(&bytes);
    assert!(matches!(events[..], [Event::Failed(ConnectionError { code: ErrorCode::PROTOCOL_ERROR, .. })]));
    assert_eq!(server.events(&post(5)), []);
    let mut out = Vec::new();
    assert!(server.conn.send_answer(0, 1, 200, [], true, &mut out).is_err());
    server.conn.set_pending(1, 10, true);
    assert!(server.conn.next_data(0, 100, &mut out).is_none() && server.conn.is_done());
    server.conn.finish(0, 1);
    let frames = frames(&server.write());
    assert_eq!(frames.last().map(|frame| (frame.kind, frame.number(0))), Some((GOAWAY, 1)));
}
