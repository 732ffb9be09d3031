//! Each state of a stream with each frame: the table of RFC 9113 §5.1, as a peer sees it.

use crate::end::End;
use crate::wire::*;
use weir_http2::ErrorCode;

/// What follows from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It is taken, or it means nothing any more.
    Taken,
    /// RST_STREAM.
    Stream(ErrorCode),
    /// GOAWAY.
    Connection(ErrorCode),
}

use Outcome::{Connection, Stream, Taken};

const FRAMES: [&str; 7] =
    ["HEADERS", "HEADERS+END", "DATA", "DATA+END", "RST_STREAM", "WINDOW_UPDATE", "PRIORITY"];

/// The frames on stream 5.
fn bytes(name: &str) -> Vec<u8> {
    let head: &[(&str, &str)] = &[("a", "b")];
    match name {
        "HEADERS" => headers(5, head, false),
        "HEADERS+END" => headers(5, head, true),
        "DATA" => data(5, b"a", false),
        "DATA+END" => data(5, b"a", true),
        "RST_STREAM" => reset(5, ErrorCode::CANCEL),
        "WINDOW_UPDATE" => update(5, 1),
        _ => frame(PRIORITY, 0, 5, &[0, 0, 0, 3, 1]),
    }
}

/// A server with stream 5 in this state, and stream 1 open.
fn server(state: &str) -> End {
    let mut server = End::server();
    server.take(&post(1));
    let now_ns = server.now_ns;
    match state {
        "idle" => {}
        "open" => drop(server.take(&post(5))),
        "half-closed (local)" => {
            server.take(&post(5));
            server.answer(5, 200, true);
        }
        "half-closed (remote)" => drop(server.take(&get(5))),
        "closed" => {
            server.take(&get(5));
            server.answer(5, 200, true);
            server.conn.finish(now_ns, 5);
        }
        "closed, in use" => {
            server.take(&get(5));
            server.answer(5, 200, true);
        }
        "reset here" => {
            server.take(&post(5));
            server.conn.reset(now_ns, 5, ErrorCode::CANCEL);
            server.conn.finish(now_ns, 5);
        }
        "reset there" => {
            server.take(&[post(5), reset(5, ErrorCode::CANCEL)].concat());
            server.conn.finish(now_ns, 5);
        }
        "reset there, in use" => drop(server.take(&[post(5), reset(5, ErrorCode::CANCEL)].concat())),
        "skipped" => drop(server.take(&get(7))),
        _ => panic!("{state}"),
    }
    server.write();
    server
}

fn outcome(server: &mut End, bytes: &[u8]) -> Outcome {
    server.take(bytes);
    let out = server.write();
    match (&resets(&out)[..], &goaways(&out)[..]) {
        ([], []) => Taken,
        ([(5, code)], []) => Stream(*code),
        ([], [(_, code, text)]) if !text.is_empty() => Connection(*code),
        others => panic!("{others:?}"),
    }
}

#[test]
fn every_frame_in_every_state() {
    const PROTOCOL: Outcome = Connection(ErrorCode::PROTOCOL_ERROR);
    const CLOSED: Outcome = Stream(ErrorCode::STREAM_CLOSED);
    const DEAD: Outcome = Connection(ErrorCode::STREAM_CLOSED);
    // Trailers that do not end their stream are malformed.
    const BAD: Outcome = Stream(ErrorCode::PROTOCOL_ERROR);
    let table = [
        // A request without its pseudo-fields is malformed, and may be answered.
        ("idle", [Taken, Taken, PROTOCOL, PROTOCOL, PROTOCOL, PROTOCOL, Taken]),
        ("open", [BAD, Taken, Taken, Taken, Taken, Taken, Taken]),
        ("half-closed (local)", [BAD, Taken, Taken, Taken, Taken, Taken, Taken]),
        ("half-closed (remote)", [CLOSED, CLOSED, CLOSED, CLOSED, Taken, Taken, Taken]),
        ("closed", [DEAD, DEAD, CLOSED, CLOSED, Taken, Taken, Taken]),
        ("closed, in use", [DEAD, DEAD, CLOSED, CLOSED, Taken, Taken, Taken]),
        ("reset here", [Taken, Taken, Taken, Taken, Taken, Taken, Taken]),
        ("reset there", [CLOSED, CLOSED, CLOSED, CLOSED, Taken, Taken, Taken]),
        ("reset there, in use", [CLOSED, CLOSED, CLOSED, CLOSED, Taken, Taken, Taken]),
        // §5.1.1: a lower number than one that was used.
        ("skipped", [PROTOCOL, PROTOCOL, CLOSED, CLOSED, Taken, Taken, Taken]),
    ];
    for (state, row) in table {
        for (name, expected) in FRAMES.iter().zip(row) {
            let mut server = server(state);
            let outcome = outcome(&mut server, &bytes(name));
            assert_eq!(outcome, expected, "{name} in state {state}");
            // Nothing is harmed but what the outcome names.
            let is_dead = matches!(outcome, Connection(_));
            assert_eq!(server.is_alive(), !is_dead, "{name} in state {state}");
            let neighbour = server.take(&data(1, b"x", true));
            let expected: &[&str] = if is_dead { &[] } else { &["data 1 x", "end 1"] };
            assert_eq!(neighbour, expected, "{name} in state {state}");
        }
    }
}

