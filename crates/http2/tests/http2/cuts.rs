//! However bytes are cut, the same happens.

use crate::end::End;
use crate::wire::*;
use weir_http2::{Config, ErrorCode, PREFACE, Role};
use weir_testkit::Random;

/// All kinds of frames, of a client that breaks some rules of streams.
fn conversation() -> Vec<u8> {
    let large = "v".repeat(20_000);
    let block = block(&with(POST, &[("a", &large), ("cookie", "b=c")]));
    [
        opening(),
        get(1),
        post(3),
        frame(DATA, PADDED, 3, b"\x04some data\0\0\0\0"),
        frame(PING, 0, 0, b"12345678"),
        frame(HEADERS, 0, 5, &block[..16_000]),
        frame(CONTINUATION, 0, 5, b""),
        frame(CONTINUATION, END_HEADERS, 5, &block[16_000..]),
        data(5, b"", false),
        data(3, b"and more", false),
        settings(&[(1, 0), (3, 7), (4, 100_000), (5, 20_000), (99, 1)]),
        update(0, 1000),
        update(3, 5),
        frame(SETTINGS, ACK, 0, b""),
        frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 9]),
        frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x03u=1, i"),
        frame(0x20, 7, 3, b"an unknown frame"),
        headers(7, &with(GET, &[("Upper", "a")]), false),
        data(7, b"dropped", true),
        data(9, b"", false)[..0].to_vec(),
        headers(3, &[("trailer", "t")], true),
        frame(PRIORITY, 0, 5, b"short"),
        frame(PRIORITY, 0, 5, b"longer than it is"),
        data(5, b"late", true),
        get(11),
        reset(11, ErrorCode::CANCEL),
        frame(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\0debug data"),
        frame(PING, ACK, 0, b"unasked "),
        frame(RST_STREAM, 0, 13, &[0; 4]),
        get(15),
    ]
    .concat()
}

/// What happens, and what the server says.
fn run<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<String>, Vec<u8>) {
    let mut server = End::new(Role::Server, Config::SERVER);
    let mut happenings: Vec<String> = Vec::new();
    for piece in pieces {
        for happening in server.take(piece) {
            // A body may come in more pieces.
            let words: Vec<&str> = happening.splitn(3, ' ').collect();
            match (happenings.last_mut(), &words[..]) {
                (Some(last), ["data", stream, text]) if last.starts_with(&format!("data {stream} ")) => {
                    last.push_str(text);
                }
                _ => happenings.push(happening),
            }
        }
    }
    (happenings, server.write())
}

#[test]
fn every_cut_in_two() {
    let bytes = conversation();
    let whole = run([&bytes[..]].into_iter());
    assert_eq!(whole.0.last().map(String::as_str), Some("failed PROTOCOL_ERROR"));
    assert_eq!(whole.0.len(), 14);
    // The large head alone is 20,000 bytes: every cut near a frame's ends, every 97th elsewhere.
    let interesting = |cut: &usize| bytes.len() - cut < 800 || *cut < 600 || cut.is_multiple_of(97);
    for cut in (0..=bytes.len()).filter(interesting) {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(run([first, second].into_iter()), whole, "cut at {cut}");
    }
}

#[test]
fn byte_by_byte() {
    let bytes = conversation();
    assert_eq!(run(bytes.chunks(1)), run([&bytes[..]].into_iter()));
}

#[test]
fn random_pieces() {
    let bytes = conversation();
    let whole = run([&bytes[..]].into_iter());
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (mut rest, mut pieces) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let most = *[1, 3, 9, 30, 5000].get(random.below(5)).expect("one of five");
            let (piece, tail) = rest.split_at((1 + random.below(most)).min(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        assert_eq!(run(pieces.into_iter()), whole, "seed {seed}");
    }
}

#[test]
fn nothing_is_held_between_whole_frames() {
    let mut server = End::server();
    let request = [get(1), frame(PING, 0, 0, b"12345678")].concat();
    server.take(&request[..5]);
    assert_eq!(server.conn.footprint(), 0);
    server.take(&request[5..]);
    server.answer(1, 200, true);
    server.conn.finish(0, 1);
    server.write();
    assert_eq!((server.conn.footprint(), server.conn.deadline_ns()), (0, None));
}

/// What the server says when only these bytes have come, and it answers what it can.
fn says(bytes: &[u8]) -> Vec<u8> {
    let mut server = End::new(Role::Server, Config::SERVER);
    server.take(bytes);
    let mut out = Vec::new();
    let _ = server.conn.send_answer(server.now_ns, 1, 200, [], false, &mut out);
    server.conn.set_pending(1, 300_000, true);
    out.extend(server.write());
    out.extend(server.turns().0);
    out
}

#[test]
fn a_frame_does_all_or_nothing() {
    let bytes = conversation();
    let mut start = PREFACE.len();
    while let Some(head) = bytes[start..].first_chunk::<9>() {
        let end = start + 9 + u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        // Window may be given back for a part of DATA.
        if head[3] != DATA {
            let (nothing, all) = (says(&bytes[..start]), says(&bytes[..end]));
            for cut in (start..end).filter(|cut| cut - start < 40) {
                let said = says(&bytes[..cut]);
                assert!(said == nothing || said == all, "kind {} cut at {}", head[3], cut - start);
            }
        }
        start = end;
    }
}
