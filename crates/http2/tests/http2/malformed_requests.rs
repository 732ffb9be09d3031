//! A client's connection has four requests pending, and a fifth is malformed: it ends alone (RFC 9113 §8.1.1).

use crate::end::End;
use crate::wire::*;
use weir_http2::{ErrorCode, Malformed};

/// Runs a fifth request, on stream 9, on a connection with four others; returns the name of its fault.
fn fault(bytes: &[u8]) -> String {
    let mut server = End::server();
    for stream in [1, 3, 5, 7] {
        server.take(&post(stream));
    }
    let happenings = server.take(bytes);
    let last = happenings.last().expect("something happens").clone();
    let mut words = last.split(' ');
    assert_eq!((words.next(), words.next()), (Some("malformed"), Some("9")), "{happenings:?}");
    let name = words.next().expect("a name").to_owned();
    let may_answer = words.next().is_some();
    if may_answer {
        server.answer(9, 400, true);
    }
    server.conn.finish(server.now_ns, 9);
    // It was reset, once, with its code, and nothing else was; one over a limit has ended with its answer.
    let why = Malformed::all().find(|why| why.name() == name).expect("known");
    let expected = if why.status() == 400 { vec![(9, why.code())] } else { vec![] };
    let out = server.write();
    assert_eq!((resets(&out), goaways(&out)), (expected, vec![]), "{name}");
    for stream in [1, 3, 5, 7] {
        let ended = server.take(&data(stream, b"x", true));
        assert_eq!(ended, [format!("data {stream} x"), format!("end {stream}")], "{name}");
        server.answer(stream, 200, true);
        server.conn.finish(server.now_ns, stream);
    }
    assert!(server.is_alive() && server.conn.streams() == 0, "{name}");
    name
}

fn head(fields: &[(&str, &str)]) -> String {
    fault(&headers(9, fields, true))
}

fn field(name: &str, value: &str) -> String {
    head(&with(GET, &[(name, value)]))
}

#[test]
fn names_and_values() {
    for (name, value, expected) in [
        ("X-Upper", "a", "name-upper"),
        ("a b", "a", "name-invalid"),
        ("a:", "a", "name-invalid"),
        ("a\r", "a", "name-invalid"),
        ("", "a", "name-empty"),
        ("\u{e9}", "a", "name-invalid"),
        ("a", "b\0", "value-invalid"),
        ("a", "b\u{1}c", "value-invalid"),
        ("a", "b\nc", "value-invalid"),
        ("a", "b\rc", "value-invalid"),
        ("a", "b\u{7f}", "value-invalid"),
        ("a", " b", "value-blank"),
        ("a", "b\t", "value-blank"),
        ("connection", "close", "connection-field"),
        ("keep-alive", "1", "connection-field"),
        ("proxy-connection", "a", "connection-field"),
        ("transfer-encoding", "chunked", "connection-field"),
        ("upgrade", "h2c", "connection-field"),
        ("te", "gzip", "te"),
        ("te", "trailers, gzip", "te"),
        ("host", "other", "authority-differs"),
        ("content-length", "+1", "length-invalid"),
        ("content-length", "1, 1", "length-invalid"),
        ("content-length", "01", "length-invalid"),
        ("content-length", "", "length-invalid"),
        ("content-length", "5", "body-too-short"),
    ] {
        assert_eq!(field(name, value), expected, "{name:?}: {value:?}");
    }
    assert_eq!(head(&with(GET, &[("host", "h"), ("host", "h")])), "host-twice");
    assert_eq!(head(&with(GET, &[("content-length", "0"), ("content-length", "0")])), "length-twice");
}

#[test]
fn pseudo_fields() {
    let (method, scheme, path) = ((":method", "GET"), (":scheme", "http"), (":path", "/"));
    let authority = (":authority", "h");
    for (fields, expected) in [
        (&[method, scheme, path, ("a", "b"), authority][..], "pseudo-late"),
        (&[method, method, scheme, path], "pseudo-twice"),
        (&[method, scheme, path, path], "pseudo-twice"),
        (&[method, scheme, path, (":other", "a")], "pseudo-unknown"),
        (&[method, scheme, path, (":status", "200")], "pseudo-unknown"),
        (&[scheme, path], "pseudo-missing"),
        (&[method, path], "pseudo-missing"),
        (&[method, scheme], "pseudo-missing"),
        (&[], "pseudo-missing"),
        (&[("a", "b")], "pseudo-missing"),
        (&[method, scheme, (":path", "")], "path"),
        (&[method, scheme, (":path", "a")], "path"),
        (&[method, scheme, (":path", "*")], "path"),
        (&[method, scheme, (":path", "/\n")], "value-invalid"),
        (&[(":method", "G T"), scheme, path], "method"),
        (&[(":method", ""), scheme, path], "method"),
        (&[method, (":scheme", "ht tp"), path], "scheme"),
        (&[method, (":scheme", ""), path], "scheme"),
        (&[method, scheme, path, (":authority", "u@h")], "authority"),
        (&[method, scheme, path, (":authority", "")], "authority"),
        (&[(":method", "CONNECT"), (":scheme", "http"), authority], "pseudo-of-connect"),
        (&[(":method", "CONNECT")], "pseudo-missing"),
        (&[(":method", "CONNECT"), (":protocol", "a"), authority], "pseudo-missing"),
        (&[method, scheme, path, (":protocol", "a")], "protocol"),
    ] {
        assert_eq!(head(fields), expected, "{fields:?}");
    }
}

