//! What keeps a loop busy with nothing ends the connection with ENHANCE_YOUR_CALM (RFC 9113 §10.5), a test for each class;
//! and what looks like it but is honest does not.

use crate::end::End;
use crate::wire::*;
use weir_http2::{Config, ErrorCode, Role};

const CALM: Option<ErrorCode> = Some(ErrorCode::ENHANCE_YOUR_CALM);
const MS: u64 = 1_000_000;

/// How many times these frames come until the connection ends, at most `most`; what it owes is written each time.
fn flood(end: &mut End, most: u32, mut frames: impl FnMut(u32) -> Vec<u8>) -> Option<u32> {
    let mut held = 0;
    for i in 0..most {
        let failed = end.fails(&frames(i));
        held = held.max(end.conn.footprint());
        end.write();
        if failed.is_some() {
            assert_eq!(failed, CALM);
            assert!(held < 80 * 1024, "{held} bytes were held");
            return Some(i);
        }
    }
    None
}

fn ends_within(name: &str, most: u32, frames: impl FnMut(u32) -> Vec<u8>) {
    let mut server = End::server();
    server.take(&post(1));
    let ended = flood(&mut server, 20_000, frames);
    assert!(ended.is_some_and(|count| (10..=most).contains(&count)), "{name}: {ended:?}");
}

/// The stream of the i-th request behind the first.
fn stream(i: u32) -> u32 {
    2 * i + 3
}

