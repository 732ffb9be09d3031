//! Files whose targets change, and clients that ask all the while.

use crate::support::{LIMIT, Origin, until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use weir_serve::Options;

/// A file with a listener that takes a free port, which stays the same over reloads.
pub(crate) fn file(node: &str) -> String {
    format!("listen(\"127.0.0.1:0\", {node}, name = \"front\")\n")
}

pub(crate) fn server(origin: &Origin) -> String {
    format!("server(addr = \"{}\")", origin.addr)
}

pub(crate) fn servers(origins: &[&Origin]) -> String {
    origins.iter().map(|origin| server(origin)).collect::<Vec<_>>().join(", ")
}

pub(crate) fn two_loops() -> Options {
    Options { loops: Some(2), quiet: true, ..Options::default() }
}

/// A client whose connection stays open.
pub(crate) struct Client(pub(crate) BufReader<TcpStream>);

impl Client {
    pub(crate) fn new(addr: SocketAddr) -> Client {
        let stream = TcpStream::connect(addr).expect("weir listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
        Client(BufReader::new(stream))
    }

    /// Status and body of the next answer; `None`: the connection has ended before anything came.
    pub(crate) fn get(&mut self) -> Option<(u16, String)> {
        self.0.get_mut().write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        self.answer()
    }

    /// The next answer to what was asked.
    pub(crate) fn answer(&mut self) -> Option<(u16, String)> {
        let (mut length, mut status) = (0, 0);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line.starts_with("HTTP/1.1 ") {
                status = line[9..12].parse().expect("a status");
            }
            if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().expect("a length");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("the whole answer");
        Some((status, String::from_utf8(body).expect("text")))
    }
}

/// Clients that ask without a pause until the end; requests that were answered, and those that were not by 200, each
/// with the step at which that was, which what is done meanwhile may set. Where the process may end, a connection may,
/// between two requests: then the next is another.
pub(crate) fn under_load(
    addr: SocketAddr,
    may_end: bool,
    during: impl FnOnce(&AtomicU32),
) -> (u32, Vec<String>) {
    let step = AtomicU32::new(0);
    let (end, asked, wrong) = (AtomicBool::new(false), AtomicU32::new(0), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::new(addr);
                while !end.load(SeqCst) {
                    let mut got = client.get();
                    if got.is_none() && may_end {
                        client = Client::new(addr);
                        got = client.get();
                    }
                    match got {
                        Some((200, _)) => {}
                        other => wrong.lock().unwrap().push(format!("at {}: {other:?}", step.load(SeqCst))),
                    }
                    asked.fetch_add(1, SeqCst);
                }
            });
        }
        // Also if what happens during it fails.
        let _ends = Ends(&end);
        until("the load begins", || asked.load(SeqCst) > 20);
        during(&step);
    });
    (asked.into_inner(), wrong.into_inner().unwrap())
}

/// Ends a load when it is dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
