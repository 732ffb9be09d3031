//! The budget of buffered bytes, which is the process's: a test of its own process, that sets it small.

#[path = "../common/mod.rs"]
mod common;

use common::{Origin, Then, point, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use weir_serve::{Options, start};
use weir_topology::plan::listeners;
use weir_topology::serving::serving;

/// The preface, windows of 2^31 - 1, and a request.
fn asks() -> Vec<u8> {
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    out.extend(b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff");
    out.extend(b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0");
    // GET, http, :path /large, :authority test.
    let block = b"\x82\x86\x04\x06/large\x01\x04test";
    out.extend([0, 0, block.len() as u8, 1, 5, 0, 0, 0, 1]);
    out.extend(block);
    out
}

/// Clients that never read, and would have all the time of the world for it, hold no more than may wait for long: others are let
/// in, and served.
#[test]
fn who_never_reads_does_not_keep_others_out() {
    let large = "x".repeat(8 << 20);
    let origin = Origin::new(move |_, head| match head.starts_with("GET /large ") {
        true => Then::Ok(large.clone()),
        false => Then::Ok("small".to_owned()),
    });
    let times = "http=http(write_timeout=10*minutes, drain_timeout=0*s)";
    let text = format!("listen(\"127.0.0.1:0\", server(\"origin\", addr=\"{}\"), {times})", origin.addr);
    let point = point(&text);
    let served = serving(&point, false).expect("it can be served");
    let nodes = listeners(&point);
    let options = Options { loops: Some(1), buffered: Some(512 << 10), ..Options::default() };
    let running = start(&Arc::new(point), &Arc::new(served), &nodes, &options).expect("it is served");
    let addr = running.listening[0].addr.clone();
    let mut silent = Vec::new();
    for _ in 0..16 {
        let mut conn = TcpStream::connect(&addr).expect("a connection");
        conn.write_all(&asks()).expect("it asks");
        silent.push(conn);
    }
    // Nothing shows when the budget is used up: that is long before the last of these.
    until(|| origin.count() >= 16);
    for _ in 0..200 {
        let mut conn = TcpStream::connect(&addr).expect("a connection");
        conn.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        conn.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").expect("it asks");
        let mut answer = String::new();
        conn.read_to_string(&mut answer).expect("an answer");
        assert!(answer.ends_with("small"), "{answer}");
    }
    running.remote().drain();
    drop(silent);
}