#[test]
fn frames_that_bring_nothing() {
    ends_within("PING", 1100, |_| frame(PING, 0, 0, &[0; 8]));
    ends_within("SETTINGS", 1100, |_| settings(&[]));
    ends_within("SETTINGS that say much", 200, |_| settings(&[(4, 1); 100]));
    ends_within("acknowledgements of nothing", 1100, |_| frame(SETTINGS, ACK, 0, &[]));
    ends_within("answers to no PING", 1100, |_| frame(PING, ACK, 0, &[0; 8]));
    ends_within("PRIORITY", 1100, |i| frame(PRIORITY, 0, 1, &[0, 0, 0, i as u8 & 0xfe, 1]));
    ends_within("PRIORITY_UPDATE", 1100, |_| frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1"));
    ends_within("unknown frames", 1100, |_| frame(0x42, 0, 0, b"abc"));
    ends_within("empty DATA", 1100, |_| data(1, b"", false));
    ends_within("DATA of nothing but padding", 1100, |_| frame(DATA, PADDED, 1, &[3, 0, 0, 0]));
    ends_within("WINDOW_UPDATE", 1200, |_| update(0, 1));
    ends_within("WINDOW_UPDATE of a stream", 1200, |_| update(1, 1));
    ends_within("resets of nothing", 1100, |_| {
        [get(3), reset(1, ErrorCode::CANCEL)].concat().split_off(get(3).len())
    });
    ends_within("GOAWAY", 1100, |_| goaway(0, ErrorCode::NO_ERROR));
}

#[test]
fn answers_that_are_not_taken() {
    // Nothing is written between: what is owed is bounded in itself, and over many periods.
    for bytes in [frame(PING, 0, 0, &[0; 8]), settings(&[])] {
        let mut server = End::server();
        let ended = (0..20_000).find(|_| {
            server.now_ns += 20 * MS;
            server.fails(&bytes) == CALM
        });
        assert!(ended.is_some_and(|count| count > 900), "{ended:?}");
        assert!(server.conn.footprint() < 32 * 1024);
    }
}

#[test]
fn rapid_reset() {
    // CVE-2023-44487.
    ends_within("at once", 1100, |i| [get(stream(i)), reset(stream(i), ErrorCode::CANCEL)].concat());
    // Its user has finished with each at once, so that nothing but the account counts; a byte of a body changes nothing.
    let mut server = End::server();
    let ended = (0..20_000).find(|i| {
        let id = stream(*i);
        let bytes = [post(id), data(id, b"a", false), reset(id, ErrorCode::CANCEL)].concat();
        let failed = server.fails(&bytes);
        server.conn.finish(server.now_ns, id);
        failed == CALM
    });
    assert!(ended.is_some_and(|count| count < 1100), "{ended:?}");
}

#[test]
fn resets_that_the_peer_provokes() {
    // CVE-2025-8671.
    type Frames = fn(u32) -> Vec<u8>;
    let kinds: [(&str, Frames); 7] = [
        ("an update of nothing", |id| [post(id), update(id, 0)].concat()),
        ("a window too large", |id| [post(id), update(id, 0x7fff_ffff)].concat()),
        ("DATA after the end", |id| [get(id), data(id, b"a", false)].concat()),
        ("PRIORITY on itself", |id| {
            [post(id), frame(PRIORITY, 0, id, &[&id.to_be_bytes()[..], &[0]].concat())].concat()
        }),
        ("a wrong length", |id| {
            [headers(id, &with(POST, &[("content-length", "1")]), false), data(id, b"ab", true)].concat()
        }),
        ("a malformed head", |id| headers(id, &with(GET, &[("A", "b")]), true)),
        ("a malformed head that is answered", |id| headers(id, &with(GET, &[("A", "b")]), true)),
    ];
    for (name, bytes) in kinds {
        let mut server = End::server();
        let mut most = 0;
        let ended = (0..20_000).find(|i| {
            let failed = server.fails(&bytes(stream(*i)));
            if name.ends_with("answered") && failed.is_none() {
                server.answer(stream(*i), 400, true);
            }
            server.conn.finish(server.now_ns, stream(*i));
            most = most.max(server.conn.footprint());
            failed == CALM
        });
        assert!(ended.is_some_and(|count| count < 1100), "{name}: {ended:?}");
        assert!(most < 64 * 1024, "{name}: {most}");
    }
}

#[test]
fn streams_beyond_the_limit() {
    ends_within("refused", 1200, |i| get(stream(i)));
}

#[test]
fn a_client_that_does_not_know_the_limit_is_refused_and_no_more() {
    let mut server = End::server();
    let many: Vec<u8> = (0..1000).flat_map(|i| get(stream(i))).collect();
    assert_eq!(server.take(&many).len(), 100);
    assert_eq!(resets(&server.write()).len(), 900);
    assert!(server.is_alive());
}

#[test]
fn a_body_in_crumbs() {
    // CVE-2019-9511 and 9517: bodies wait, and the client's windows give a byte at a time.
    let mut server = End::server();
    server.take(&settings(&[(4, 0)]));
    for i in 0..90 {
        server.take(&get(stream(i)));
        server.answer(stream(i), 200, false);
        server.conn.set_pending(stream(i), 1 << 20, true);
    }
    let held = server.conn.footprint();
    let ended = (0..20_000).find(|i| {
        let failed = server.fails(&[update(stream(i % 90), 1), update(0, 1)].concat());
        server.write();
        server.turns();
        failed == CALM
    });
    assert!(ended.is_some_and(|count| count < 1100) && held < 20_000, "{ended:?}, {held}");
    // An honest reader gives back what each frame has brought, and its window ends in crumbs now and then.
    let mut server = End::server();
    server.take(&get(1));
    server.answer(1, 200, false);
    server.conn.set_pending(1, 1 << 26, true);
    for _ in 0..4000 {
        let (_, turns) = server.turns();
        for (stream, length) in turns {
            assert_eq!(server.fails(&update(stream, length as u32)), None);
            assert_eq!(server.fails(&update(0, length as u32)), None);
        }
    }
}

#[test]
fn continuation() {
    // CVE-2024-27316 and others: by bytes, by number, empty ones too.
    for piece in [&b""[..], b"\0", &[0; 16_384]] {
        let mut server = End::server();
        server.take(&frame(HEADERS, 0, 1, &block(GET)));
        let ended = flood(&mut server, 100, |_| frame(CONTINUATION, 0, 1, piece));
        assert!(ended.is_some_and(|count| count < 40), "{} bytes: {ended:?}", piece.len());
    }
    // An honest one of the largest head.
    let large = "v".repeat(31_000);
    let bytes = block(&with(GET, &[("a", &large)]));
    let mut server = End::server();
    let pieces: Vec<&[u8]> = bytes.chunks(1024).collect();
    for (i, piece) in pieces.iter().enumerate() {
        let kind = if i == 0 { HEADERS } else { CONTINUATION };
        let flags = u8::from(i == 0) | if i + 1 == pieces.len() { END_HEADERS } else { 0 };
        server.take(&frame(kind, flags, 1, piece));
    }
    assert_eq!(server.conn.streams(), 1);
    assert!(server.is_alive());
}

#[test]
fn many_references_to_one_cookie() {
    // CVE-2026-49975: a byte each, held by a window of 0.
    let mut server = End::server();
    server.take(&settings(&[(4, 0)]));
    let cookie = "c".repeat(3000);
    // Indexed by the first request.
    let mut first = block(GET);
    first.extend_from_slice(b"\x60\x7f\xb9\x16");
    first.extend_from_slice(cookie.as_bytes());
    assert!(server.take(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &first))[0].starts_with("request 1"));
    let mut bomb = block(GET);
    bomb.resize(16_384, 0xbe);
    let mut most = 0;
    let ended = (1..100).find(|i| {
        let happenings = server.take(&frame(HEADERS, END_STREAM | END_HEADERS, 2 * i + 1, &bomb));
        most = most.max(server.fields().len());
        let is_bounded = happenings.iter().all(|h| h.contains("head-too-large") || h.starts_with("failed"));
        assert!(is_bounded, "{happenings:?}");
        happenings.iter().any(|h| h == "failed ENHANCE_YOUR_CALM")
    });
    assert!(ended.is_some_and(|count| count < 70) && most < 40_000, "{ended:?}, {most}");
}

