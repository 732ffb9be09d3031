//! The cost of a scrape: CPU of the whole process, with a number of targets each of which has answered, on two loops.
//!
//! `cargo run --release --example scrape -- 250 5000`

use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_plan::listeners;
use weir_plan::serving::serving;
use weir_serve::{Exposition, Options, start};
use weir_topology::{Request, evaluate};

const SCRAPES: u32 = 20;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";

fn main() {
    let listener = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(|| answer(listener));
    let counts = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    counts.for_each(|targets: u32| measure(targets, port));
}

/// Answers each connection once.
fn answer(listener: std::net::TcpListener) {
    listener.set_nonblocking(true).expect("a socket");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // A request fits one read; a client that breaks off needs no answer.
                if stream.read(&mut [0; 4096]).await.is_ok() {
                    let _ = stream.write_all(ANSWER).await;
                }
            });
        }
    });
}

fn measure(targets: u32, port: u16) {
    // All of 127.0.0.0/8 is this machine.
    let text = format!(
        "all = [server(\"server-%d\" % n, addr=\"127.0.%d.%d:{port}\" % (n // 250, n % 250 + 1)) for n in range({targets})]\n\
         listen(\"127.0.0.1:0\", lb.round_robin(all, name=\"applications\"), name=\"edge\")\n"
    );
    let request = Request { name: "scrape.star".into(), source: text.into_bytes(), ..Request::default() };
    let evaluated = evaluate(&request).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let point = evaluated.plan.points.into_iter().next().expect("a point");
    let (roles, nodes) = (serving(&point, false).expect("it can be served"), listeners(&point));
    let options = Options { loops: Some(2), ..Options::default() };
    let running =
        start(&Arc::new(point), &Arc::new(roles), &nodes, &options).unwrap_or_else(|e| panic!("{e}"));
    // Two clients, so that each loop has asked about each target.
    for _ in 0..2 {
        ask(&running.listening[0].addr, targets);
    }
    let remote = running.remote();
    for format in [Exposition::Prometheus, Exposition::OpenMetrics] {
        let (lines, bytes) = {
            let text = remote.scrape(format);
            (text.iter().filter(|b| **b == b'\n').count(), text.len())
        };
        let before = cpu_ms();
        (0..SCRAPES).for_each(|_| drop(remote.scrape(format)));
        let each = (cpu_ms() - before) / f64::from(SCRAPES);
        println!("{targets} targets, {format:?}: {each:.2} ms of CPU a scrape, {lines} lines, {bytes} bytes");
    }
    remote.drain();
    running.join().expect("it ends");
}

fn ask(addr: &str, times: u32) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(addr).expect("a connection");
    for _ in 0..times {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("it is taken");
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\nok") {
            let mut piece = [0; 4096];
            let n = stream.read(&mut piece).expect("an answer");
            assert!(n > 0, "an answer, not {}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&piece[..n]);
        }
    }
}

fn cpu_ms() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
