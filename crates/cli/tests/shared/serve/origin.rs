//! An origin that follows a script: each connection runs it in a thread of its own.

use super::message::{self, Message};
use super::stream::{Fault, Stream};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What a connection of the origin does.
type Script = dyn Fn(&mut Peer) -> Result<(), Fault> + Send + Sync;

/// The origin; dropped, it stops listening and ends all its connections.
pub(crate) struct Origin {
    addr: String,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

struct Shared {
    script: Box<Script>,
    /// Heads that have come, such as `POST /x`.
    arrivals: Mutex<Vec<String>>,
    /// What a connection that follows the script has read that is not HTTP.
    odd: Mutex<Vec<String>>,
    open: Mutex<Vec<(usize, Stream)>>,
    accepted: AtomicUsize,
    stopped: AtomicBool,
}

/// A connection as the script sees it.
pub(crate) struct Peer {
    pub(crate) stream: Stream,
    /// Which connection it is, from 0.
    pub(crate) number: usize,
    shared: Arc<Shared>,
    broken: bool,
}

impl Peer {
    /// The next request, body and all.
    pub(crate) fn request(&mut self) -> Result<Message, Fault> {
        let mut head = self.head()?;
        self.body(&mut head)?;
        Ok(head)
    }

    /// The next request's head.
    pub(crate) fn head(&mut self) -> Result<Message, Fault> {
        let head = message::request_head(&mut self.stream)?;
        self.shared.arrivals.lock().expect("no panic").push(format!("{} {}", head.method(), head.target()));
        Ok(head)
    }

    /// What belongs to a head that was read. A body that is cut short ends the script.
    pub(crate) fn body(&mut self, of: &mut Message) -> Result<(), Fault> {
        message::body(&mut self.stream, of);
        of.cut.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Fault> {
        self.stream.send(bytes)
    }

    /// Waits for the other side to end the connection.
    pub(crate) fn wait_for_end(&mut self) -> Result<(), Fault> {
        self.stream.skip(u64::MAX);
        Ok(())
    }

    /// The connection breaks when the script ends.
    pub(crate) fn breaks(&mut self) -> Result<(), Fault> {
        self.broken = true;
        Ok(())
    }
}

impl Origin {
    /// On a free port.
    pub(crate) fn new(script: impl Fn(&mut Peer) -> Result<(), Fault> + Send + Sync + 'static) -> Origin {
        Origin::bind((Ipv4Addr::LOCALHOST, 0).into(), script)
    }

    /// At this address, which may have been used before.
    pub(crate) fn bind(
        addr: SocketAddr,
        script: impl Fn(&mut Peer) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Origin {
        let door = TcpListener::bind(addr).expect("the address is free");
        let addr = door.local_addr().expect("bound").to_string();
        Origin::start(addr, Box::new(script), move || door.accept().ok().map(|(s, _)| Stream::tcp(s)))
    }

    /// On a Unix socket.
    pub(crate) fn unix(
        path: PathBuf,
        script: impl Fn(&mut Peer) -> Result<(), Fault> + Send + Sync + 'static,
    ) -> Origin {
        let door = UnixListener::bind(&path).expect("the path is free");
        let addr = format!("unix:{}", path.display());
        Origin::start(addr, Box::new(script), move || door.accept().ok().map(|(s, _)| Stream::unix(s)))
    }

    /// One that answers each request, whole, and keeps its connections.
    pub(crate) fn answering(answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static) -> Origin {
        Origin::new(move |peer| {
            loop {
                let request = peer.request()?;
                peer.send(answer(&request))?;
            }
        })
    }

    /// One that says its name.
    pub(crate) fn named(name: &'static str) -> Origin {
        Origin::answering(move |_| reply(name))
    }

    fn start(
        addr: String,
        script: Box<Script>,
        accept: impl Fn() -> Option<Stream> + Send + 'static,
    ) -> Origin {
        let shared = Arc::new(Shared {
            script,
            arrivals: Mutex::default(),
            odd: Mutex::default(),
            open: Mutex::default(),
            accepted: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        });
        let inside = shared.clone();
        let accepting = std::thread::spawn(move || {
            while let Some(stream) = accept() {
                if inside.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let number = inside.accepted.fetch_add(1, Ordering::SeqCst);
                inside.open.lock().expect("no panic").push((number, stream.twin()));
                let shared = inside.clone();
                std::thread::spawn(move || serve(Peer { stream, number, shared, broken: false }));
            }
        });
        Origin { addr, shared, accepting: Some(accepting) }
    }

    /// Where it listens, as a topology file has it.
    pub(crate) fn addr(&self) -> &str {
        &self.addr
    }

    /// What has arrived so far.
    pub(crate) fn arrivals(&self) -> Vec<String> {
        self.shared.arrivals.lock().expect("no panic").clone()
    }

    /// How many requests have arrived, and nothing of what was arrived is kept.
    pub(crate) fn take_arrivals(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.arrivals.lock().expect("no panic"))
    }

    /// Connections so far.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Connections that are open now.
    pub(crate) fn open(&self) -> usize {
        self.shared.open.lock().expect("no panic").len()
    }

    /// Nothing that came was malformed.
    #[track_caller]
    pub(crate) fn read_only_http(&self) {
        let odd = self.shared.odd.lock().expect("no panic");
        assert!(odd.is_empty(), "the origin read {odd:?}");
    }
}

fn serve(mut peer: Peer) {
    let shared = peer.shared.clone();
    let ended = (shared.script)(&mut peer);
    if let Err(Fault::Malformed(why)) = ended {
        shared.odd.lock().expect("no panic").push(why);
    }
    if peer.broken {
        let _ = peer.stream.options().set_linger(Some(std::time::Duration::ZERO));
    }
    // The twin is the last to hold the socket, unless the origin has let it go already.
    shared.open.lock().expect("no panic").retain(|(n, _)| *n != peer.number);
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = Stream::connect(&self.addr);
        // Then nothing listens any more.
        let _ = self.accepting.take().map(JoinHandle::join);
        for (_, stream) in self.shared.open.lock().expect("no panic").drain(..) {
            stream.shut();
        }
        if let Some(path) = self.addr.strip_prefix("unix:") {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A whole answer with this body.
pub(crate) fn reply(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// An address that refuses connections. Its port stays taken while the program runs, so that no other test gets it.
pub(crate) fn closed_port() -> SocketAddr {
    use socket2::{Domain, Socket, Type};
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
    let addr = socket.local_addr().expect("bound").as_socket().expect("an IP address");
    std::mem::forget(socket);
    addr
}

/// An address that was free just now, for a listener of the test or of a program that it starts.
pub(crate) fn free_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("bound")
}

/// An address at which nothing answers a SYN, for as long as what else is returned lives. `None`: this system answers.
pub(crate) fn black_hole() -> Option<(SocketAddr, socket2::Socket, Vec<TcpStream>)> {
    use socket2::{Domain, Socket, Type};
    let door = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    door.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).ok()?;
    door.listen(0).ok()?;
    let addr = door.local_addr().ok()?.as_socket()?;
    let mut waiting = Vec::new();
    for _ in 0..16 {
        match TcpStream::connect_timeout(&addr, std::time::Duration::from_millis(300)) {
            Ok(stream) => waiting.push(stream),
            Err(_) => return Some((addr, door, waiting)),
        }
    }
    None
}
