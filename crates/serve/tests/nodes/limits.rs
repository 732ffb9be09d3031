//! `limit.rate` and `timeout`.

use crate::common::{Conn, Origin, Reply, get, get_with, near, pause, serve_node, serve_with, timed};
use std::io::{Read, Write};

#[test]
pub fn rate_is_429_with_retry_after() {
    let served = serve_node("limit.rate(respond(200), 0.5, burst=3)");
    let mut conn = Conn::new(&served.addr);
    assert!((0..3).all(|_| conn.get("/", "").status == 200));
    let limited = conn.get("/", "");
    assert_eq!((limited.status, limited.header("retry-after")), (429, Some("2")));
    let served = serve_node("limit.rate(respond(200), 50, burst=1)");
    assert_eq!(get(&served.addr, "/").status, 200);
    assert_eq!(get(&served.addr, "/").header("retry-after"), Some("1"));
    pause(30);
    assert_eq!(get(&served.addr, "/").status, 200);
}

#[test]
pub fn rate_has_a_bucket_per_key() {
    let served = serve_node("limit.rate(respond(200), 0.001, burst=1, key=key.header(\"x-user\"))");
    let status = |fields: &str| get_with(&served.addr, "/", fields).status;
    assert_eq!((status("x-user: a\r\n"), status("x-user: b\r\n"), status("x-user: a\r\n")), (200, 200, 429));
    assert_eq!((status(""), status("")), (200, 429), "without one: the common bucket");
}

/// The bucket is the process's: with four loops no more pass than with one.
#[test]
pub fn rate_is_the_processs() {
    let served = serve_with("listen(\"127.0.0.1:0\", limit.rate(respond(200), 0.001, burst=20))", 4, false);
    let count =
        |addr: String| std::thread::spawn(move || (0..40).filter(|_| get(&addr, "/").status == 200).count());
    let threads: Vec<_> = (0..4).map(|_| count(served.addr.clone())).collect();
    let passed: usize = threads.into_iter().map(|t| t.join().expect("a count")).sum();
    assert_eq!(passed, 20);
}

#[test]
pub fn timeout_is_504_and_cancels() {
    let slow = Origin::new(|_, _| Reply::After(3000, Box::new(Reply::Status(200))));
    let served = serve_node(&format!("timeout(40*ms, server(\"a\", addr=\"{}\"))", slow.addr));
    let (ms, response) = timed(|| get(&served.addr, "/"));
    assert_eq!(response.status, 504);
    near(ms, 40.0);
    crate::common::until(|| slow.open() == 0);
    let none = serve_node("timeout(None, respond(200))");
    assert_eq!(get(&none.addr, "/").status, 200);
}

/// It covers the whole response: behind the head a limit that ends breaks the body.
#[test]
pub fn timeout_breaks_a_body() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345".to_vec();
    let stuck = Origin::new(move |_, _| Reply::Raw(head.clone()));
    let served = serve_node(&format!("timeout(40*ms, server(\"a\", addr=\"{}\"))", stuck.addr));
    let mut conn = Conn::new(&served.addr);
    conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(conn.try_response().is_none());
}

/// A client that was not told to go on is not waited for: the time is the origin's.
#[test]
pub fn who_waits_for_a_100_is_not_waited_for() {
    let origin = Origin::named("x");
    let served = serve_node(&format!("timeout(300*ms, server(\"a\", addr=\"{}\"))", origin.addr));
    let mut conn = Conn::new(&served.addr);
    let ask = "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    let (ms, response) = timed(|| {
        conn.send(ask);
        conn.response()
    });
    assert_eq!(response.status, 504);
    assert!((290.0..900.0).contains(&ms), "{ms}");
    // It gets the 100 after a second, and has its own time from then on.
    let served =
        serve_node(&format!("server(\"a\", addr=\"{}\"), http=http(body_timeout=500*ms)", origin.addr));
    let mut conn = Conn::new(&served.addr);
    conn.send(ask);
    assert_eq!(conn.response().status, 100);
    pause(250);
    conn.send("abc");
    assert_eq!(conn.response().body, "x");
    let mut conn = Conn::new(&served.addr);
    conn.send(ask);
    assert_eq!([conn.response().status, conn.response().status], [100, 408]);
}

/// An answer has begun, and the client gets no 100 any more: silence of both has its limit all the same.
#[test]
pub fn an_early_answer_that_stalls_has_an_end() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut origin, _) = listener.accept().unwrap();
        let mut read = [0; 1024];
        let _ = origin.read(&mut read);
        let _ = origin.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
        let _ = origin.read(&mut read);
    });
    let served = serve_node(&format!("server(\"a\", addr=\"{addr}\", body_timeout=300*ms)"));
    let mut conn = Conn::new(&served.addr);
    conn.send("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    let (ms, response) = timed(|| conn.try_response());
    assert_eq!(response, None, "it breaks off");
    assert!(ms < 5_000.0, "{ms}");
}
