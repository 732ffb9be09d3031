//! Making a connection to an origin: TCP by the addresses of its name, a Unix socket, or a pair with the built-in servers.

use crate::control::event_loop::Loop;
use crate::io::runtime::Stream;
use crate::transport::socket::{Raw, Socket};
use socket2::{Domain, SockAddr, SockRef, TcpKeepalive, Type};
use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use weir_topology::plan::fixed;

/// Where an origin is.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// The addresses of its name.
    Tcp(Rc<Addresses>),
    /// A Unix socket.
    Unix(PathBuf),
    /// A built-in server of this process: the root of its nodes.
    BuiltIn(u32),
}

/// The addresses of an origin as one loop knows them.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The number of its name in [`crate::upstream::names::Names`]; `None` for a literal address.
    pub name: Option<u32>,
    /// Families by turns, IPv6 first.
    list: RefCell<Rc<[SocketAddr]>>,
    /// When they changed last.
    changed_ns: Cell<u64>,
}

impl Addresses {
    /// These addresses, of a name that is resolved again and again, or for ever.
    pub fn new(name: Option<u32>, list: &[SocketAddr]) -> Addresses {
        Addresses { name, list: RefCell::new(list.into()), changed_ns: Cell::new(0) }
    }

    /// Others from now on.
    pub fn set(&self, now_ns: u64, list: &[SocketAddr]) {
        *self.list.borrow_mut() = list.into();
        self.changed_ns.set(now_ns);
    }

    /// Those of the moment.
    pub fn list(&self) -> Rc<[SocketAddr]> {
        self.list.borrow().clone()
    }

    /// Whether a connection that was made then still leads to one of them.
    pub fn lead(&self, socket: &Socket, opened_ns: u64) -> bool {
        opened_ns > self.changed_ns.get()
            || socket.peer().is_some_and(|peer| self.list.borrow().contains(&peer))
    }
}

impl Target {
    /// A connection, or why there is none.
    pub async fn connect(&self, lp: &Loop) -> io::Result<Socket> {
        self.connect_to(lp, None).await
    }

    /// The same, to another port.
    pub async fn connect_to(&self, lp: &Loop, port: Option<u16>) -> io::Result<Socket> {
        match self {
            Target::Tcp(addresses) => {
                let mut list = addresses.list();
                if let Some(port) = port {
                    list = list.iter().map(|a| SocketAddr::new(a.ip(), port)).collect();
                }
                tcp(lp, &list).await.map(Socket::Tcp)
            }
            Target::Unix(path) => {
                let socket = socket(Domain::UNIX)?;
                Stream::connect(&lp.runtime, socket, &SockAddr::unix(path)?).await.map(Socket::Unix)
            }
            Target::BuiltIn(root) => {
                let (ours, theirs) =
                    socket2::Socket::pair(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
                lp.process.built_in.hand_over(*root, theirs.into())?;
                Raw::Unix(ours.into()).watch(&lp.runtime)
            }
        }
    }

    /// Whether it has that name ([`crate::upstream::names`]).
    pub fn is_named(&self, name: u32) -> bool {
        matches!(self, Target::Tcp(addresses) if addresses.name == Some(name))
    }

    /// Whether there is anywhere to connect to.
    pub fn has_address(&self) -> bool {
        match self {
            Target::Tcp(addresses) => !addresses.list.borrow().is_empty(),
            Target::Unix(_) | Target::BuiltIn(_) => true,
        }
    }

    /// Whether a connection that was made then leads there still.
    pub fn leads(&self, socket: &Socket, opened_ns: u64) -> bool {
        match self {
            Target::Tcp(addresses) => addresses.lead(socket, opened_ns),
            Target::Unix(_) | Target::BuiltIn(_) => true,
        }
    }
}

/// Happy Eyeballs (RFC 8305): addresses in order, each begun when the one before has failed or taken too long.
async fn tcp(lp: &Loop, addresses: &[SocketAddr]) -> io::Result<Stream<TcpStream>> {
    if let [only] = addresses {
        return one(lp, *only).await;
    }
    let mut attempts = Vec::new();
    let mut rest = addresses.iter();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    let mut next = lp.timers.after(0);
    std::future::poll_fn(|cx| {
        loop {
            while next.poll_ended(cx).is_ready() {
                let Some(address) = rest.next() else { break };
                attempts.push(Box::pin(one(lp, *address)));
                next = lp.timers.after(fixed::NEXT_ADDRESS_NS);
            }
            let mut failed = false;
            let mut at = 0;
            while at < attempts.len() {
                match attempts[at].as_mut().poll(cx) {
                    std::task::Poll::Ready(Ok(stream)) => return std::task::Poll::Ready(Ok(stream)),
                    std::task::Poll::Ready(Err(e)) => {
                        last = e;
                        failed = true;
                        drop(attempts.swap_remove(at));
                    }
                    std::task::Poll::Pending => at += 1,
                }
            }
            if attempts.is_empty() && rest.len() == 0 {
                let why = std::mem::replace(&mut last, io::ErrorKind::Other.into());
                return std::task::Poll::Ready(Err(why));
            }
            if !failed || rest.len() == 0 {
                return std::task::Poll::Pending;
            }
            next = lp.timers.after(0);
        }
    })
    .await
}

async fn one(lp: &Loop, address: SocketAddr) -> io::Result<Stream<TcpStream>> {
    let socket = socket(Domain::for_address(address))?;
    socket.set_tcp_nodelay(true)?;
    watch_peer(&SockRef::from(&socket))?;
    Stream::connect(&lp.runtime, socket, &address.into()).await
}

fn socket(domain: Domain) -> io::Result<socket2::Socket> {
    socket2::Socket::new(domain, Type::STREAM.nonblocking().cloexec(), None)
}

/// A peer that vanished is noticed, while idle by probes, with unacknowledged bytes by their age.
pub(crate) fn watch_peer(socket: &SockRef<'_>) -> io::Result<()> {
    let probes = TcpKeepalive::new()
        .with_time(Duration::from_nanos(fixed::TCP_KEEPALIVE_NS))
        .with_interval(Duration::from_nanos(fixed::TCP_KEEPALIVE_INTERVAL_NS))
        .with_retries(fixed::TCP_KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&probes)?;
    socket.set_tcp_user_timeout(Some(Duration::from_nanos(fixed::TCP_USER_TIMEOUT_NS)))
}
