//! Flow control (RFC 9113 §5.2): window is given back as bytes are passed on, and shared among those that receive.

use crate::end::End;
use crate::wire::*;
use weir_http2::{Config, ErrorCode, Role};

/// What a server that has got these windows gives: (stream, increment).
fn updates(bytes: &[u8]) -> Vec<(u32, u32)> {
    let updates = frames(bytes).into_iter().filter(|frame| frame.kind == WINDOW_UPDATE);
    updates.map(|frame| (frame.stream, frame.number(0))).collect()
}

fn sum(updates: &[(u32, u32)], stream: u32) -> u64 {
    updates.iter().filter(|update| update.0 == stream).map(|update| u64::from(update.1)).sum()
}

#[test]
fn the_connections_window_is_opened_at_once() {
    let mut server = End::new(Role::Server, Config::SERVER);
    server.take(&opening());
    assert_eq!(updates(&server.write()), [(0, 1024 * 1024 - 65_535)]);
}

#[test]
fn a_stream_that_is_not_passed_on_gets_no_window() {
    let mut server = End::server();
    server.is_passing = false;
    server.take(&[post(1), post(3)].concat());
    for _ in 0..4 {
        server.take(&data(1, &[0; 16_384], false));
    }
    assert!(updates(&server.write()).is_empty());
    server.is_passing = true;
    // Another goes on for ever.
    for _ in 0..1000 {
        assert_eq!(server.take(&data(3, &[0; 16_384], false)).len(), 1);
        server.write();
    }
    assert_eq!(server.take(&data(1, &[0], false)), ["malformed 1 window-passed"]);
}

#[test]
fn a_stream_that_receives_grows_and_shares() {
    let mut server = End::server();
    server.take(&[post(1), post(3), post(5)].concat());
    let mut given = Vec::new();
    for stream in [1, 1, 1, 3, 3, 3] {
        server.take(&data(stream, &[0; 16_384], false));
        given.extend(updates(&server.write()));
    }
    let window = |given: &[(u32, u32)], stream| 65_536 + sum(given, stream) - 3 * 16_384;
    // The first took what was there, the second what was left; stream 5 and the small windows are spared.
    let spare = 1024 * 1024 - 3 * 65_536;
    // Less than a quarter of it is not worth a frame yet.
    assert_eq!(window(&given, 1), 65_536 + spare - 2 * 16_384);
    assert_eq!(window(&given, 3), 65_536);
    // As the first is used, its share goes over to the other.
    for _ in 0..40 {
        for stream in [1, 3] {
            server.take(&data(stream, &[0; 16_384], false));
            given.extend(updates(&server.write()));
        }
    }
    for stream in [1, 3] {
        let now = 65_536 + sum(&given, stream) - 43 * 16_384;
        assert!(now.abs_diff(65_536 + spare / 2) <= 65_536 * 2, "{stream}: {now}");
    }
    let small = 1024 * 1024;
    assert!(65_536 * 3 + sum(&given, 1) + sum(&given, 3) - 86 * 16_384 <= small);
}

#[test]
fn a_window_that_shrinks_below_zero_is_filled_up() {
    // What came before the client knew the small window is more than that, and too little to have been given back.
    let mut server = End::new(Role::Server, Config { stream_window: 100, ..Config::SERVER });
    server.take(&[opening(), post(1), data(1, &[0; 10_000], false)].concat());
    assert!(updates(&server.write()).iter().all(|update| update.0 == 0));
    server.take(&frame(SETTINGS, ACK, 0, &[]));
    // 65,535 - 10,000 - 65,435 is below zero by 9,900; what the connection has to spare comes on top.
    let given = sum(&updates(&server.write()), 1);
    assert!(given > 9900 + 100, "{given}");
    assert_eq!(server.take(&data(1, &[0; 100], false)).len(), 1);
}

#[test]
fn padding_and_what_is_dropped_is_given_back() {
    let mut server = End::server();
    server.is_passing = false;
    server.take(&[post(1), post(3)].concat());
    server.conn.reset(0, 3, ErrorCode::CANCEL);
    server.write();
    let padded = [&[255][..], &[0; 256]].concat();
    let mut given = Vec::new();
    for _ in 0..2000 {
        // One byte of data for the first: it is held.
        server.take(&frame(DATA, PADDED, 1, &padded));
        server.take(&data(3, &[0; 1000], false));
        let out = server.write();
        assert!(goaways(&out).is_empty());
        given.extend(updates(&out));
    }
    let (taken, held) = (2000 * 257 + 2000 * 1000, 2000);
    let given = sum(&given, 0);
    assert!(given <= taken - held && given + 1024 * 1024 / 4 > taken - held, "{given}");
}

#[test]
fn bytes_of_a_stream_that_ends_early_are_given_back() {
    let mut server = End::server();
    server.is_passing = false;
    for i in 0..1000 {
        let stream = 2 * i + 1;
        server.take(&[post(stream), data(stream, &[0; 10_000], false)].concat());
        match i % 3 {
            0 => drop(server.take(&reset(stream, ErrorCode::CANCEL))),
            1 => server.conn.reset(server.now_ns, stream, ErrorCode::CANCEL),
            _ => drop(server.take(&data(stream, &[], true))),
        }
        server.now_ns += 200_000_000;
        server.conn.finish(server.now_ns, stream);
        let out = server.write();
        assert!(goaways(&out).is_empty(), "{i}");
    }
}

