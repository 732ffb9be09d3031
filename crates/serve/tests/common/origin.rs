//! An origin that blocks: a thread per connection, a script per request.

use super::transport::{self, Link};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What an origin does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// 200 with this body.
    Ok(String),
    /// This status, with its number as the body.
    Status(u16),
    /// These bytes, unchanged; then the connection goes on.
    Raw(Vec<u8>),
    /// Waits for this number of ms, then does the other.
    After(u64, Box<Reply>),
    /// These bytes, each piece after this number of ms.
    Parts(Vec<(u64, Vec<u8>)>),
    /// Closes the connection.
    Close,
}

/// An origin.
pub struct Origin {
    pub addr: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Heads and bodies that came whole.
    seen: Mutex<Vec<(String, Vec<u8>)>>,
    /// Connections that are open, that were ever, and requests being answered.
    open: AtomicUsize,
    connections: AtomicUsize,
    busy: AtomicUsize,
    most: AtomicUsize,
    ended: AtomicBool,
}

impl Origin {
    /// One that does this with the n-th request (from 0) with that head.
    pub fn new(script: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let addr = listener.local_addr().expect("an address").to_string();
        let shared = Arc::new(Shared::default());
        transport::listens(&addr);
        let (all, script) = (shared.clone(), Arc::new(script));
        let own = addr.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if all.ended.load(SeqCst) {
                    return;
                }
                let (shared, script, own) = (all.clone(), script.clone(), own.clone());
                std::thread::spawn(move || {
                    shared.connections.fetch_add(1, SeqCst);
                    Link::accept(&own, stream, move |link| {
                        shared.open.fetch_add(1, SeqCst);
                        let _ = connection(link, &shared, script.as_ref());
                        shared.open.fetch_sub(1, SeqCst);
                    });
                });
            }
        });
        Origin { addr, shared }
    }

    /// One that answers with its name.
    pub fn named(name: &str) -> Origin {
        let name = name.to_owned();
        Origin::new(move |_, _| Reply::Ok(name.clone()))
    }

    /// Requests that came whole: heads and bodies.
    pub fn seen(&self) -> Vec<(String, Vec<u8>)> {
        self.shared.seen.lock().expect("no thread has panicked").clone()
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.shared.seen.lock().expect("no thread has panicked").len()
    }

    /// Requests that are being answered.
    pub fn busy(&self) -> usize {
        self.shared.busy.load(SeqCst)
    }

    /// The most that were at once.
    pub fn most_busy(&self) -> usize {
        self.shared.most.load(SeqCst)
    }

    /// Connections that are open; streams, by HTTP/2.
    pub fn open(&self) -> usize {
        self.shared.open.load(SeqCst)
    }

    /// Connections that ever were.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(SeqCst)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.ended.store(true, SeqCst);
        let _ = TcpStream::connect(&self.addr);
        transport::ends(&self.addr);
    }
}

fn connection(
    mut stream: Link,
    shared: &Shared,
    script: &dyn Fn(usize, &str) -> Reply,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.tcp().set_nodelay(true)?;
    let mut read = Vec::new();
    let mut piece = [0; 64 * 1024];
    loop {
        let end = loop {
            if let Some(at) = read.windows(4).position(|w| w == b"\r\n\r\n") {
                break at + 4;
            }
            match stream.read(&mut piece)? {
                0 => return Ok(()),
                n => read.extend_from_slice(&piece[..n]),
            }
        };
        let head = String::from_utf8_lossy(&read[..end]).into_owned();
        read.drain(..end);
        let lower = head.to_ascii_lowercase();
        let length = lower
            .split("content-length: ")
            .nth(1)
            .and_then(|r| r.split("\r\n").next()?.parse::<usize>().ok());
        let chunked = lower.contains("transfer-encoding: chunked");
        let whole = |read: &[u8]| {
            if chunked {
                read.windows(5).any(|w| w == b"0\r\n\r\n")
            } else {
                read.len() >= length.unwrap_or(0)
            }
        };
        while !whole(&read) {
            match stream.read(&mut piece)? {
                0 => return Ok(()),
                n => read.extend_from_slice(&piece[..n]),
            }
        }
        let n = if chunked { read.len() } else { length.unwrap_or(0) };
        let body: Vec<u8> = read.drain(..n).collect();
        let number = {
            let mut seen = shared.seen.lock().expect("no thread has panicked");
            seen.push((head.clone(), body));
            seen.len() - 1
        };
        let busy = shared.busy.fetch_add(1, SeqCst) + 1;
        shared.most.fetch_max(busy, SeqCst);
        let Some(then) = wait(&mut stream, script(number, &head))? else {
            shared.busy.fetch_sub(1, SeqCst);
            return Ok(());
        };
        // Before it answers: a client with its answer may send the next one elsewhere at once.
        shared.busy.fetch_sub(1, SeqCst);
        if !answer(&mut stream, then)? {
            return Ok(());
        }
    }
}

/// Waits the given time; `None`: the client has gone.
fn wait(stream: &mut Link, mut then: Reply) -> std::io::Result<Option<Reply>> {
    while let Reply::After(ms, next) = then {
        // In steps: the client may go in the meantime.
        let mut left = ms;
        while left > 0 {
            let step = left.min(5);
            super::pause(step);
            left -= step;
            if has_gone(stream.tcp())? {
                return Ok(None);
            }
        }
        then = *next;
    }
    Ok(Some(then))
}

fn answer(stream: &mut Link, then: Reply) -> std::io::Result<bool> {
    match then {
        // In one piece each.
        Reply::Ok(body) => {
            let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            stream.write_all(whole.as_bytes())?;
        }
        Reply::Status(status) => {
            let whole = format!("HTTP/1.1 {status} X\r\nContent-Length: 3\r\n\r\n{status}");
            stream.write_all(whole.as_bytes())?;
        }
        Reply::Raw(bytes) => stream.write_all(&bytes)?,
        Reply::After(_, then) => return answer(stream, *then),
        Reply::Parts(parts) => {
            for (ms, bytes) in parts {
                super::pause(ms);
                stream.write_all(&bytes)?;
            }
        }
        Reply::Close => return Ok(false),
    }
    Ok(true)
}

fn has_gone(stream: &TcpStream) -> std::io::Result<bool> {
    stream.set_nonblocking(true)?;
    let gone = matches!(stream.peek(&mut [0]), Ok(0));
    stream.set_nonblocking(false)?;
    Ok(gone)
}
