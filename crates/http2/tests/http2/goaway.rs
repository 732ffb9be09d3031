//! How connections end in order (RFC 9113 §6.8), and what may be repeated (§8.7).

use crate::end::End;
use crate::wire::*;
use weir_http2::{ErrorCode, PseudoMarks, RequestLine, SendError};

const LINE: RequestLine<'_> = RequestLine {
    method: b"GET",
    scheme: Some(b"http"),
    authority: None,
    path: Some(b"/"),
    protocol: None,
    marks: PseudoMarks::NONE,
};

fn open(client: &mut End) -> Result<u32, SendError> {
    client.conn.send_request(client.now_ns, &LINE, [], true, &mut Vec::new())
}

/// The payload of the PING among these frames.
fn ping(bytes: &[u8]) -> Vec<u8> {
    let pings = frames(bytes).into_iter().filter(|frame| frame.kind == PING && frame.flags == 0);
    pings.map(|frame| frame.payload).next().expect("a PING")
}

#[test]
fn a_drain_says_goaway_twice() {
    let mut server = End::server();
    server.take(&get(1));
    server.conn.drain(server.now_ns);
    let out = server.write();
    assert_eq!(goaways(&out), [(0x7fff_ffff, ErrorCode::NO_ERROR, String::new())]);
    // A request that was on its way is taken.
    assert_eq!(server.take(&get(3)).len(), 1);
    assert!(server.conn.is_ending() && !server.conn.is_done());
    server.take(&frame(PING, ACK, 0, &ping(&out)));
    assert_eq!(goaways(&server.write()), [(3, ErrorCode::NO_ERROR, String::new())]);
    // What comes later is not processed, and its fields are decoded.
    let head = frame(HEADERS, END_STREAM | END_HEADERS, 5, &[&block(GET)[..], b"\x40\x01a\x01b"].concat());
    assert!(server.take(&head).is_empty());
    for stream in [1, 3] {
        server.answer(stream, 200, true);
        assert!(!server.conn.is_done());
        server.conn.finish(0, stream);
    }
    assert!(server.conn.is_done() && server.write().is_empty());
}

#[test]
fn a_client_that_answers_no_ping_is_not_waited_for() {
    let mut server = End::server();
    server.take(&get(1));
    server.conn.drain(server.now_ns);
    server.write();
    let due_ns = server.conn.deadline_ns().expect("a limit");
    server.conn.on_time(due_ns - 1).expect("nothing is late");
    assert!(goaways(&server.write()).is_empty());
    server.conn.on_time(due_ns).expect("nothing is late");
    assert_eq!(goaways(&server.write())[0].0, 1);
    assert_eq!(server.conn.deadline_ns(), None);
}

#[test]
fn streams_above_the_last_may_be_repeated() {
    let mut client = End::client(3);
    let happenings = client.take(&[goaway(3, ErrorCode::NO_ERROR), headers(1, OK, true)].concat());
    assert_eq!(happenings, ["goaway 3 NO_ERROR", "unprocessed 5", "answer 1 200 end"]);
    assert_eq!((open(&mut client), client.conn.can_open()), (Err(SendError::Ending), false));
    // A lower one later.
    assert_eq!(client.take(&goaway(1, ErrorCode::NO_ERROR)), ["goaway 1 NO_ERROR", "unprocessed 3"]);
    // One that grows changes nothing.
    assert_eq!(client.take(&goaway(7, ErrorCode::NO_ERROR)), ["goaway 1 NO_ERROR"]);
    [1, 3, 5].into_iter().for_each(|stream| client.conn.finish(0, stream));
    assert!(client.conn.is_done() && resets(&client.write()).is_empty());
}

#[test]
fn a_first_goaway_lets_all_streams_end() {
    let mut client = End::client(2);
    assert_eq!(client.take(&goaway(0x7fff_ffff, ErrorCode::NO_ERROR)), ["goaway 2147483647 NO_ERROR"]);
    assert!(!client.conn.can_open() && !client.conn.is_done());
    let answers = [headers(1, OK, true), headers(3, OK, true), goaway(3, ErrorCode::NO_ERROR)].concat();
    let expected = ["answer 1 200 end", "answer 3 200 end", "goaway 3 NO_ERROR"];
    assert_eq!(client.take(&answers), expected);
}

#[test]
fn refused_streams_may_be_repeated() {
    let mut client = End::client(2);
    let bytes = [reset(1, ErrorCode::REFUSED_STREAM), reset(3, ErrorCode::CANCEL)].concat();
    assert_eq!(client.take(&bytes), ["unprocessed 1", "reset 3 CANCEL"]);
    let mut server = End::server();
    server.take(&get(1));
    server.conn.refuse_request(0, 1);
    server.conn.finish(0, 1);
    assert_eq!(resets(&server.write()), [(1, ErrorCode::REFUSED_STREAM)]);
}

#[test]
fn the_limit_of_streams() {
    let mut server = End::server();
    let many: Vec<u8> = (0..101).flat_map(|i| get(2 * i + 1)).collect();
    assert_eq!(server.take(&many).len(), 100);
    assert_eq!(resets(&server.write()), [(201, ErrorCode::REFUSED_STREAM)]);
    // A stream that the client has reset is still at work.
    assert_eq!(server.take(&reset(1, ErrorCode::CANCEL)), ["reset 1 CANCEL"]);
    assert!(server.take(&get(203)).is_empty());
    server.conn.finish(0, 1);
    assert_eq!(server.take(&get(205)).len(), 1);
}

