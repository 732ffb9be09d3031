//! Where our client and that of the `h2` crate judge an origin's bytes differently, each with the sentence that decides it.
//!
//! Requests by GET are pending on streams 1 and 3.

use crate::h2_verdicts::{Fate, our_client, their_client};
use crate::wire::*;
use weir_http2::ErrorCode;

fn verdicts(frames: &[u8]) -> (Fate, Fate) {
    let bytes = [&settings(&[])[..], frames].concat();
    (our_client(&bytes), their_client(&bytes))
}

fn ok(more: &[(&str, &str)]) -> Vec<u8> {
    headers(3, &with(OK, more), true)
}

const PROTOCOL: ErrorCode = ErrorCode::PROTOCOL_ERROR;
const MALFORMED: Fate = Fate::Reset(PROTOCOL);
const FAILS: Fate = Fate::Connection(PROTOCOL);

#[test]
fn what_both_judge_alike() {
    for (name, bytes, fate) in [
        ("an answer", ok(&[]), Fate::Served),
        ("one with a body", [headers(3, OK, false), data(3, b"a", true)].concat(), Fate::Served),
        ("an interim one", [headers(3, &[(":status", "103")], false), ok(&[])].concat(), Fate::Served),
        ("trailers", [headers(3, OK, false), headers(3, &[("a", "b")], true)].concat(), Fate::Served),
        ("a stream that was not opened", headers(5, OK, true), FAILS),
        ("a push", frame(PUSH_PROMISE, 4, 1, &[0, 0, 0, 2]), FAILS),
        ("connection", ok(&[("connection", "close")]), MALFORMED),
        (":status behind others", headers(3, &[("a", "b"), (":status", "200")], true), MALFORMED),
        (":status twice", ok(&[(":status", "200")]), MALFORMED),
        ("no :status", headers(3, &[("a", "b")], true), MALFORMED),
        ("an interim one that ends", headers(3, &[(":status", "103")], true), MALFORMED),
        ("a length without a body", ok(&[("content-length", "5")]), MALFORMED),
        ("a body too long", [length("1"), data(3, b"ab", true)].concat(), MALFORMED),
        ("a body too short", [length("3"), data(3, b"ab", true)].concat(), MALFORMED),
        ("PRIORITY on itself", frame(PRIORITY, 0, 3, &[0, 0, 0, 3, 9]), MALFORMED),
        (
            "trailers without an end",
            [headers(3, OK, false), headers(3, &[("a", "b")], false)].concat(),
            MALFORMED,
        ),
        (
            "DATA after the end",
            [ok(&[]), data(3, b"a", true)].concat(),
            Fate::Reset(ErrorCode::STREAM_CLOSED),
        ),
        ("HEADERS after it", [ok(&[]), ok(&[])].concat(), Fate::Reset(ErrorCode::STREAM_CLOSED)),
    ] {
        assert_eq!(verdicts(&bytes), (fate, fate), "{name}");
    }
}

fn length(length: &str) -> Vec<u8> {
    headers(3, &with(OK, &[("content-length", length)]), false)
}

/// RFC 9113 §8.1.1: "Malformed requests or responses that are detected MUST be treated as a stream error (Section 5.4.2) of
/// type PROTOCOL_ERROR."
#[test]
fn malformed_answers_that_end_its_connection() {
    for (name, bytes) in [
        ("an upper-case name", ok(&[("A", "b")])),
        ("a name with a space", ok(&[("a b", "c")])),
        ("an empty name", ok(&[("", "a")])),
        ("a value with 0x01", ok(&[("a", "\u{1}")])),
        ("a value with LF", ok(&[("a", "b\nc")])),
        ("an unknown pseudo-field", ok(&[(":a", "b")])),
        (":status abc", headers(3, &[(":status", "abc")], true)),
        (":status 99", headers(3, &[(":status", "99")], true)),
        ("DATA before HEADERS", data(3, b"a", true)),
    ] {
        assert_eq!(verdicts(&bytes), (MALFORMED, FAILS), "{name}");
    }
}

#[test]
fn single_differences() {
    let is_204 = headers(3, &[(":status", "204")], false);
    for (sentence, bytes, ours, theirs) in [
        (
            "RFC 9113 8.2.1: A field value MUST NOT start or end with an ASCII whitespace character",
            ok(&[("a", " b")]),
            MALFORMED,
            Fate::Served,
        ),
        (
            "RFC 9113 8.3: Pseudo-header fields defined for requests MUST NOT appear in responses",
            ok(&[(":path", "/")]),
            MALFORMED,
            Fate::Served,
        ),
        (
            "RFC 9113 8.3: Pseudo-header fields MUST NOT appear in a trailer section",
            [headers(3, OK, false), headers(3, OK, true)].concat(),
            MALFORMED,
            Fate::Served,
        ),
        (
            "RFC 9113 8.6: HTTP/2 does not support the 101 (Switching Protocols) informational status code",
            headers(3, &[(":status", "101")], false),
            MALFORMED,
            Fate::Ignored,
        ),
        (
            "RFC 9110 8.6: either reject the message or replace the duplicated values; weir rejects, as in HTTP/1.1",
            ok(&[("content-length", "0"), ("content-length", "0")]),
            MALFORMED,
            Fate::Served,
        ),
        (
            "RFC 9110 6.4.1: 204 and 304 have no content",
            [is_204, data(3, b"ab", true)].concat(),
            MALFORMED,
            Fate::Served,
        ),
        ("RFC 9113 6.9: an increment of 0 is a stream error", update(3, 0), MALFORMED, FAILS),
        (
            "RFC 9113 6.9.1: it MUST terminate either the stream or the connection, the stream by FLOW_CONTROL_ERROR",
            update(3, 0x7fff_ffff),
            Fate::Reset(ErrorCode::FLOW_CONTROL_ERROR),
            Fate::Ignored,
        ),
        (
            "RFC 9218 7.1: if a client receives a PRIORITY_UPDATE frame, it MUST respond with a connection error",
            [ok(&[]), frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1")].concat(),
            FAILS,
            Fate::Served,
        ),
        (
            "RFC 9113 6.5.2: a client MUST treat SETTINGS_ENABLE_PUSH set to 1 as a connection error",
            [settings(&[(2, 1)]), ok(&[])].concat(),
            FAILS,
            Fate::Served,
        ),
    ] {
        assert_eq!(verdicts(&bytes), (ours, theirs), "{sentence}");
    }
}