#[test]
fn bodies_and_trailers() {
    let upload = |length| headers(9, &with(POST, &[("content-length", length)]), false);
    let trailers = |fields: &[(&str, &str)], is_end| headers(9, fields, is_end);
    for (name, bytes, expected) in [
        ("longer", [upload("1"), data(9, b"ab", false)], "body-too-long"),
        ("shorter", [upload("5"), data(9, b"ab", true)], "body-too-short"),
        ("none", [upload("5"), data(9, b"", true)], "body-too-short"),
        ("ended by trailers", [upload("5"), trailers(&[("a", "b")], true)], "body-too-short"),
        ("a pseudo-field", [post(9), trailers(&[(":path", "/")], true)], "pseudo-in-trailers"),
        ("upper case", [post(9), trailers(&[("A", "b")], true)], "name-upper"),
        ("of a connection", [post(9), trailers(&[("connection", "a")], true)], "connection-field"),
        ("unended trailers", [post(9), trailers(&[("a", "b")], false)], "trailers-unended"),
    ] {
        assert_eq!(fault(&bytes.concat()), expected, "{name}");
    }
}

#[test]
fn frames_that_end_their_stream() {
    let depends = frame(HEADERS, END_HEADERS | END_STREAM | DEPENDENT, 9, &{
        let mut payload = vec![0, 0, 0, 9, 1];
        payload.extend_from_slice(&block(GET));
        payload
    });
    for (name, bytes, expected) in [
        ("an update of nothing", [post(9), update(9, 0)].concat(), "window-zero"),
        ("a window too large", [post(9), update(9, 0x7fff_ffff)].concat(), "window-overflow"),
        ("DATA after the end", [get(9), data(9, b"a", false)].concat(), "stream-closed"),
        ("HEADERS after the end", [get(9), headers(9, &[("a", "b")], true)].concat(), "stream-closed"),
        ("HEADERS on itself", depends, "self-dependency"),
        (
            "PRIORITY on itself",
            [post(9), frame(PRIORITY, 0, 9, &[0, 0, 0, 9, 0])].concat(),
            "self-dependency",
        ),
        ("a short PRIORITY", [post(9), frame(PRIORITY, 0, 9, &[0; 4])].concat(), "priority-size"),
    ] {
        assert_eq!(fault(&bytes), expected, "{name}");
    }
}

#[test]
fn a_body_beyond_its_window() {
    let mut bytes = post(9);
    for _ in 0..4 {
        bytes.extend_from_slice(&data(9, &[0; 16_384], false));
    }
    bytes.extend_from_slice(&data(9, &[0], false));
    assert_eq!(fault_without_passing(&bytes), ["malformed 9 window-passed"]);
}

fn fault_without_passing(bytes: &[u8]) -> Vec<String> {
    let mut server = End::server();
    server.is_passing = false;
    let mut happenings = server.take(bytes);
    assert!(server.is_alive());
    happenings.retain(|happening| happening.starts_with("malformed"));
    happenings
}

#[test]
fn heads_beyond_the_limits_may_be_answered() {
    let large = "v".repeat(40_000);
    let many: Vec<(&str, &str)> = (0..101).map(|_| ("a", "b")).collect();
    let crumbs: Vec<(&str, &str)> = (0..401).map(|_| ("cookie", "a=b")).collect();
    for (fields, expected) in [
        (with(GET, &[("a", &large)]), "head-too-large"),
        (with(GET, &many), "too-many-fields"),
        (with(GET, &crumbs), "too-many-fields"),
    ] {
        let block = block(&fields);
        let mut bytes = frame(HEADERS, END_STREAM, 9, &block[..10]);
        let pieces: Vec<&[u8]> = block[10..].chunks(16_384).collect();
        for (i, piece) in pieces.iter().enumerate() {
            let flags = if i + 1 == pieces.len() { END_HEADERS } else { 0 };
            bytes.extend_from_slice(&frame(CONTINUATION, flags, 9, piece));
        }
        assert_eq!(fault(&bytes), expected);
    }
    let honest: Vec<(&str, &str)> = (0..180).map(|_| ("cookie", "a=b")).collect();
    let mut server = End::server();
    assert!(server.take(&headers(1, &with(GET, &honest), true))[0].starts_with("request 1 end"));
}

/// A block in frames of this length.
fn in_frames(stream: u32, block: &[u8], length: usize) -> Vec<u8> {
    let pieces: Vec<&[u8]> = block.chunks(length).collect();
    let frames = pieces.iter().enumerate().map(|(i, piece)| {
        let (kind, end) = if i == 0 { (HEADERS, END_STREAM) } else { (CONTINUATION, 0) };
        let flags = end | if i + 1 == pieces.len() { END_HEADERS } else { 0 };
        frame(kind, flags, stream, piece)
    });
    frames.flatten().collect()
}