#[test]
fn a_client_keeps_to_its_origins_limit() {
    let mut client = End::client(0);
    client.take(&settings(&[(3, 2)]));
    assert_eq!((open(&mut client), open(&mut client)), (Ok(1), Ok(3)));
    assert_eq!(open(&mut client), Err(SendError::Full));
    client.take(&settings(&[(3, 0)]));
    client.take(&headers(1, OK, true));
    client.conn.finish(0, 1);
    client.take(&headers(3, OK, true));
    client.conn.finish(0, 3);
    assert_eq!((open(&mut client), client.conn.can_open()), (Err(SendError::Full), false));
    client.take(&settings(&[(3, 1)]));
    assert_eq!(open(&mut client), Ok(5));
}

#[test]
fn a_drain_does_not_replace_a_question() {
    let mut server = End::server();
    server.conn.ping();
    server.conn.drain(server.now_ns);
    let out = server.write();
    let kinds: Vec<u8> = frames(&out).iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [GOAWAY, PING, PING]);
    assert_eq!(server.take(&frame(PING, ACK, 0, &ping(&out))), ["pong"]);
}

#[test]
fn liveness_is_asked_by_ping() {
    let mut client = End::client(0);
    client.conn.ping();
    client.conn.ping();
    let payload = ping(&client.write());
    assert!(client.take(&frame(PING, ACK, 0, b"not that")).is_empty());
    assert_eq!(client.take(&frame(PING, ACK, 0, &payload)), ["pong"]);
    assert!(client.take(&frame(PING, ACK, 0, &payload)).is_empty());
    client.conn.ping();
    assert!(client.conn.has_output());
}

#[test]
fn frames_behind_a_refused_head_are_dropped() {
    let late = [
        data(5, b"late", true),
        reset(5, ErrorCode::CANCEL),
        update(5, 1),
        headers(5, &[("a", "b")], true),
        frame(PRIORITY, 0, 5, &[0, 0, 0, 1, 0]),
    ];
    for bytes in late {
        let mut server = End::server();
        server.take(&post(1));
        server.conn.close();
        assert_eq!(goaways(&server.write())[0].0, 1);
        assert!(server.take(&[post(5), bytes].concat()).is_empty());
        assert!(server.is_alive() && resets(&server.write()).is_empty());
        assert_eq!(server.take(&data(1, b"x", true)), ["data 1 x", "end 1"]);
    }
    // Its DATA count toward the connection's window, and are given back.
    let mut server = End::server();
    server.take(&post(1));
    server.conn.close();
    server.take(&post(5));
    for _ in 0..1000 {
        assert!(server.take(&data(5, &[0; 16_384], false)).is_empty());
        server.write();
    }
    // An error does not raise the last stream again.
    assert_eq!(server.fails(&data(9, b"", true)), Some(ErrorCode::PROTOCOL_ERROR));
    assert_eq!(goaways(&server.write())[0].0, 1);
}

#[test]
fn a_request_whose_answer_has_begun_is_not_unprocessed() {
    for (bytes, expected) in [
        (reset(1, ErrorCode::REFUSED_STREAM), &["reset 1 REFUSED_STREAM"][..]),
        (goaway(0, ErrorCode::NO_ERROR), &["goaway 0 NO_ERROR", "unprocessed 3", "reset 1 REFUSED_STREAM"]),
    ] {
        let mut client = End::client(2);
        client.take(&[headers(1, OK, false), data(1, b"half", false)].concat());
        assert_eq!(client.take(&bytes), expected);
        assert!(client.conn.has_answer(1));
    }
}

#[test]
fn a_request_that_ends_without_an_answer_has_none() {
    let mut client = End::client(3);
    client.take(&[headers(1, &[(":status", "103")], false), reset(1, ErrorCode::CANCEL)].concat());
    client.conn.reset(0, 3, ErrorCode::CANCEL);
    client.take(&headers(5, &[(":status", "nothing")], true));
    assert!([1, 3, 5].into_iter().all(|stream| !client.conn.has_answer(stream)));
}

#[test]
fn streams_that_are_over_do_not_count() {
    // RFC 9113 §5.1.2: only those that are open or half-closed; what their user has not finished with is bounded by itself.
    let mut server = End::server();
    for stream in (1..400).step_by(2) {
        assert_eq!(server.take(&get(stream)).len(), 1, "{stream}");
        server.answer(stream, 200, true);
    }
    assert!(server.take(&get(401)).is_empty());
    assert_eq!(resets(&server.write()), [(401, ErrorCode::REFUSED_STREAM)]);
    (1..400).step_by(2).for_each(|stream| server.conn.finish(0, stream));
    let open: Vec<u8> = (201..302).flat_map(|i| get(2 * i + 1)).collect();
    assert_eq!(server.take(&open).len(), 100);
    assert_eq!(resets(&server.write()), [(603, ErrorCode::REFUSED_STREAM)]);
}

/// An error's text is kept as far as a line of a log has room; where it was cut makes no difference.
#[test]
fn an_error_says_why() {
    let long = "too_many_pings\n".repeat(1500);
    for text in ["", "too_many_pings", &long[..100], &long[..101], &long[..15_000]] {
        let numbers = [&[0, 0, 0, 1][..], &ErrorCode::ENHANCE_YOUR_CALM.0.to_be_bytes()].concat();
        let bytes = frame(GOAWAY, 0, 0, &[&numbers[..], text.as_bytes()].concat());
        let bytes = [bytes, headers(1, OK, true)].concat();
        for cut in [1, 9, 13, 17, 20, 116, 117, 118].into_iter().filter(|cut| *cut < bytes.len()) {
            let mut client = End::client(1);
            let mut happenings = client.take(&bytes[..cut]);
            happenings.extend(client.take(&bytes[cut..]));
            let said = format!("goaway 1 ENHANCE_YOUR_CALM {}", &text[..text.len().min(100)]);
            assert_eq!(happenings, [said.trim_end_matches(' '), "answer 1 200 end"], "cut at {cut}");
        }
    }
}
