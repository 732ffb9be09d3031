//! Settings of both directions (RFC 9113 §6.5).

use crate::end::End;
use crate::wire::*;
use weir_http2::{Config, ErrorCode, Field, Role};

#[test]
fn what_is_announced() {
    let list = |role, config| {
        let mut end = End::new(role, config);
        let frames = frames(&end.write());
        let payload = &frames[0].payload;
        let pair = |chunk: &[u8]| {
            let value = u32::from_be_bytes(*chunk[2..].first_chunk().expect("6 bytes"));
            (u16::from(chunk[0]) << 8 | u16::from(chunk[1]), value)
        };
        payload.chunks(6).map(pair).collect::<Vec<_>>()
    };
    assert_eq!(list(Role::Server, Config::SERVER), [(3, 100), (4, 65_536), (6, 35_968), (9, 1), (8, 1)]);
    assert_eq!(list(Role::Client, Config::CLIENT), [(2, 0), (4, 65_536), (6, 35_968)]);
    let config = Config { header_table: 0, has_extended_connect: false, ..Config::SERVER };
    assert_eq!(list(Role::Server, config)[0], (1, 0));
}

#[test]
fn they_are_acknowledged_once_each_and_before_what_follows_them() {
    let mut server = End::server();
    server.take(&[settings(&[]), settings(&[(5, 20_000)]), get(1)].concat());
    let kinds: Vec<(u8, u8)> =
        frames(&server.answer(1, 200, false)).iter().map(|f| (f.kind, f.flags)).collect();
    assert_eq!(kinds, [(SETTINGS, ACK), (SETTINGS, ACK), (HEADERS, END_HEADERS)]);
    assert!(server.write().is_empty());
}

#[test]
fn a_peer_that_does_not_acknowledge_is_left() {
    let mut server = End::new(Role::Server, Config::SERVER);
    server.take(&opening());
    server.write();
    let due_ns = server.conn.deadline_ns().expect("a limit");
    assert_eq!(due_ns, 1 + Config::SERVER.settings_timeout_ns);
    server.conn.on_time(due_ns - 1).expect("in time");
    let error = server.conn.on_time(due_ns).expect_err("too late");
    assert_eq!(error.code, ErrorCode::SETTINGS_TIMEOUT);
    assert_eq!(goaways(&server.write())[0].1, ErrorCode::SETTINGS_TIMEOUT);
    assert!(server.conn.is_done() && server.conn.on_time(due_ns + 1).is_ok());
}

#[test]
fn the_peers_initial_window_changes_open_streams() {
    let mut server = End::server();
    server.take(&[settings(&[(4, 10)]), get(1)].concat());
    server.answer(1, 200, false);
    server.conn.set_pending(1, 100, true);
    assert_eq!(server.turns().1, [(1, 10)]);
    assert!(server.conn.is_blocked(1));
    // Below zero: what is given then only fills it up.
    server.take(&[settings(&[(4, 0)]), update(1, 10)].concat());
    assert!(server.turns().1.is_empty());
    server.take(&update(1, 1));
    assert_eq!(server.turns().1, [(1, 1)]);
    server.take(&settings(&[(4, 50)]));
    assert_eq!(server.turns().1, [(1, 50)]);
    server.take(&settings(&[(4, 1000)]));
    assert_eq!(server.turns().1, [(1, 39)]);
}

#[test]
fn a_larger_frame_of_the_peer_changes_nothing_but_heads() {
    let mut server = End::server();
    server.take(&[settings(&[(5, 100_000), (4, 1_000_000)]), get(1)].concat());
    let value = vec![b'v'; 30_000];
    let mut out = Vec::new();
    let field = Field { name: b"a", value: &value, is_sensitive: true };
    server.conn.send_answer(0, 1, 200, [field], false, &mut out).expect("open");
    assert_eq!(frames(&out).iter().filter(|frame| frame.kind != SETTINGS).count(), 1);
    server.conn.set_pending(1, 20_000, true);
    assert_eq!(server.turns().1, [(1, 16_384), (1, 3616)]);
}

#[test]
fn tables_of_fields_follow_both_sides_settings() {
    // The peer allows none, then 4096 again: the next block says both (RFC 7541 §4.2).
    let mut server = End::server();
    let mut client = End::client(3);
    let field = Field { name: b"x-repeated", value: b"the same", is_sensitive: false };
    server.take(&[get(1), get(3), get(5)].concat());
    let answer = |server: &mut End, stream| {
        let mut out = Vec::new();
        server.conn.send_answer(0, stream, 200, [field], true, &mut out).expect("open");
        let heads: Vec<Frame> = frames(&out).into_iter().filter(|frame| frame.kind == HEADERS).collect();
        (frame(HEADERS, heads[0].flags, stream, &heads[0].payload), heads[0].payload.clone())
    };
    for stream in [1, 3] {
        let (head, _) = answer(&mut server, stream);
        assert_eq!(client.take(&head), [format!("answer {stream} 200 end")]);
    }
    server.take(&settings(&[(1, 0), (1, 4096)]));
    let (head, payload) = answer(&mut server, 5);
    assert_eq!(payload[0] & 0xe0, 0x20, "a size update");
    assert_eq!(client.take(&head), ["answer 5 200 end"]);
}

#[test]
fn a_table_of_none_holds_from_its_acknowledgement() {
    let mut server = End::new(Role::Server, Config { header_table: 0, ..Config::SERVER });
    server.take(&opening());
    server.write();
    // Until then the client may index.
    let indexed = [&block(GET)[..], b"\x40\x01a\x01b"].concat();
    let happenings = server.take(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &indexed));
    assert!(happenings[0].ends_with(" a=b"));
    server.take(&frame(SETTINGS, ACK, 0, &[]));
    // Then a block without the update breaks the tables.
    assert_eq!(server.fails(&get(3)), Some(ErrorCode::COMPRESSION_ERROR));
}

#[test]
fn half_a_frame_of_settings_changes_nothing() {
    let bytes = settings(&[(4, 200), (1, 0), (3, 1)]);
    for cut in 1..bytes.len() {
        let mut server = End::server();
        server.take(&[settings(&[(4, 100)]), get(1)].concat());
        server.answer(1, 200, false);
        server.conn.set_pending(1, 1000, true);
        assert_eq!(server.turns().1, [(1, 100)]);
        let before = *server.conn.peer_settings();
        assert!(server.take(&bytes[..cut]).is_empty());
        assert!(server.turns().1.is_empty() && *server.conn.peer_settings() == before, "cut at {cut}");
        assert_eq!(server.take(&bytes[cut..]), ["settings"]);
        assert_eq!(server.turns().1, [(1, 100)]);
    }
}

#[test]
fn a_connection_that_has_failed_waits_for_nothing() {
    let mut server = End::new(Role::Server, Config::SERVER);
    server.take(&opening());
    server.write();
    assert!(server.conn.deadline_ns().is_some());
    assert!(server.fails(&update(0, 0)).is_some());
    assert_eq!(server.conn.deadline_ns(), None);
    // Also if its SETTINGS leave with GOAWAY.
    let mut server = End::new(Role::Server, Config::SERVER);
    assert!(server.fails(b"GET / HTTP/1.1").is_some());
    server.write();
    assert_eq!(server.conn.deadline_ns(), None);
}
