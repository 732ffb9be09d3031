//! A panic in a node ends the request that met it, over both protocols, and nothing else.

use super::start::start;
use crate::metrics::Exposition;
use crate::reload::options::Options;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use weir_plan::listeners;
use weir_plan::serving::serving;

/// Ways to the node `X`, of every node that may stand before a real server.
const WAYS: [&str; 19] = [
    "X",
    "lb.random([X])",
    "lb.least_conn([X], scope = \"process\", max_in_flight = 5)",
    "lb.round_robin([X], eject = eject())",
    "lb.p2c([X], sticky = \"s\")",
    "weight(2, X)",
    "route([(when(method = \"GET\"), X)])",
    "split([(1, X)])",
    "limit.rate(X, per_s = 1000)",
    "rewrite(X, response_set = {\"x-a\": \"b\"})",
    "rewrite(X, set = {\"x-a\": \"b\"})",
    "buffered(X, 1 * KiB)",
    "retry(3, X)",
    "hedge(1 * ms, X)",
    "timeout(5 * s, X)",
    "queue(X, concurrency = 5)",
    "queue(X, concurrency = 5, on_cancel = \"finish\")",
    "cable(1 * ms, X)",
    "faulty(1000 * hours, 1 * s, X)",
];

pub(crate) fn serve(text: &str) -> (crate::Running, SocketAddr) {
    let request = weir_topology::Request { source: text.into(), name: "t.star".into(), ..Default::default() };
    let evaluated = weir_topology::evaluate(&request).unwrap_or_else(|errors| panic!("{text}: {errors:#?}"));
    let point = Arc::new(evaluated.plan.points.into_iter().next().expect("a point"));
    let roles = Arc::new(serving(&point, true).unwrap_or_else(|why| panic!("{text}: {why:?}")));
    let options = Options { loops: Some(1), quiet: true, ..Options::default() };
    let running = start(&point, &roles, &listeners(&point), &options).expect("it starts");
    let addr = running.listening[0].addr.parse().expect("an address");
    (running, addr)
}

fn connect(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    stream
}

/// The whole answer over HTTP/1.1, to the end of the connection.
fn get(addr: SocketAddr, path: &str) -> String {
    let mut stream = connect(addr);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("it reads");
    let mut answer = Vec::new();
    // A connection that is cut off may end in a reset.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// The first byte of the head over HTTP/2 (0x8e: `:status: 500` in HPACK's static table), and whether the stream was
/// reset.
fn get_h2(addr: SocketAddr, path: u8) -> (Option<u8>, bool) {
    let mut stream = connect(addr);
    let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    sent.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    // GET, http, the path of one letter, the authority x.
    let head = [0x82, 0x86, 0x04, 2, b'/', path, 0x41, 1, b'x'];
    sent.extend([0, 0, head.len() as u8, 1, 5, 0, 0, 0, 1]);
    sent.extend(head);
    stream.write_all(&sent).expect("it reads");
    let mut status = None;
    loop {
        let mut frame = [0; 9];
        stream.read_exact(&mut frame).expect("a frame");
        let mut body = vec![0; u32::from_be_bytes([0, frame[0], frame[1], frame[2]]) as usize];
        stream.read_exact(&mut body).expect("its body");
        match frame[3] {
            1 => status = body.first().copied(),
            3 => return (status, true),
            _ => {}
        }
        if matches!(frame[3], 0 | 1) && frame[4] & 1 == 1 {
            return (status, false);
        }
    }
}

fn metric(running: &crate::Running, line: &str) -> bool {
    let text = running.remote().scrape(Exposition::Prometheus);
    String::from_utf8(text).expect("text").lines().any(|found| found == line)
}

#[test]
fn a_panic_in_any_node_is_a_500() {
    for way in WAYS {
        let node = way.replace('X', "server(addr = \"127.0.0.1:9\")");
        let rules = format!("[(when(path = \"/P\"), {node})]");
        let (running, addr) = serve(&format!(
            "listen(\"127.0.0.1:0\", route({rules}, otherwise = respond(200)), name = \"front\", \
             http = http(versions = [\"h1\", \"h2\"]))"
        ));
        let answer = get(addr, "/P");
        assert!(answer.starts_with("HTTP/1.1 500 "), "{way}: {answer}");
        assert_eq!(get_h2(addr, b'P'), (Some(0x8e), false), "{way}");
        // The loop goes on.
        assert!(get(addr, "/a").starts_with("HTTP/1.1 200 "), "{way}");
        assert!(metric(&running, "weir_request_panics_total{listener=\"front\"} 2"), "{way}");
        assert!(
            metric(&running, "weir_request_errors_total{listener=\"front\",kind=\"status_5xx\"} 2"),
            "{way}"
        );
        running.remote().drain();
        running.join().expect("it ends");
    }
}

/// Once the head of the answer has gone, the answer breaks off.
#[test]
fn a_panic_behind_the_head_breaks_the_answer_off() {
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = origin.local_addr().expect("its address");
    std::thread::spawn(move || {
        for mut stream in origin.incoming().flatten() {
            let mut head = [0; 4096];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(b"HTTP/1.1 299 Hm\r\nContent-Length: 5\r\n\r\nhallo");
        }
    });
    let (running, addr) = serve(&format!(
        "listen(\"127.0.0.1:0\", server(addr = \"{at}\"), name = \"front\", http = http(versions = [\"h1\", \"h2\"]))"
    ));
    assert!(!get(addr, "/b").contains("hallo"));
    assert!(get_h2(addr, b'b').1);
    assert!(metric(&running, "weir_request_panics_total{listener=\"front\"} 2"));
    assert!(metric(&running, "weir_request_errors_total{listener=\"front\",kind=\"reset\"} 2"));
    running.remote().drain();
    running.join().expect("it ends");
}
