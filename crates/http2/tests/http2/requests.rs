//! Lawful requests, answers and trailers (RFC 9113 §8).

use crate::end::End;
use crate::wire::*;
use weir_http1::{Limits, Request};
use weir_http2::{
    Block, Config, Event, Field, FieldSink, Head, Pseudo, PseudoMarks, Rendered, RequestLine, Role, SendError,
};

#[test]
fn bodies_trailers_and_interim_answers() {
    let mut server = End::server();
    let request = [post(1), data(1, b"ab", false), data(1, b"c", false)].concat();
    assert_eq!(server.take(&request), ["request 1 Method=POST Scheme=http Authority=h Path=/", "data 1 abc"]);
    assert_eq!(server.take(&headers(1, &[("x", "y")], true)), ["trailers 1 x=y"]);
    let mut client = End::client(1);
    let answer = [
        headers(1, &[(":status", "103"), ("link", "a")], false),
        headers(1, OK, false),
        data(1, b"de", false),
        headers(1, &[("grpc-status", "0")], true),
    ]
    .concat();
    assert_eq!(
        client.take(&answer),
        ["interim 1 103", "answer 1 200", "data 1 de", "trailers 1 grpc-status=0"]
    );
}

#[test]
fn padding_is_no_data() {
    let mut server = End::server();
    let padded = frame(DATA, PADDED | END_STREAM, 1, b"\x03ab\0\0\0");
    let mut head = vec![2];
    head.extend_from_slice(&[0, 0, 0, 3, 16]);
    head.extend_from_slice(&block(POST));
    head.extend_from_slice(&[0, 0]);
    let head = frame(HEADERS, END_HEADERS | PADDED | DEPENDENT, 1, &head);
    let expected = ["request 1 Method=POST Scheme=http Authority=h Path=/", "data 1 ab", "end 1"];
    assert_eq!(server.take(&[head, padded].concat()), expected);
}

#[test]
fn blocks_may_span_frames() {
    let fields = with(GET, &[("a", "b"), ("cookie", "x=1"), ("cookie", "y=2")]);
    let block = block(&fields);
    let (first, rest) = block.split_at(7);
    let (second, third) = rest.split_at(9);
    let bytes = [
        frame(HEADERS, END_STREAM, 1, first),
        frame(CONTINUATION, 0, 1, second),
        frame(CONTINUATION, END_HEADERS, 1, third),
    ]
    .concat();
    let expected = "request 1 end Method=GET Scheme=http Authority=h Path=/ a=b cookie=x=1 cookie=y=2";
    let mut server = End::server();
    assert_eq!(server.take(&bytes), [expected]);
}

#[test]
fn connect_and_its_extension() {
    let mut server = End::server();
    let plain_line = [(":method", "CONNECT"), (":authority", "h:443")];
    assert_eq!(server.take(&headers(1, &plain_line, false)), ["request 1 Method=CONNECT Authority=h:443"]);
    let extended = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "h"),
    ];
    let expected = "request 3 Method=CONNECT Protocol=websocket Scheme=https Path=/chat Authority=h";
    assert_eq!(server.take(&headers(3, &extended, false)), [expected]);
    // Bytes of a tunnel have no length, as in HTTP/1.1.
    for (stream, line, length) in [(5, &extended[..], "30"), (7, &extended, "0"), (9, &plain_line, "1")] {
        let odd = with(line, &[("content-length", length)]);
        let expected = [format!("malformed {stream} length-of-connect may-answer")];
        assert_eq!(server.take(&headers(stream, &odd, false)), expected);
    }
}

#[test]
fn lengths_of_answers_without_bodies() {
    let mut client = End::client(0);
    client.ask(b"HEAD", true);
    client.ask(b"GET", true);
    client.ask(b"GET", true);
    let answers = [
        headers(1, &[(":status", "200"), ("content-length", "5")], true),
        headers(3, &[(":status", "304"), ("content-length", "5")], true),
        headers(5, &[(":status", "204")], true),
    ]
    .concat();
    assert_eq!(client.take(&answers), ["answer 1 200 end", "answer 3 304 end", "answer 5 204 end"]);
}

#[test]
fn heads_of_http1_are_made_lower_case_and_lose_their_connection() {
    let mut server = End::server();
    server.take(&get(1));
    let field = |name: &'static [u8], value: &'static [u8]| Field { name, value, is_sensitive: false };
    let mut out = server.write();
    let fields = [
        field(b"Content-Type", b"text/plain"),
        field(b"Connection", b"close"),
        field(b"Transfer-Encoding", b"chunked"),
        field(b"TE", b"gzip"),
        Field { is_sensitive: true, ..field(b"X-Secret", b"s") },
    ];
    server.conn.send_answer(0, 1, 200, fields, true, &mut out).expect("open");
    // The sink has the last block.
    let mut client = End::client(1);
    let happenings = client.take(&out);
    assert_eq!(happenings.last().map(String::as_str), Some("answer 1 200 end"));
    assert_eq!(client.fields(), "Status=200 content-type=text/plain x-secret=s!");
}