#[test]
fn the_connections_window_is_a_bound() {
    let mut server = End::server();
    server.is_passing = false;
    let mut sent = 0;
    for stream in (1..200).step_by(2) {
        server.take(&post(stream));
        for _ in 0..4 {
            sent += 16_384;
            let events = server.take(&data(stream, &[0; 16_384], false));
            if sent > 1024 * 1024 {
                assert_eq!(events, ["failed FLOW_CONTROL_ERROR"]);
                return;
            }
        }
    }
    panic!("no bound");
}

#[test]
fn an_origin_whose_answers_are_not_taken_holds_up_no_other() {
    let mut client = End::client(0);
    let mut streams = Vec::new();
    for i in 0..100 {
        client.ask(b"GET", true);
        streams.push(2 * i + 1);
    }
    client.write();
    // All but the last take nothing, and every one may send its small window.
    client.is_passing = false;
    for stream in &streams {
        client.take(&headers(*stream, OK, false));
    }
    for stream in &streams[..99] {
        for _ in 0..4 {
            assert_eq!(client.take(&data(*stream, &[0; 16_384], false)).len(), 1);
        }
    }
    client.is_passing = true;
    for _ in 0..1000 {
        assert_eq!(client.take(&data(199, &[0; 16_384], false)).len(), 1);
        client.write();
    }
}

#[test]
fn data_keeps_to_both_windows() {
    let mut server = End::server();
    server.take(&[settings(&[(4, 100_000)]), get(1), get(3)].concat());
    for stream in [1, 3] {
        server.answer(stream, 200, false);
        server.conn.set_pending(stream, 1_000_000, true);
    }
    let turns = server.turns().1;
    assert_eq!(turns.iter().map(|turn| turn.1).sum::<usize>(), 65_535);
    assert!(server.conn.is_blocked(1) && server.conn.is_blocked(3) && !server.conn.has_data());
    // An end that takes the place of bytes needs no window.
    server.take(&get(7));
    server.answer(7, 200, false);
    server.conn.set_pending(7, 10, true);
    assert!(!server.conn.has_data());
    server.conn.set_pending(7, 0, true);
    assert_eq!(server.turns().1, [(7, 0)]);
    server.take(&update(0, 1_000_000));
    let turns = server.turns().1;
    assert_eq!(turns.iter().map(|turn| turn.1).sum::<usize>(), 200_000 - 65_535);
    // An end needs no window.
    server.take(&get(9));
    server.answer(9, 200, false);
    server.conn.set_pending(9, 0, true);
    assert_eq!(server.turns().1, [(9, 0)]);
}

#[test]
fn answers_that_have_ended_and_are_not_taken_hold_up_no_other() {
    let mut client = End::client(0);
    let mut held = Vec::new();
    for stream in (1..200).step_by(2) {
        client.ask(b"GET", true);
        client.take(&headers(stream, OK, false));
        // Its window grows as far as others leave room.
        client.is_passing = true;
        let mut window = 65_536;
        for _ in 0..4 {
            assert_eq!(client.fails(&data(stream, &[0; 16_384], false)), None);
            client.conn.release(stream, 16_384);
            window = window - 16_384 + sum(&updates(&client.write()), stream);
        }
        // Nothing of what comes then is taken.
        client.is_passing = false;
        held.push((stream, window as usize));
        while window > 0 {
            let length = window.min(16_384);
            window -= length;
            let bytes = data(stream, &vec![0; length as usize], window == 0);
            assert_eq!(client.fails(&bytes), None, "stream {stream}");
        }
    }
    // What is taken is room for others again.
    for (stream, bytes) in held {
        client.conn.release(stream, bytes);
        client.conn.finish(0, stream);
    }
    client.write();
    client.ask(b"GET", true);
    client.take(&headers(201, OK, false));
    for _ in 0..4 {
        client.fails(&data(201, &[0; 16_384], false));
        client.conn.release(201, 16_384);
    }
    assert_eq!(sum(&updates(&client.write()), 201), 1024 * 1024);
}

#[test]
fn a_byte_that_is_passed_on_is_not_worth_a_frame() {
    let mut server = End::new(Role::Server, Config { max_stream_window: 65_536, ..Config::SERVER });
    server.take(&[opening(), post(1)].concat());
    server.write();
    server.take(&frame(SETTINGS, ACK, 0, &[]));
    server.is_passing = false;
    for _ in 0..4 {
        server.take(&data(1, &[0; 16_384], false));
    }
    let mut frames = 0;
    for _ in 0..8192 {
        server.conn.release(1, 1);
        frames += updates(&server.write()).iter().filter(|update| update.0 == 1).count();
    }
    assert!((1..=2).contains(&frames), "{frames}");
}

#[test]
fn the_rest_of_a_malformed_upload_has_window() {
    let mut server = End::server();
    assert_eq!(
        server.take(&headers(1, &with(POST, &[("A", "b")]), false)),
        ["malformed 1 name-upper may-answer"]
    );
    let mut window = 65_536;
    for _ in 0..100 {
        assert!(window >= 16_384 && server.take(&data(1, &[0; 16_384], false)).is_empty());
        window = window - 16_384 + sum(&updates(&server.write()), 1);
    }
    assert!(window <= 1024 * 1024);
    server.take(&data(1, b"", true));
    server.answer(1, 400, true);
    server.conn.finish(0, 1);
    assert_eq!(server.conn.streams(), 0);
}

#[test]
fn an_origins_window_is_no_less_than_that_of_its_streams() {
    let config = Config { max_streams: 300, stream_window: 256 * 1024, ..Config::CLIENT };
    let mut client = End::new(Role::Client, config);
    assert_eq!(updates(&client.write()), [(0, 300 * 256 * 1024 - 65_535)]);
}
