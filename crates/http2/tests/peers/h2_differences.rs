//! Where our server and that of the `h2` crate judge a client's bytes differently, each with the sentence that decides it.
//!
//! A request is pending on stream 1. What comes then is judged by what becomes of stream 3, and of the connection.

use crate::h2_verdicts::{Fate, NoFields, our_server as ours, their_server as theirs};
use crate::pipe::{Half, Pipe};
use crate::wire::*;
use bytes::Bytes;
use std::task::{Context, Poll, Waker};
use weir_http2::*;

const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
const CLOSED: ErrorCode = ErrorCode::STREAM_CLOSED;
const SIZE: ErrorCode = ErrorCode::FRAME_SIZE_ERROR;
const FLOW: ErrorCode = ErrorCode::FLOW_CONTROL_ERROR;

/// The verdicts of both on these frames behind a request on stream 1.
fn verdicts(frames: &[u8]) -> (Fate, Fate) {
    let bytes = [&opening()[..], &get(1), frames].concat();
    (ours(&bytes, 100), theirs(&bytes, 100))
}

/// A request on stream 3 with these fields besides its own.
fn fields(more: &[(&str, &str)]) -> Vec<u8> {
    headers(3, &with(GET, more), true)
}

fn length(stream: u32, length: &str) -> Vec<u8> {
    headers(stream, &with(POST, &[("content-length", length)]), false)
}

#[test]
fn what_both_judge_alike() {
    let (served, reset, fails) = (Fate::Served, Fate::Reset(PROTOCOL), Fate::Connection);
    let dependent = [post(3), frame(PRIORITY, 0, 3, &[0, 0, 0, 3, 9])].concat();
    for (name, bytes, fate) in [
        ("a request", get(3), served),
        ("fields", fields(&[("a", "b"), ("cookie", "c=d"), ("te", "trailers")]), served),
        ("unknown frames", [frame(0xfe, 7, 3, b"abc"), get(3)].concat(), served),
        ("PRIORITY before", [frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 9]), get(3)].concat(), served),
        ("a padded head", frame(HEADERS, 5 | PADDED, 3, &[&[2][..], &block(GET), &[0; 2]].concat()), served),
        ("a request behind GOAWAY", [goaway(0, ErrorCode::NO_ERROR), get(3)].concat(), served),
        ("a lower stream", [get(5), get(3)].concat(), fails(PROTOCOL)),
        ("an even stream", get(4), fails(PROTOCOL)),
        ("DATA on an idle stream", data(3, b"a", true), fails(PROTOCOL)),
        ("an update of an idle stream", update(3, 1), fails(PROTOCOL)),
        ("too much padding", [post(3), frame(DATA, PADDED, 3, &[5, 0])].concat(), fails(PROTOCOL)),
        ("a frame that is too long", data(3, &[0; 16_385], true), fails(SIZE)),
        ("CONTINUATION of nothing", frame(CONTINUATION, 4, 3, b""), fails(PROTOCOL)),
        ("a block that is interrupted", [frame(HEADERS, 1, 3, b""), get(5)].concat(), fails(PROTOCOL)),
        ("a push", frame(PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]), fails(PROTOCOL)),
        (
            "the connection's window passed",
            [post(3), data(3, &[0; 16_384], false).repeat(5)].concat(),
            fails(FLOW),
        ),
        ("the connection's window too large", update(0, 0x7fff_ffff), fails(FLOW)),
        ("a stream's window too large", [post(3), update(3, 0x7fff_ffff)].concat(), Fate::Reset(FLOW)),
        ("ENABLE_PUSH of 2", settings(&[(2, 2)]), fails(PROTOCOL)),
        ("MAX_FRAME_SIZE of 0", settings(&[(5, 0)]), fails(PROTOCOL)),
        ("a body too long", [length(3, "1"), data(3, b"ab", true)].concat(), reset),
        ("a body too short", [length(3, "3"), data(3, b"ab", true)].concat(), reset),
        ("trailers without an end", [post(3), headers(3, &[("a", "b")], false)].concat(), reset),
        ("PRIORITY on itself", dependent, reset),
        ("DATA after a reset", [post(3), reset_of(3), data(3, b"a", true)].concat(), Fate::Reset(CLOSED)),
    ] {
        assert_eq!(verdicts(&bytes), (fate, fate), "{name}");
    }
}

fn reset_of(stream: u32) -> Vec<u8> {
    reset(stream, ErrorCode::CANCEL)
}

