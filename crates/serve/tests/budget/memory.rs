//! What is held beside what counts: little for each request that waits.

use crate::common::until;
use crate::{BUDGET, Budgeted, WIDE};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Connections whose streams are never read, and over how many origins they are spread: fewer for each than what waits
/// for its accept.
const CONNS: usize = 4;
const STREAMS: u32 = 75;
const ORIGINS: usize = 4;

/// What each of them may take: its state, and that of its peers, which run in this process too.
const EACH: usize = 40 << 10;

/// Origins that have one large answer for everybody and keep no copy of it; their addresses, and how many requests they
/// have begun to answer, or found no client any more.
fn origins(answer: Vec<u8>) -> (Vec<String>, Arc<AtomicUsize>) {
    let (answer, begun) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    let addrs = (0..ORIGINS).map(|_| origin(&answer, &begun)).collect();
    (addrs, begun)
}

/// One thread for all its connections: the stacks of more would be taken for memory of weir's.
fn origin(answer: &Arc<Vec<u8>>, begun: &Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let addr = listener.local_addr().expect("an address").to_string();
    let (answer, begun) = (answer.clone(), begun.clone());
    std::thread::spawn(move || {
        let mut all: Vec<Answering> = Vec::new();
        loop {
            while let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true).expect("a socket");
                all.push(Answering { stream, asked: false, sent: 0, begun: false });
            }
            all.retain_mut(|one| {
                let goes_on = one.goes_on(&answer);
                if !one.begun && (!goes_on || one.sent >= BEGUN) {
                    one.begun = true;
                    begun.fetch_add(1, SeqCst);
                }
                goes_on
            });
            std::thread::park_timeout(Duration::from_millis(1));
        }
    });
    addr
}

/// So much of an answer is its beginning.
const BEGUN: usize = 64 << 10;

/// A connection of an origin.
struct Answering {
    stream: TcpStream,
    asked: bool,
    sent: usize,
    begun: bool,
}

impl Answering {
    /// Sends what there is room for. Whether anything is left for a client that is there.
    fn goes_on(&mut self, answer: &[u8]) -> bool {
        let waits = |e: std::io::Error| e.kind() == ErrorKind::WouldBlock;
        if !self.asked {
            match self.stream.read(&mut [0; 1024]) {
                Ok(n) if n > 0 => self.asked = true,
                Ok(_) => return false,
                Err(e) => return waits(e),
            }
        }
        while self.sent < answer.len() {
            match self.stream.write(&answer[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(e) => return waits(e),
            }
        }
        false
    }
}

/// What this process has of memory that no file has, bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its memory");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

/// Asks for many answers of which none is read: what that takes beyond the budget is little for each.
fn holds_little(served: &Budgeted, window: u32, has_all: impl Fn() -> bool) {
    let (before, mut most) = (resident(), 0);
    let silent: Vec<TcpStream> = (0..CONNS).map(|_| served.silent(STREAMS, window)).collect();
    until(|| {
        most = most.max(resident());
        has_all()
    });
    // A round trip later, for what came last.
    let answered = crate::common::get(&served.addr, "/no");
    assert_eq!(answered.status, 404);
    let beyond = most.max(resident()).saturating_sub(before + BUDGET);
    let may = EACH * CONNS * STREAMS as usize;
    assert!(beyond < may, "{} KiB of {} KiB", beyond >> 10, may >> 10);
    drop(silent);
}

fn node(large: &str) -> String {
    format!("route([(when(path=\"/large\"), {large}), (when(), respond(404))])")
}

fn relayed(answer: Vec<u8>, window: u32) {
    let (addrs, begun) = origins(answer);
    let server = |(n, addr)| format!("server(\"origin{n}\", addr=\"{addr}\")");
    let servers: Vec<String> = addrs.iter().enumerate().map(server).collect();
    let served = Budgeted::new(&node(&format!("lb.round_robin([{}])", servers.join(", "))));
    holds_little(&served, window, || begun.load(SeqCst) >= CONNS * STREAMS as usize);
}

#[test]
fn a_body_behind_its_head() {
    let body = vec![b'x'; 8 << 20];
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    relayed([head.into_bytes(), body].concat(), WIDE);
}

/// Each chunk a piece of its own, of which the first waits for a window.
#[test]
fn chunks_behind_their_head() {
    let chunk = [b"2000\r\n".to_vec(), vec![b'x'; 0x2000], b"\r\n".to_vec()].concat();
    relayed(
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(), chunk.repeat(500)].concat(),
        0,
    );
}

#[test]
fn answers_of_its_own() {
    let served = Budgeted::new(&node(&format!("respond(200, body=\"x\" * {})", 1 << 20)));
    holds_little(&served, WIDE, || true);
}