#[test]
fn slow_frames_are_no_flood() {
    let mut server = End::server();
    let ended = flood(&mut server, 5000, |_| frame(PING, 0, 0, &[0; 8]));
    assert!(ended.is_some());
    let mut server = End::server();
    for _ in 0..5000 {
        server.now_ns += 11 * MS;
        assert_eq!(server.fails(&frame(PING, 0, 0, &[0; 8])), None);
        server.write();
    }
}

/// Serves a stream: head, DATA, trailers.
fn serve(server: &mut End, stream: u32) {
    let mut out = server.answer(stream, 200, false);
    server.conn.set_pending(stream, 5, false);
    server.conn.next_data(server.now_ns, 1000, &mut out).expect("a turn");
    server.conn.send_trailers(server.now_ns, stream, [], &mut out).expect("open");
    server.conn.finish(server.now_ns, stream);
    server.write();
}

#[test]
fn honest_calls_of_grpc_pass() {
    // A small DATA frame, a bare END_STREAM, a PING by which the client measures, updates of both windows.
    let mut server = End::server();
    for i in 0..100_000 {
        let id = stream(i);
        server.now_ns += MS / 100;
        assert_eq!(
            server.fails(&[post(id), data(id, b"12345", false), data(id, b"", true)].concat()),
            None,
            "{i}"
        );
        serve(&mut server, id);
        let after = [frame(PING, 0, 0, &[0; 8]), update(0, 5), update(id, 5)].concat();
        assert_eq!(server.fails(&after), None, "{i}");
        server.take(&update(0, 100));
        server.write();
    }
}

#[test]
fn honest_streams_of_small_messages_pass() {
    let mut server = End::server();
    for i in 0..100 {
        server.take(&post(stream(i)));
    }
    for round in 0..1000 {
        for i in 0..100 {
            assert_eq!(server.fails(&data(stream(i), b"1", false)), None, "{round}");
            server.conn.release(stream(i), 1);
        }
        server.write();
    }
}

#[test]
fn honest_cancellations_pass() {
    // One in four is cancelled at once, as a hedged request; or each after a while, as at a deadline.
    let mut server = End::server();
    for i in 0..20_000 {
        let id = stream(i);
        assert_eq!(server.fails(&get(id)), None, "{i}");
        if i % 4 == 0 {
            assert_eq!(server.fails(&reset(id, ErrorCode::CANCEL)), None, "{i}");
            server.conn.finish(server.now_ns, id);
        } else {
            serve(&mut server, id);
        }
        server.take(&update(0, 100));
    }
    let mut server = End::server();
    for i in 0..5000 {
        assert_eq!(server.fails(&get(stream(i))), None, "{i}");
        server.now_ns += 200 * MS;
        assert_eq!(server.fails(&reset(stream(i), ErrorCode::CANCEL)), None, "{i}");
        server.conn.finish(server.now_ns, stream(i));
        server.now_ns -= 199 * MS;
    }
}