/// RFC 9113 §8.1.1: "Malformed requests or responses that are detected MUST be treated as a stream error (Section 5.4.2) of
/// type PROTOCOL_ERROR."
#[test]
fn malformed_requests_that_end_its_connection() {
    for (name, bytes) in [
        ("an upper-case name", fields(&[("A", "b")])),
        ("a name with a space", fields(&[("a b", "c")])),
        ("an empty name", fields(&[("", "a")])),
        ("a value with 0x01", fields(&[("a", "\u{1}")])),
        ("a value with LF", fields(&[("a", "b\nc")])),
        ("an unknown pseudo-field", fields(&[(":a", "b")])),
    ] {
        assert_eq!(verdicts(&bytes), (Fate::Answered, Fate::Connection(PROTOCOL)), "{name}");
    }
}

/// RFC 9113 §8.1.1: "For malformed requests, a server MAY send an HTTP response prior to closing or resetting the stream."
#[test]
fn malformed_requests_that_it_does_not_answer() {
    for (name, bytes) in [
        ("connection", fields(&[("connection", "close")])),
        ("te: gzip", fields(&[("te", "gzip")])),
        ("a pseudo-field behind others", fields(&[("a", "b"), (":path", "/")])),
        ("two paths", fields(&[(":path", "/b")])),
        ("no path", headers(3, &GET[..3], true)),
        (":status in a request", fields(&[(":status", "200")])),
        ("a length that is none", fields(&[("content-length", "+0")])),
        ("a length without a body", fields(&[("content-length", "5")])),
    ] {
        assert_eq!(verdicts(&bytes), (Fate::Answered, Fate::Reset(PROTOCOL)), "{name}");
    }
}

#[test]
fn single_differences_of_messages() {
    let (served, answered) = (Fate::Served, Fate::Answered);
    for (sentence, bytes, ours, theirs) in [
        (
            "RFC 9113 8.2.1: A field value MUST NOT start or end with an ASCII whitespace character",
            fields(&[("a", " b")]),
            answered,
            served,
        ),
        (
            "RFC 9113 8.3.1: A server SHOULD treat a request as malformed if it contains a Host header field that \
             identifies an entity that differs from the entity in the :authority pseudo-header field",
            fields(&[("host", "other")]),
            answered,
            served,
        ),
        (
            "RFC 9110 8.6: the recipient MUST either reject the message as invalid or replace the duplicated field \
             values; weir rejects, as in HTTP/1.1",
            fields(&[("content-length", "0"), ("content-length", "0")]),
            answered,
            served,
        ),
        (
            "RFC 6585 5: 431, too many fields; weir has a limit of their number",
            fields(&[("a", "b"); 101]),
            answered,
            served,
        ),
        (
            "RFC 9113 8.3: Pseudo-header fields MUST NOT appear in a trailer section",
            [post(3), headers(3, &[(":path", "/")], true)].concat(),
            Fate::Reset(PROTOCOL),
            served,
        ),
    ] {
        assert_eq!(verdicts(&bytes), (ours, theirs), "{sentence}");
    }
}

