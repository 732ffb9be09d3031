//! Clients that leave: what goes on and what does not.

use crate::common::{Conn, Origin, Reply, get, pause, serve_node, timed, transport, until};

fn queue(on_cancel: &str, ms: u64) -> (Origin, crate::common::RunningBalancer) {
    let origin = Origin::new(move |_, _| Reply::After(ms, Box::new(Reply::Ok("x".into()))));
    let node = format!("queue(server(\"a\", addr=\"{}\"), on_cancel=\"{on_cancel}\")", origin.addr);
    let served = serve_node(&node);
    (origin, served)
}

fn ask(addr: &str) -> Conn {
    let mut conn = Conn::new(addr);
    conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    conn
}

#[test]
pub fn stop_frees_the_slot_at_once() {
    let (origin, served) = queue("stop", 400);
    let conn = ask(&served.addr);
    until(|| origin.busy() == 1);
    drop(conn);
    until(|| origin.open() == 0);
    let conn = ask(&served.addr);
    until(|| origin.busy() == 1);
    assert_eq!(origin.count(), 2);
    drop(conn);
}

/// One inside goes on to its end and holds its slot; one that waits leaves.
#[test]
pub fn skip_goes_on_inside() {
    let (origin, served) = queue("skip", 120);
    let inside = ask(&served.addr);
    until(|| origin.busy() == 1);
    let waiting = ask(&served.addr);
    pause(20);
    drop((inside, waiting));
    let (ms, response) = timed(|| get(&served.addr, "/"));
    assert_eq!(response.status, 200);
    assert!(ms > 180.0, "{ms}: the slot was not held");
    assert_eq!(
        (origin.count(), origin.most_busy(), origin.connections()),
        (2, 1, 1),
        "drained, so used again"
    );
}

#[test]
pub fn finish_goes_on_waiting_too() {
    let (origin, served) = queue("finish", 60);
    let inside = ask(&served.addr);
    until(|| origin.busy() == 1);
    let waiting = ask(&served.addr);
    pause(20);
    drop((inside, waiting));
    until(|| origin.count() == 2);
    let (ms, response) = timed(|| get(&served.addr, "/"));
    assert_eq!(response.status, 200);
    assert!(ms > 100.0, "{ms}: the slot was not held");
    assert_eq!((origin.count(), origin.most_busy(), origin.connections()), (3, 1, 1));
}

/// What was not sent whole does not go on, nor does a waiting one whose body is not here.
#[test]
pub fn half_a_request_never_goes_on() {
    let (origin, served) = queue("finish", 50);
    let mut half = Conn::new(&served.addr);
    half.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345");
    pause(30);
    let mut waiting = Conn::new(&served.addr);
    waiting.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345");
    pause(30);
    drop((half, waiting));
    assert_eq!(get(&served.addr, "/").status, 200);
    assert_eq!(origin.count(), 1);
}

/// A limit of time outside cancels as a client does; what goes on may not disturb the client's next request.
#[test]
pub fn a_timeout_outside_leaves_what_goes_on() {
    let origin = Origin::new(|n, _| match n {
        0 => Reply::After(
            100,
            Box::new(Reply::Raw(
                b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n0".to_vec(),
            )),
        ),
        n => Reply::Ok(n.to_string()),
    });
    let served = serve_node(&format!(
        "timeout(30*ms, queue(server(\"a\", addr=\"{}\"), concurrency=2, on_cancel=\"finish\"))",
        origin.addr
    ));
    let mut conn = Conn::new(&served.addr);
    assert_eq!(conn.get("/", "").status, 504);
    assert_eq!(conn.get("/", "").body, "1");
    // A connection keeps both where it carries many requests, and streams that were answered are over.
    let connections = if transport::is_http2() { 1 } else { 2 };
    until(|| origin.open() == connections);
    pause(120);
    assert_eq!(conn.get("/", "").status, 200);
    assert_eq!(origin.connections(), connections, "both connections came back to their pool");
}

/// Behind the head too: the response is drained, and the slot held until then.
#[test]
pub fn a_body_is_drained() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n12".to_vec();
    let origin = Origin::new(move |n, _| match n {
        0 => Reply::Raw(head.clone()),
        _ => Reply::Ok("x".into()),
    });
    let served = serve_node(&format!(
        "queue(server(\"a\", addr=\"{}\"), on_cancel=\"skip\", timeout=60*ms)",
        origin.addr
    ));
    let mut conn = ask(&served.addr);
    assert!(conn.take(10).is_some());
    drop(conn);
    assert_eq!(get(&served.addr, "/").status, 504, "the rest of the body is still awaited");
}

/// A limit of time that ends in the body breaks it at once, though what is behind goes on, and keeps its slot.
#[test]
pub fn a_timeout_in_the_body_leaves_what_goes_on() {
    let origin = Origin::new(|n, _| match n {
        0 => Reply::Parts(vec![
            (0, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n12".to_vec()),
            (150, b"34".to_vec()),
        ]),
        n => Reply::Ok(n.to_string()),
    });
    let served = serve_node(&format!(
        "timeout(40*ms, queue(server(\"a\", addr=\"{}\"), on_cancel=\"skip\"))",
        origin.addr
    ));
    let mut conn = ask(&served.addr);
    let (ms, response) = timed(|| conn.try_response());
    assert!(response.is_none() && ms < 110.0, "{ms}");
    assert_eq!(get(&served.addr, "/").status, 504, "the slot is held");
    pause(120);
    assert_eq!(
        (get(&served.addr, "/").body.as_str(), origin.connections()),
        ("1", 1),
        "drained, and used again"
    );
}

/// A process that crashes takes along what only went on because nothing stopped it.
#[test]
pub fn a_crash_ends_what_goes_on() {
    for model in [
        "queue(server(\"a\", model=20*s), capacity=0, on_cancel=\"finish\")",
        "queue(server(\"a\", model=concurrent(20*s, on_cancel=\"finish\")), capacity=0, on_cancel=\"finish\")",
    ] {
        let served = serve_node(&format!("faulty(25*ms, 1*ms, {model}, mode=\"crash\")"));
        for _ in 0..6 {
            let conn = ask(&served.addr);
            pause(5);
            drop(conn);
            // By now it has crashed, but for once in a hundred million times.
            pause(500);
            let response = get(&served.addr, "/");
            assert_eq!(response.header("retry-after"), None, "the slot is still held");
        }
    }
}