#[test]
fn a_late_reset_neither_costs_nor_pays() {
    // Half of what may be owed, then many streams that are given up late, then the other half.
    let mut server = End::server();
    let ask = |server: &mut End, count: u32| {
        (0..count).filter(|_| server.fails(&frame(PING, 0, 0, &[0; 8])).is_some()).count()
    };
    assert_eq!(ask(&mut server, 500), 0);
    for i in 0..1000 {
        assert_eq!(server.fails(&get(stream(i))), None, "{i}");
        server.now_ns += 200 * MS;
        assert_eq!(server.fails(&reset(stream(i), ErrorCode::CANCEL)), None, "{i}");
        server.conn.finish(server.now_ns, stream(i));
        server.now_ns -= 200 * MS;
    }
    server.write();
    // SETTINGS have cost one.
    assert_eq!(ask(&mut server, 498), 0);
    assert_eq!(ask(&mut server, 1), 1);
}

#[test]
fn honest_answers_pass() {
    // Without a body, with trailers, after an interim answer, reset after they are whole, cancelled: all at once, and more
    // of each than may be owed.
    let mut client = End::client(0);
    for i in 0..20_000 {
        let id = 2 * i + 1;
        client.ask(b"POST", false);
        let bytes = match i % 5 {
            0 => headers(id, OK, true),
            1 => [
                headers(id, OK, false),
                data(id, b"12345", false),
                headers(id, &[("grpc-status", "0")], true),
            ]
            .concat(),
            2 => [headers(id, &[(":status", "103")], false), headers(id, OK, true)].concat(),
            3 => [headers(id, OK, true), reset(id, ErrorCode::NO_ERROR)].concat(),
            _ => headers(id, OK, false),
        };
        let bytes = [bytes, frame(PING, 0, 0, &[0; 8])].concat();
        assert_eq!(client.fails(&bytes), None, "{i}");
        client.conn.finish(client.now_ns, id);
        client.write();
    }
}

#[test]
fn hostile_origins_are_left() {
    let mut client = End::new(Role::Client, Config::CLIENT);
    client.take(&settings(&[]));
    client.ask(b"GET", true);
    let ended = flood(&mut client, 5000, |_| frame(PING, 0, 0, &[0; 8]));
    assert!(ended.is_some_and(|count| count < 1100), "{ended:?}");
    // A head without end, in large frames and in empty ones.
    for piece in [&[b'x'; 16_384][..], b""] {
        let mut client = End::client(1);
        let begin = [&block(OK)[..], b"\0\x01a\x7f\x81\xff\xff\x01"].concat();
        client.take(&frame(HEADERS, 0, 1, &begin));
        let ended = flood(&mut client, 100, |_| frame(CONTINUATION, 0, 1, piece));
        assert!(ended.is_some_and(|count| count < 40), "{ended:?}");
    }
    // Answers on streams that are over.
    let mut client = End::client(1);
    client.take(&headers(1, OK, true));
    let ended = flood(&mut client, 5000, |_| headers(1, OK, true));
    assert!(ended.is_some_and(|count| count < 1100), "{ended:?}");
}

#[test]
fn tiny_data() {
    // What is not passed on: a byte by itself, or with much padding; and what is dropped.
    ends_within("DATA of a byte", 8100, |_| data(1, b"a", false));
    let padded = [&[255, b'a'][..], &[0; 255]].concat();
    ends_within("a byte in padding", 8100, |_| frame(DATA, PADDED, 1, &padded));
    let mut server = End::server();
    server.take(&post(1));
    server.conn.reset(0, 1, ErrorCode::CANCEL);
    let ended = flood(&mut server, 20_000, |_| data(1, b"a", false));
    assert!(ended.is_some_and(|count| (4000..8100).contains(&count)), "{ended:?}");
}

#[test]
fn tiny_data_that_is_passed_on_late_passes() {
    let mut server = End::server();
    server.take(&[post(1), post(3)].concat());
    for round in 0..100 {
        for _ in 0..3500 {
            assert_eq!(server.fails(&data(1, b"a", false)), None, "{round}");
            assert_eq!(server.fails(&data(3, b"message", false)), None, "{round}");
        }
        // In two parts, as a slow origin takes them.
        server.conn.release(1, 1000);
        server.conn.release(3, 7 * 3500);
        server.conn.release(1, 2500);
        server.write();
    }
    // A client that takes nothing of its answer does not end an origin's connection.
    let mut client = End::client(1);
    client.take(&headers(1, OK, false));
    for _ in 0..20_000 {
        assert_eq!(client.fails(&data(1, b"a", false)), None);
    }
}