#[test]
fn large_heads_are_divided_and_read() {
    let mut server = End::server();
    server.take(&get(1));
    let value = vec![b'v'; 30_000];
    let field = Field { name: b"x-large", value: &value, is_sensitive: true };
    let mut out = Vec::new();
    server.conn.send_answer(0, 1, 200, [field], true, &mut out).expect("open");
    let kinds: Vec<u8> = frames(&out).iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == HEADERS).count(), 1);
    assert!(kinds.contains(&CONTINUATION));
    assert_eq!(End::client(1).take(&out), ["answer 1 200 end"]);
}

#[test]
fn nothing_is_sent_where_nothing_may_be() {
    let mut server = End::server();
    let mut out = Vec::new();
    assert_eq!(server.conn.send_answer(0, 1, 200, [], true, &mut out), Err(SendError::Closed));
    server.take(&get(1));
    server.answer(1, 200, false);
    server.conn.set_pending(1, 5, false);
    assert_eq!(server.conn.send_trailers(0, 1, [], &mut out), Err(SendError::DataWaits));
    assert_eq!(server.turns().1, [(1, 5)]);
    server.conn.send_trailers(0, 1, [], &mut out).expect("all was sent");
    out.clear();
    assert_eq!(server.conn.send_trailers(0, 1, [], &mut out), Err(SendError::Closed));
    server.conn.set_pending(1, 5, true);
    assert!(!server.conn.has_data() && out.is_empty());
    let mut client = End::client(0);
    client.ask(b"GET", true);
    assert_eq!(client.conn.send_trailers(0, 1, [], &mut out), Err(SendError::Closed));
}

#[test]
fn an_early_answer_ends_the_upload_without_error() {
    let mut server = End::server();
    server.take(&post(1));
    server.answer(1, 413, true);
    // The rest is taken, with window, until the caller has enough.
    assert_eq!(server.take(&data(1, &[0; 100], false)).len(), 1);
    server.conn.finish(0, 1);
    assert_eq!(resets(&server.write()), [(1, weir_http2::ErrorCode::NO_ERROR)]);
    // What is on its way is no fault.
    assert_eq!(server.events(&data(1, &[0; 100], true)), []);
    assert!(server.write().is_empty() && server.conn.footprint() > 0);
    server.conn.on_time(10_000_000_000).expect("nothing is late");
    assert_eq!(server.conn.footprint(), 0);
}

#[test]
fn streams_are_finished_by_their_user() {
    let mut client = End::client(2);
    assert_eq!(client.take(&headers(1, OK, true)), ["answer 1 200 end"]);
    assert_eq!(client.conn.streams(), 2);
    client.conn.finish(0, 1);
    client.conn.finish(0, 3);
    assert_eq!(client.conn.streams(), 0);
    assert_eq!(resets(&client.write()), [(3, weir_http2::ErrorCode::CANCEL)]);
    assert_eq!(client.events(&headers(3, OK, true)), Vec::<Event>::new());
}

#[test]
fn extended_connect_waits_for_the_peers_leave() {
    let line = RequestLine {
        method: b"CONNECT",
        scheme: Some(b"https"),
        authority: Some(b"h"),
        path: Some(b"/chat"),
        protocol: Some(b"websocket"),
        marks: PseudoMarks::NONE,
    };
    let mut client = End::new(Role::Client, Config::CLIENT);
    let mut out = Vec::new();
    let mut ask = |client: &mut End| client.conn.send_request(0, &line, [], false, &mut out);
    assert_eq!(ask(&mut client), Err(SendError::NoExtendedConnect));
    client.take(&settings(&[]));
    assert_eq!(ask(&mut client), Err(SendError::NoExtendedConnect));
    client.take(&settings(&[(8, 1)]));
    assert_eq!(ask(&mut client), Ok(1));
}

#[test]
fn a_status_that_may_not_be_sent_is_refused() {
    let mut server = End::server();
    server.take(&get(1));
    let mut out = Vec::new();
    for (status, is_end) in [(100, true), (103, true), (101, false), (99, false), (1000, true)] {
        let sent = server.conn.send_answer(0, 1, status, [], is_end, &mut out);
        assert_eq!(sent, Err(SendError::InvalidStatus), "{status}");
    }
    assert!(out.is_empty());
    server.answer(1, 103, false);
    server.answer(1, 200, true);
}

