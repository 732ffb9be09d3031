//! The order of DATA (RFC 9218).

use crate::end::End;
use crate::wire::*;
use weir_http2::{Config, Priority, Role};

/// The order in which a server sends the answers of these requests, each with a number of DATA frames of 16 KiB.
fn order(server: &mut End, requests: &[(u32, Option<&str>, u64)]) -> Vec<u32> {
    server.take(&[settings(&[(4, 1 << 30)]), update(0, 1 << 30)].concat());
    for (stream, priority, count) in requests {
        let fields = match priority {
            Some(value) => with(GET, &[("priority", *value)]),
            None => GET.to_vec(),
        };
        server.take(&headers(*stream, &fields, true));
        server.answer(*stream, 200, false);
        server.conn.set_pending(*stream, count * 16_384, true);
    }
    server.turns().1.into_iter().map(|turn| turn.0).collect()
}

#[test]
fn clients_without_priorities_get_turns() {
    let order = order(&mut End::server(), &[(1, None, 3), (3, None, 2), (5, None, 1)]);
    assert_eq!(order, [1, 3, 5, 1, 3, 1]);
}

#[test]
fn by_urgency_then_one_after_another() {
    let requests = [(1, Some("u=5"), 2), (3, None, 2), (5, Some("u=1"), 2), (7, None, 2)];
    assert_eq!(order(&mut End::server(), &requests), [5, 5, 3, 3, 7, 7, 1, 1]);
}

#[test]
fn incremental_ones_in_turn() {
    let requests = [(1, Some("i"), 3), (3, Some("u=3, i"), 3), (5, Some("u=2"), 1)];
    assert_eq!(order(&mut End::server(), &requests), [5, 1, 3, 1, 3, 1, 3]);
}

#[test]
fn updates_count_more_than_fields() {
    let mut server = End::server();
    // Before its stream, and on one that waits.
    server.take(&frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x05u=0"));
    server.take(&[settings(&[(4, 0)])].concat());
    for stream in [1, 3, 5] {
        server.take(&headers(stream, &with(GET, &[("priority", "u=4")]), true));
        server.answer(stream, 200, false);
        server.conn.set_pending(stream, 16_384, true);
    }
    server.take(&frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x03u=1"));
    server.take(&[settings(&[(4, 100_000)])].concat());
    assert_eq!(server.turns().1.iter().map(|turn| turn.0).collect::<Vec<_>>(), [5, 3, 1]);
}

#[test]
fn an_answer_may_say_its_own() {
    let mut server = End::server();
    server.take(&[frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x09u=3"), get(1), get(3)].concat());
    for stream in [1, 3] {
        server.answer(stream, 200, false);
        server.conn.set_pending(stream, 10, true);
    }
    server.conn.set_priority(3, Priority { urgency: 0, is_incremental: false });
    assert_eq!(server.turns().1, [(3, 10), (1, 10)]);
}

#[test]
fn a_small_answer_waits_for_one_frame_at_most() {
    let mut server = End::server();
    let bulk: Vec<(u32, Option<&str>, u64)> = (0..16).map(|i| (2 * i + 1, None, 100)).collect();
    server.take(&[settings(&[(4, 1 << 30)]), update(0, 1 << 30)].concat());
    for (stream, _, count) in &bulk {
        server.take(&get(*stream));
        server.answer(*stream, 200, false);
        server.conn.set_pending(*stream, count * 16_384, true);
    }
    let mut out = Vec::new();
    for _ in 0..20 {
        server.conn.next_data(0, 16_384, &mut out);
    }
    server.take(&get(33));
    server.answer(33, 200, false);
    server.conn.set_pending(33, 100, true);
    assert_eq!(server.conn.next_data(0, 16_384, &mut out).map(|turn| turn.stream), Some(33));
}

#[test]
fn a_turn_is_no_longer_than_the_caller_wants() {
    let mut server = End::server();
    server.take(&get(1));
    server.answer(1, 200, false);
    server.conn.set_pending(1, 1000, true);
    let mut out = Vec::new();
    let turn = server.conn.next_data(0, 300, &mut out).expect("a turn");
    assert_eq!((turn.length, turn.pending, turn.is_end), (300, 700, false));
    let turn = server.conn.next_data(0, 5000, &mut out).expect("a turn");
    assert_eq!((turn.length, turn.pending, turn.is_end), (700, 0, true));
    assert!(server.conn.next_data(0, 5000, &mut out).is_none());
}

#[test]
fn uploads_of_different_clients_take_turns() {
    // What an origin knows of priorities says nothing of the clients (RFC 9218 §13.1).
    let mut client = End::new(Role::Client, Config::CLIENT);
    client.take(&[settings(&[(9, 1), (4, 1 << 30)]), update(0, 1 << 30)].concat());
    for stream in [1, 3] {
        client.ask(b"POST", false);
        client.conn.set_pending(stream, 3 * 16_384, true);
    }
    let order: Vec<u32> = client.turns().1.into_iter().map(|turn| turn.0).collect();
    assert_eq!(order, [1, 3, 1, 3, 1, 3]);
}

/// What the field of an answer leaves out stays as the client asked for it.
#[test]
fn the_field_of_an_answer_changes_what_it_says() {
    let mut server = End::server();
    server.take(&[settings(&[(4, 0)])].concat());
    for (stream, asked, said) in [(1, "u=2, i", "u=5"), (3, "u=2", "u=6, x"), (5, "u=2", "")] {
        server.take(&headers(stream, &with(GET, &[("priority", asked)]), true));
        server.conn.change_priority(stream, said.as_bytes());
        server.answer(stream, 200, false);
        server.conn.set_pending(stream, 2 * 16_384, true);
    }
    server.take(&[settings(&[(4, 100_000)]), update(0, 1 << 20)].concat());
    assert_eq!(server.turns().1.iter().map(|turn| turn.0).collect::<Vec<_>>(), [5, 5, 1, 1, 3, 3]);
}