#[test]
fn single_differences_of_frames() {
    let (reset, fails) = (Fate::Reset, Fate::Connection);
    for (sentence, bytes, ours, theirs) in [
        (
            "RFC 9113 6.9: an increment of 0 is a stream error of type PROTOCOL_ERROR",
            [post(3), update(3, 0)].concat(),
            reset(PROTOCOL),
            fails(PROTOCOL),
        ),
        (
            "RFC 9113 5.1, half-closed (remote): it MUST respond with a stream error of type STREAM_CLOSED",
            [get(3), data(3, b"a", true)].concat(),
            reset(CLOSED),
            fails(PROTOCOL),
        ),
        (
            "the same, by HEADERS",
            [get(3), headers(3, &[("a", "b")], true)].concat(),
            reset(CLOSED),
            fails(PROTOCOL),
        ),
        (
            "RFC 9113 5.1, closed: an endpoint that receives any frames after receiving RST_STREAM MUST treat that as a \
             stream error of type STREAM_CLOSED",
            [post(3), reset_of(3), get(3)].concat(),
            reset(CLOSED),
            fails(PROTOCOL),
        ),
        (
            "RFC 9113 6.3: a length other than 5 octets is a stream error of type FRAME_SIZE_ERROR",
            [post(3), frame(PRIORITY, 0, 3, &[0; 4])].concat(),
            reset(SIZE),
            fails(PROTOCOL),
        ),
        (
            "RFC 9113 6.4: a length other than 4 octets is a connection error of type FRAME_SIZE_ERROR",
            [post(3), frame(RST_STREAM, 0, 3, &[0; 3])].concat(),
            fails(SIZE),
            fails(PROTOCOL),
        ),
        (
            "RFC 9113 6.7: a length other than 8 is a connection error of type FRAME_SIZE_ERROR",
            frame(PING, 0, 0, &[0; 7]),
            fails(SIZE),
            fails(PROTOCOL),
        ),
        (
            "RFC 9113 4.3: it MUST terminate the connection with a connection error of type COMPRESSION_ERROR",
            frame(HEADERS, 5, 3, &[0x80]),
            fails(ErrorCode::COMPRESSION_ERROR),
            fails(PROTOCOL),
        ),
        (
            "RFC 9113 4.2: FRAME_SIZE_ERROR if a frame is too small to contain mandatory frame data (RFC 9218 7.1)",
            [get(3), frame(PRIORITY_UPDATE, 0, 0, &[0; 3])].concat(),
            fails(SIZE),
            Fate::Served,
        ),
    ] {
        assert_eq!(verdicts(&bytes), (ours, theirs), "{sentence}");
    }
}

/// RFC 9113 §5.4.2: "The peer that sends the RST_STREAM frame MUST be prepared to receive any frames that were sent or
/// enqueued for sending by the remote peer."
#[test]
fn trailers_of_a_refused_request() {
    let bytes = [opening(), get(1), post(3), headers(3, &[("a", "b")], true)].concat();
    assert_eq!(ours(&bytes, 1), Fate::Reset(ErrorCode::REFUSED_STREAM));
    assert_eq!(theirs(&bytes, 1), Fate::Connection(PROTOCOL));
}

/// RFC 9113 §6.9.2: "A sender MUST track the negative flow-control window and MUST NOT send new flow-controlled frames
/// until it receives WINDOW_UPDATE frames that cause the flow-control window to become positive." They must come.
#[test]
fn a_window_that_settings_make_negative() {
    const WINDOW: u32 = 10_000;
    let early = [opening(), post(1), data(1, &[0; 9_999], false), data(1, &[0; 9_999], false)].concat();
    let ack = frame(SETTINGS, ACK, 0, b"");
    let has_update = |bytes: &[u8]| frames(bytes).iter().any(|f| f.kind == WINDOW_UPDATE && f.stream == 1);

    let mut conn = Connection::new(Role::Server, Config { stream_window: WINDOW, ..Config::SERVER });
    let (mut scratch, mut out) = (Scratch::default(), Vec::new());
    for bytes in [early.clone(), ack.clone()] {
        let mut rest = &bytes[..];
        while let Received { used, event: Some(event) } = conn.receive(1, rest, &mut NoFields, &mut scratch) {
            if let Event::Data { stream, range, .. } = event {
                conn.release(stream, range.len());
            }
            rest = &rest[used..];
        }
        conn.write(1, &mut out);
    }
    assert!(has_update(&out));

    let (incoming, outgoing) = (Half::default(), Half::default());
    incoming.borrow_mut().extend(&early);
    let io = Pipe { incoming: incoming.clone(), outgoing: outgoing.clone(), most: usize::MAX };
    let cx = &mut Context::from_waker(Waker::noop());
    let mut handshake =
        Box::pin(h2::server::Builder::new().initial_window_size(WINDOW).handshake::<_, Bytes>(io));
    let Poll::Ready(Ok(mut connection)) = handshake.as_mut().poll(cx) else { panic!("a handshake") };
    let Poll::Ready(Some(Ok((request, _respond)))) = connection.poll_accept(cx) else { panic!("a request") };
    let mut body = request.into_body();
    for turn in 0..10 {
        while let Poll::Ready(Some(Ok(bytes))) = body.poll_data(cx) {
            body.flow_control().release_capacity(bytes.len()).expect("it was received");
        }
        if turn == 5 {
            incoming.borrow_mut().extend(&ack);
        }
        assert!(connection.poll_accept(cx).is_pending());
    }
    let bytes: Vec<u8> = outgoing.borrow_mut().drain(..).collect();
    assert!(!has_update(&bytes), "the crate was repaired: `h2_sides` may have small windows");
}