#[test]
fn a_tunnel_has_no_trailers() {
    // RFC 9113 §8.5: HEADERS are a stream error once it is open.
    let trailers = headers(1, &[("a", "b")], true);
    let mut server = End::server();
    server.take(&headers(1, &[(":method", "CONNECT"), (":authority", "h:443")], false));
    server.answer(1, 200, false);
    assert_eq!(server.take(&trailers), ["malformed 1 head-in-tunnel"]);
    let mut client = End::client(0);
    client.ask(b"CONNECT", false);
    client.take(&headers(1, OK, false));
    assert_eq!(client.take(&trailers), ["malformed 1 head-in-tunnel"]);
    // One that was refused is a message like others.
    let mut client = End::client(0);
    client.ask(b"CONNECT", false);
    client.take(&headers(1, &[(":status", "403")], false));
    assert_eq!(client.take(&trailers), ["trailers 1 a=b"]);
}

/// What the fields of a rendered head are, with `!` behind those that are marked.
fn marked(rendered: &Rendered<'_>) -> Vec<String> {
    let line = rendered.request_line(false);
    let text = |name: &[u8], is_sensitive| {
        format!("{}{}", String::from_utf8_lossy(name), if is_sensitive { "!" } else { "" })
    };
    let pseudo = [("method", Pseudo::Method), ("authority", Pseudo::Authority), ("path", Pseudo::Path)];
    let pseudo = pseudo.map(|(name, pseudo)| text(name.as_bytes(), line.marks.has(pseudo)));
    pseudo.into_iter().chain(rendered.fields().map(|field| text(field.name, field.is_sensitive))).collect()
}

#[test]
fn never_indexed_fields_stay_so_behind_http1() {
    // RFC 7541 §6.2.3.
    let field = |name, value, is_sensitive| Field { name, value, is_sensitive };
    let mut head = Head::default();
    let mut read = |sensitive: &[&str]| {
        head.begin(1, Block::Request);
        let mark = |name: &'static str, value: &'static str| {
            field(name.as_bytes(), value.as_bytes(), sensitive.contains(&name))
        };
        head.pseudo(Pseudo::Method, mark(":method", "GET"));
        head.pseudo(Pseudo::Path, mark(":path", "/"));
        head.pseudo(Pseudo::Authority, mark(":authority", "h"));
        head.field(mark("x-token", "secret"));
        head.field(mark("cookie", "a=b"));
        head.field(mark("cookie", "c=d"));
        let mut request = Request::default();
        head.request(false, &Limits::default(), &mut request, &mut Vec::new()).expect("lawful");
        request
    };
    let head_text =
        b"GET / HTTP/1.1\r\nHost: h\r\nX-Token: secret\r\nCookie: a=b; c=d\r\nX-Forwarded-Host: h\r\n\r\n";
    for (sensitive, expected) in [
        (&[][..], ["method", "authority", "path", "X-Token", "Cookie", "X-Forwarded-Host"]),
        (&["x-token"], ["method", "authority", "path", "X-Token!", "Cookie", "X-Forwarded-Host"]),
        (&["cookie", ":path"], ["method", "authority", "path!", "X-Token", "Cookie!", "X-Forwarded-Host"]),
        (&[":method"], ["method!", "authority", "path", "X-Token", "Cookie", "X-Forwarded-Host"]),
        (&[":authority"], ["method", "authority!", "path", "X-Token", "Cookie", "X-Forwarded-Host!"]),
    ] {
        let request = read(sensitive);
        let rendered = Rendered::new(head_text).mark(request.sensitive_names());
        assert_eq!(marked(&rendered), expected, "{sensitive:?}");
    }
    // The same object may be another request next.
    let mut request = read(&["x-token", ":path"]);
    request.parse(head_text, &Limits::default()).expect("lawful");
    assert!(
        marked(&Rendered::new(head_text).mark(request.sensitive_names())).iter().all(|f| !f.ends_with('!'))
    );
}

#[test]
fn marked_pseudo_fields_are_written_and_read_as_such() {
    let mut marks = PseudoMarks::NONE;
    marks.set(Pseudo::Path, true);
    marks.set(Pseudo::Authority, true);
    marks.set(Pseudo::Method, true);
    let line = RequestLine {
        method: b"GET",
        scheme: Some(b"http"),
        authority: Some(b"secret.example"),
        path: Some(b"/"),
        protocol: None,
        marks,
    };
    let (mut client, mut server) =
        (End::new(Role::Client, Config::CLIENT), End::new(Role::Server, Config::SERVER));
    for id in [1, 3, 5] {
        let mut out = Vec::new();
        client.conn.send_request(0, &line, [], true, &mut out).expect("a stream is free");
        let fields = "Method=GET! Scheme=http Authority=secret.example! Path=/!";
        assert_eq!(server.take(&out).last(), Some(&format!("request {id} end {fields}")));
    }
}
