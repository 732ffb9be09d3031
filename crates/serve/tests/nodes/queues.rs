//! `queue`, and `max_in_flight` of balancers.

use crate::common::{
    Conn, Origin, Reply, RunningBalancer, get, near, pause, serve_node, serve_with, timed, until,
};
use std::thread::JoinHandle;

fn slow(ms: u64) -> Origin {
    Origin::new(move |n, _| Reply::After(ms, Box::new(Reply::Ok(n.to_string()))))
}

fn in_background(addr: &str, path: &str) -> JoinHandle<(f64, u16, String)> {
    let (addr, path) = (addr.to_owned(), path.to_owned());
    std::thread::spawn(move || {
        let (ms, response) = timed(|| get(&addr, &path));
        (ms, response.status, response.body)
    })
}

/// One slot however many loops there are.
#[test]
pub fn a_queue_is_the_processs() {
    let origin = slow(2);
    let text =
        format!("listen(\"127.0.0.1:0\", queue(server(\"a\", addr=\"{}\"), concurrency=2))", origin.addr);
    let served = serve_with(&text, 4, false);
    let all: Vec<_> = (0..40).map(|_| in_background(&served.addr, "/")).collect();
    assert!(all.into_iter().all(|t| t.join().expect("an answer").1 == 200));
    assert_eq!((origin.count(), origin.most_busy()), (40, 2));
}

#[test]
pub fn those_who_wait_go_in_order() {
    let path = |head: &str| head.split(' ').nth(1).unwrap_or("").to_owned();
    let origin = Origin::new(move |_, head| match path(head).as_str() {
        "/0" => Reply::After(200, Box::new(Reply::Ok("0".into()))),
        other => Reply::Ok(other.to_owned()),
    });
    let text = format!("listen(\"127.0.0.1:0\", queue(server(\"a\", addr=\"{}\")))", origin.addr);
    let served = serve_with(&text, 3, false);
    // One answer each: every connection has its loop by now.
    let mut conns: Vec<Conn> = (0..8).map(|_| Conn::new(&served.addr)).collect();
    conns.iter_mut().for_each(|c| assert_eq!(c.get("/warm", "").status, 200));
    for (i, conn) in conns.iter_mut().enumerate() {
        conn.send(format!("GET /{i} HTTP/1.1\r\nHost: a\r\n\r\n"));
        pause(15);
    }
    conns.iter_mut().for_each(|c| assert_eq!(c.response().status, 200));
    let order: Vec<String> = origin.seen().iter().skip(8).map(|(h, _)| path(h)).collect();
    assert_eq!(order, (0..8).map(|i| format!("/{i}")).collect::<Vec<_>>());
}

fn full(node: impl Fn(&str) -> String) -> (Origin, RunningBalancer) {
    let origin = slow(150);
    let served = serve_node(&node(&format!("server(\"a\", addr=\"{}\")", origin.addr)));
    (origin, served)
}

#[test]
pub fn a_full_queue_is_overloaded_and_a_long_wait_a_timeout() {
    let (origin, served) = full(|s| format!("queue({s}, capacity=1, timeout=30*ms)"));
    let first = in_background(&served.addr, "/");
    until(|| origin.busy() == 1);
    let second = in_background(&served.addr, "/");
    pause(10);
    let third = get(&served.addr, "/");
    assert_eq!((third.status, third.header("retry-after")), (503, Some("1")));
    let (ms, status, _) = second.join().expect("an answer");
    assert_eq!(status, 504);
    near(ms, 30.0);
    assert_eq!(first.join().expect("an answer").1, 200);
    assert_eq!(get(&served.addr, "/").status, 200, "whoever waited in vain left nothing behind");
}

#[test]
pub fn max_in_flight_lets_the_rest_wait() {
    let (origin, served) =
        full(|s| format!("lb.random([{s}], max_in_flight=1, max_waiting=1, wait_timeout=400*ms)"));
    let first = in_background(&served.addr, "/");
    until(|| origin.busy() == 1);
    // One of them waits, whichever comes first; the other finds no place.
    let others = [in_background(&served.addr, "/"), in_background(&served.addr, "/")];
    let mut statuses = others.map(|t| t.join().expect("an answer").1);
    statuses.sort_unstable();
    assert_eq!((first.join().expect("an answer").1, statuses), (200, [200, 503]));
    assert_eq!(origin.most_busy(), 1);
}

#[test]
pub fn max_in_flight_is_the_processs() {
    let (a, b) = (slow(3), slow(3));
    let text = format!(
        "listen(\"127.0.0.1:0\", lb.p2c([server(\"a\", addr=\"{}\"), server(\"b\", addr=\"{}\")], max_in_flight=2))",
        a.addr, b.addr
    );
    let served = serve_with(&text, 4, false);
    let all: Vec<_> = (0..60).map(|_| in_background(&served.addr, "/")).collect();
    assert!(all.into_iter().all(|t| t.join().expect("an answer").1 == 200));
    assert_eq!((a.most_busy(), b.most_busy()), (2, 2));
    assert_eq!(a.count() + b.count(), 60);
}

#[test]
pub fn a_wait_for_a_balancer_ends() {
    let (origin, served) = full(|s| format!("lb.random([{s}], max_in_flight=1, wait_timeout=30*ms)"));
    let first = in_background(&served.addr, "/");
    until(|| origin.busy() == 1);
    let (ms, response) = timed(|| get(&served.addr, "/"));
    assert_eq!(response.status, 504);
    near(ms, 30.0);
    assert_eq!(first.join().expect("an answer").1, 200);
}

/// The slot is held until the response has come back whole.
#[test]
pub fn a_slot_is_held_for_the_body() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345".to_vec();
    let stuck = Origin::new(move |_, _| Reply::Raw(head.clone()));
    let served = serve_node(&format!("queue(server(\"a\", addr=\"{}\"), timeout=30*ms)", stuck.addr));
    let mut conn = Conn::new(&served.addr);
    conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until(|| stuck.count() == 1);
    assert_eq!(get(&served.addr, "/").status, 504);
    drop(conn);
    until(|| stuck.open() == 0);
    let mut conn = Conn::new(&served.addr);
    conn.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    until(|| stuck.count() == 2);
}

/// Two balancers let a request each through to a server that may have one connection: the one that finds no room waits,
/// but not for ever, though its `connect_timeout` is none.
#[test]
pub fn a_wait_for_a_connection_ends() {
    let origin = slow(3000);
    for (around, least_ms, most_ms) in [("", 900.0, 2500.0), (", wait_timeout=100*ms", 80.0, 900.0)] {
        let lb = format!("lb.random([one], max_connections=1{around})");
        let text = format!(
            "one = server(\"a\", addr=\"{}\", connect_timeout=None)\n\
             listen(\"127.0.0.1:0\", route([(when(path=\"/a\"), {lb})], otherwise={lb}))",
            origin.addr
        );
        let served = serve_with(&text, 1, false);
        let before = origin.count();
        let mut first = Conn::new(&served.addr);
        first.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
        until(|| origin.count() > before);
        let (ms, second) = timed(|| get(&served.addr, "/b"));
        assert_eq!(second.status, 503, "{lb}");
        assert!((least_ms..most_ms).contains(&ms), "{lb}: {ms} ms");
    }
}