#[test]
fn a_head_that_is_not_held_is_refused_and_the_table_follows() {
    let indexed = |name: &str, value: &str| [&[0x40], &block(&[(name, value)])[1..]].concat();
    let many: Vec<u8> = (0..1000).flat_map(|i| indexed(&format!("x-{i}"), &"v".repeat(200))).collect();
    let name = [block(GET), block(&[(&"n".repeat(100_000), "v")])].concat();
    let value = [block(GET), block(&[("a", &"v".repeat(250_000))])].concat();
    for (long, expected) in [
        ([block(GET), many].concat(), "too-many-fields"),
        (name, "head-too-large"),
        (value, "head-too-large"),
    ] {
        // A field is put into the table behind all of it.
        let long = [long, indexed("x-last", "kept")].concat();
        let reference = [block(GET), vec![0xbe]].concat();
        for length in [16_384, 10_000] {
            let mut server = End::server();
            let bytes =
                [in_frames(1, &long, length), frame(HEADERS, END_STREAM | END_HEADERS, 3, &reference)]
                    .concat();
            let fields = "Method=GET Scheme=http Authority=h Path=/ x-last=kept";
            let expected = [format!("malformed 1 {expected} may-answer"), format!("request 3 end {fields}")];
            // Cut anywhere, it says and holds the same.
            for piece in [bytes.len(), 9, 1000, 20_000] {
                let (mut happenings, mut held) = (Vec::new(), 0);
                server = End::server();
                for piece in bytes.chunks(piece) {
                    happenings.extend(server.take(piece));
                    held = held.max(server.conn.footprint());
                }
                assert_eq!(happenings, expected);
                assert!(held < 100_000, "{held} bytes are held");
            }
            server.answer(1, 431, true);
            server.conn.finish(0, 1);
            assert!(resets(&server.write()).is_empty() && server.is_alive());
        }
    }
}

#[test]
fn its_fields_are_known_as_far_as_they_were_held() {
    let mut server = End::server();
    let long = [block(&with(GET, &[("x-first", "1")])), block(&[("a", &"v".repeat(100_000))])].concat();
    let bytes = in_frames(1, &long, 16_384);
    // The answer need not wait for the rest.
    assert_eq!(server.take(&bytes[..5 * 16_384]), ["malformed 1 head-too-large may-answer"]);
    assert_eq!(server.fields(), "Method=GET Scheme=http Authority=h Path=/ x-first=1");
    server.answer(1, 431, true);
    server.conn.finish(0, 1);
    assert!(server.take(&bytes[5 * 16_384..]).is_empty() && server.is_alive());
}

#[test]
fn a_head_far_beyond_the_limit_ends_the_connection() {
    let calm = Some(ErrorCode::ENHANCE_YOUR_CALM);
    for (bytes, expected) in [(250_000, None), (270_000, calm)] {
        let long = [block(GET), block(&[("a", &"v".repeat(bytes))])].concat();
        assert_eq!(End::server().fails(&in_frames(1, &long, 16_384)), expected, "{bytes}");
    }
    // Many of them within 10 s are a flood, since each is work.
    let mut server = End::server();
    let long = [block(GET), block(&[("a", &"v".repeat(200_000))])].concat();
    let ended = (0..100).find(|i| {
        let stream = 2 * i + 1;
        let failed = server.fails(&in_frames(stream, &long, 16_384));
        server.conn.finish(0, stream);
        failed == calm
    });
    assert!(ended.is_some_and(|count| count < 6), "{ended:?}");
}

#[test]
fn trailers_that_are_not_held_end_their_stream() {
    let long = in_frames(1, &block(&[("a", &"v".repeat(100_000))]), 16_384);
    let mut server = End::server();
    assert_eq!(server.take(&[post(1), post(3), long.clone()].concat())[2..], ["malformed 1 head-too-large"]);
    assert_eq!(resets(&server.write()), [(1, ErrorCode::ENHANCE_YOUR_CALM)]);
    assert!(server.is_alive());
    // On a stream that is over nothing is said.
    let mut server = End::server();
    server.take(&[post(1), reset(1, ErrorCode::CANCEL)].concat());
    assert!(server.events(&long).is_empty() && server.is_alive());
    // An origin's answer, too.
    let mut client = End::client(2);
    assert_eq!(client.take(&long), ["malformed 1 head-too-large"]);
    assert_eq!(client.take(&headers(3, OK, true)), ["answer 3 200 end"]);
}

#[test]
fn a_body_behind_a_malformed_head_is_dropped() {
    let mut server = End::server();
    let bytes = [
        headers(1, &with(POST, &[("A", "b")]), false),
        data(1, b"dropped", false),
        headers(1, &[("a", "b")], true),
    ]
    .concat();
    assert_eq!(server.take(&bytes), ["malformed 1 name-upper may-answer"]);
    server.answer(1, 400, true);
    server.conn.finish(0, 1);
    assert_eq!(resets(&server.write()), [(1, ErrorCode::PROTOCOL_ERROR)]);
    assert!(server.is_alive());
}