#[test]
fn a_reset_stream_is_forgotten_after_a_while() {
    let mut server = server("reset here");
    server.now_ns += 10_000_000_000;
    server.conn.on_time(server.now_ns).expect("nothing is late");
    assert_eq!(outcome(&mut server, &bytes("DATA")), Stream(ErrorCode::STREAM_CLOSED));
    assert_eq!(outcome(&mut server, &bytes("DATA")), Taken);
}

#[test]
fn servers_open_no_streams() {
    for (name, bytes) in [
        ("an even stream", headers(2, OK, true)),
        ("a stream that was not asked for", headers(5, OK, true)),
        ("DATA on one", data(5, b"a", true)),
        ("a push", frame(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2][..], &block(GET)].concat())),
        ("a reset of none", reset(2, ErrorCode::CANCEL)),
        ("an update of none", update(7, 1)),
        ("PRIORITY_UPDATE", frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1")),
    ] {
        let mut client = End::client(1);
        assert_eq!(client.fails(&bytes), Some(ErrorCode::PROTOCOL_ERROR), "{name}");
    }
}

#[test]
fn trailers_on_a_forgotten_reset_end_no_connection() {
    let trailers = bytes("HEADERS+END");
    let mut late = server("reset here");
    late.now_ns += 10_000_000_000;
    late.conn.on_time(late.now_ns).expect("nothing is late");
    assert_eq!(outcome(&mut late, &trailers), Stream(ErrorCode::STREAM_CLOSED));
    assert_eq!(outcome(&mut late, &trailers), Taken);
    // Many resets later.
    let mut busy = server("reset here");
    for i in 0..300 {
        busy.take(&post(2 * i + 7));
        busy.conn.reset(busy.now_ns, 2 * i + 7, ErrorCode::CANCEL);
        busy.conn.finish(busy.now_ns, 2 * i + 7);
        busy.write();
    }
    assert_eq!(outcome(&mut busy, &trailers), Stream(ErrorCode::STREAM_CLOSED));
    // Of a later one that has come to its end, the end is known.
    busy.take(&get(1001));
    busy.answer(1001, 200, true);
    busy.conn.finish(busy.now_ns, 1001);
    busy.write();
    assert_eq!(busy.fails(&headers(1001, &[("a", "b")], true)), Some(ErrorCode::STREAM_CLOSED));
}

#[test]
fn an_idle_stream_is_not_reset() {
    let itself = frame(PRIORITY, 0, 9, &[0, 0, 0, 9, 0]);
    let short = frame(PRIORITY, 0, 9, &[0; 4]);
    for (bytes, code) in [(&itself, ErrorCode::PROTOCOL_ERROR), (&short, ErrorCode::FRAME_SIZE_ERROR)] {
        let mut server = server("idle");
        assert_eq!(outcome(&mut server, bytes), Connection(code));
        // The requests of others are on an origin's connection.
        let mut client = End::client(4);
        client.take(bytes);
        assert!(resets(&client.write()).is_empty());
        client.ask(b"GET", true);
        assert_eq!(client.take(&headers(9, OK, true)), ["answer 9 200 end"]);
    }
}
