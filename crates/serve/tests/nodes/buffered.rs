//! `buffered` with real traffic.

use crate::common::{Conn, Origin, Reply, get, pause, serve_node, timed, until};

#[test]
pub fn a_request_is_taken_whole_first() {
    let origin = Origin::named("x");
    let served = serve_node(&format!("buffered(server(\"a\", addr=\"{}\"), 64*KiB)", origin.addr));
    let mut conn = Conn::new(&served.addr);
    conn.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(conn.response().status, 100, "weir says so itself");
    conn.send("abc");
    pause(50);
    assert_eq!(origin.connections(), 0);
    conn.send("def");
    assert_eq!(conn.response().body, "x");
    let (head, body) = origin.seen()[0].clone();
    assert_eq!(body, b"abcdef");
    assert!(!head.to_ascii_lowercase().contains("expect:"), "{head}");
}

#[test]
pub fn a_large_request_goes_on_streaming() {
    let origin = Origin::new(|_, _| Reply::Ok("x".into()));
    let served = serve_node(&format!("retry(2, buffered(server(\"a\", addr=\"{}\"), 1*KiB))", origin.addr));
    let mut conn = Conn::new(&served.addr);
    let body: Vec<u8> = (0..300_000u32).map(|i| (i % 251) as u8).collect();
    conn.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n");
    conn.send(&body[..2000]);
    until(|| origin.open() == 1);
    conn.send(&body[2000..]);
    assert_eq!(conn.response().body, "x");
    assert!(origin.seen()[0].1 == body);
    // Chunked as well.
    conn.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(conn.response().body, "x");
    assert_eq!(origin.seen()[1].1, b"3\r\nabc\r\n0\r\n\r\n");
}

/// A slow client holds no slot once its response is here; without `buffered` it does.
#[test]
pub fn a_slow_client_holds_no_server() {
    let big = "x".repeat(24 << 20);
    let length = big.len();
    let origin =
        Origin::new(move |n, _| if n == 0 { Reply::Ok(big.clone()) } else { Reply::Ok("next".into()) });
    let served =
        serve_node(&format!("buffered(queue(server(\"a\", addr=\"{}\"), timeout=5*s), 32*MiB)", origin.addr));
    let mut slow = Conn::new(&served.addr);
    slow.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until(|| origin.count() == 1);
    let (ms, response) = timed(|| get(&served.addr, "/"));
    assert_eq!(response.body, "next");
    assert!(ms < 4000.0, "{ms}");
    assert_eq!(origin.connections(), 1, "the connection was free, too");
    let whole = slow.response();
    assert!(whole.status == 200 && whole.body.len() == length);
    let big = "x".repeat(24 << 20);
    let origin = Origin::new(move |_, _| Reply::Ok(big.clone()));
    let served = serve_node(&format!("queue(server(\"a\", addr=\"{}\"), timeout=100*ms)", origin.addr));
    let mut slow = Conn::new(&served.addr);
    slow.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until(|| origin.count() == 1);
    assert_eq!(get(&served.addr, "/").status, 504);
    drop(slow);
}

/// Of chunks the end shows only behind the last byte.
#[test]
pub fn exactly_so_many_bytes_are_waited_for() {
    let origin = Origin::named("x");
    let served = serve_node(&format!("buffered(server(\"a\", addr=\"{}\"), 4)", origin.addr));
    let mut conn = Conn::new(&served.addr);
    conn.send("PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n");
    pause(50);
    assert_eq!(origin.connections(), 0);
    conn.send("0\r\n\r\n");
    assert_eq!(conn.response().body, "x");
}
