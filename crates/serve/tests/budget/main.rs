//! The budget of buffered bytes, which is the process's: tests of a process of their own, that sets it small, one at a
//! time.

#[path = "../common/mod.rs"]
mod common;
mod memory;
#[allow(dead_code)]
#[path = "../h2/peer.rs"]
mod peer;
mod progress;

use common::{Origin, Reply, point, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use weir_plan::listeners;
use weir_plan::serving::serving;
use weir_serve::{Options, Running, start};

/// What may wait, bytes.
const BUDGET: usize = 512 << 10;

/// What runs with that budget; nothing else does meanwhile.
struct Budgeted {
    running: Running,
    addr: String,
    _alone: MutexGuard<'static, ()>,
}

impl Budgeted {
    /// Serves this node.
    fn new(node: &str) -> Budgeted {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(|broken| broken.into_inner());
        let times = "http=http(write_timeout=10*minutes, drain_timeout=0*s)";
        let point = point(&format!("listen(\"127.0.0.1:0\", {node}, {times})"));
        let served = serving(&point, false).expect("it can be served");
        let nodes = listeners(&point);
        let options = Options { loops: Some(1), buffered: Some(BUDGET), ..Options::default() };
        let running = start(&Arc::new(point), &Arc::new(served), &nodes, &options).expect("it is served");
        let addr = running.listening[0].addr.clone();
        Budgeted { running, addr, _alone: alone }
    }

    /// A connection that asks for `streams` streams, and never reads. `window`: of each of them.
    fn silent(&self, streams: u32, window: u32) -> TcpStream {
        let mut conn = TcpStream::connect(&self.addr).expect("a connection");
        conn.write_all(&asks(streams, window)).expect("it asks");
        conn
    }
}

impl Drop for Budgeted {
    fn drop(&mut self) {
        self.running.remote().drain();
    }
}

/// The preface, windows of this size (the connection's of 2^31 - 1), and this number of requests.
fn asks(streams: u32, window: u32) -> Vec<u8> {
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    out.extend(b"\0\0\x06\x04\0\0\0\0\0\0\x04");
    out.extend(window.to_be_bytes());
    out.extend(b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0");
    // GET, http, :path /large, :authority test.
    let block = b"\x82\x86\x04\x06/large\x01\x04test";
    for n in 0..streams {
        out.extend([0, 0, block.len() as u8, 1, 5]);
        out.extend((1 + 2 * n).to_be_bytes());
        out.extend(block);
    }
    out
}

/// The largest window that there is.
const WIDE: u32 = 0x7fff_ffff;

/// Clients that never read, and would have all the time of the world for it, hold no more than may wait for long:
/// others are let in, and served.
#[test]
fn who_never_reads_does_not_keep_others_out() {
    let large = "x".repeat(8 << 20);
    let origin = Origin::new(move |_, head| match head.starts_with("GET /large ") {
        true => Reply::Ok(large.clone()),
        false => Reply::Ok("small".to_owned()),
    });
    let served = Budgeted::new(&format!("server(\"origin\", addr=\"{}\")", origin.addr));
    let silent: Vec<TcpStream> = (0..16).map(|_| served.silent(1, WIDE)).collect();
    // Nothing shows when the budget is used up: that is long before the last of these.
    until(|| origin.count() >= 16);
    for _ in 0..200 {
        let mut conn = TcpStream::connect(&served.addr).expect("a connection");
        conn.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
        conn.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").expect("it asks");
        let mut answer = String::new();
        conn.read_to_string(&mut answer).expect("an answer");
        assert!(answer.ends_with("small"), "{answer}");
    }
    drop((served, silent));
}
