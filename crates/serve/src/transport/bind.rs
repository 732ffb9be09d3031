//! Listening sockets: one for each loop of a listener, and the errors that people meet here.

use crate::control::clients::explained;
use crate::transport::socket_file::{SocketFile, SocketFiles};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use weir_topology::plan::fixed;

/// Sockets of one listener, one for each loop.
#[derive(Debug)]
pub(crate) enum Bound {
    /// TCP, and the address.
    Tcp(Vec<std::net::TcpListener>, SocketAddr),
    /// A Unix socket.
    Unix(Vec<std::os::unix::net::UnixListener>),
}

/// Why a listener cannot listen.
#[derive(Debug)]
pub struct CannotListen {
    /// The address as the file has it.
    pub addr: String,
    /// Why, with the remedy.
    pub why: String,
}

impl fmt::Display for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: {}", self.addr, self.why)
    }
}

impl std::error::Error for CannotListen {}

/// Binds a listener's address for so many loops; the file of a Unix socket joins the others.
pub(crate) fn bind(addr: &str, loops: usize, files: &SocketFiles) -> Result<Bound, CannotListen> {
    let explain = |e: io::Error| CannotListen { addr: addr.to_owned(), why: why(&e) };
    if let Some(path) = addr.strip_prefix("unix:") {
        let path = Path::new(path);
        return unix(path, loops, files).map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => {
                CannotListen { addr: addr.to_owned(), why: in_the_way(path).to_owned() }
            }
            _ => explain(e),
        });
    }
    let address = resolve(addr).map_err(|e| CannotListen { addr: addr.to_owned(), why: unresolved(&e) })?;
    // Without SO_REUSEPORT first: with it, another weir of this user would not be noticed.
    let probe = tcp(address, false).map_err(explain)?;
    let address = local(&probe).map_err(explain)?;
    if loops == 1 {
        return Ok(Bound::Tcp(vec![probe.into()], address));
    }
    drop(probe);
    let sockets: io::Result<Vec<_>> = (0..loops).map(|_| tcp(address, true).map(Into::into)).collect();
    Ok(Bound::Tcp(sockets.map_err(explain)?, address))
}

fn resolve(addr: &str) -> io::Result<SocketAddr> {
    if let Some(port) = addr.strip_prefix(':') {
        let port = port.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "no port"))?;
        return Ok(SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), port));
    }
    let mut found = addr.to_socket_addrs()?;
    found.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))
}

fn tcp(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking().cloexec(), None)?;
    if address.is_ipv6() {
        // ":443" means every address of either version.
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_reuse_address(true)?;
    if shared {
        socket.set_reuse_port(true)?;
    }
    // Inherited by every connection that is accepted.
    socket.set_tcp_nodelay(true)?;
    // Without it room is told only when a third of a buffer of megabytes is free, so that a slow but steady reader would look
    // like one that has stopped.
    socket.set_tcp_notsent_lowat(fixed::TCP_NOTSENT_LOWAT_BYTES)?;
    crate::upstream::connect::watch_peer(&(&socket).into())?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(fixed::ACCEPT_BACKLOG)?;
    Ok(socket)
}

fn local(socket: &Socket) -> io::Result<SocketAddr> {
    let address = socket.local_addr()?;
    address.as_socket().ok_or_else(|| io::Error::other("no address"))
}

fn unix(path: &Path, loops: usize, files: &SocketFiles) -> io::Result<Bound> {
    let first = std::os::unix::net::UnixListener::bind(path)?;
    files.add(SocketFile::of(path)?);
    first.set_nonblocking(true)?;
    let mut sockets = Vec::with_capacity(loops);
    for _ in 1..loops {
        sockets.push(first.try_clone()?);
    }
    sockets.push(first);
    Ok(Bound::Unix(sockets))
}

/// Why a file that exists cannot be a listener's. It is not removed unasked: it may be anything.
fn in_the_way(path: &Path) -> &'static str {
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => "something listens there already; stop it, or choose another path",
        Err(_) => "the file exists and nothing listens there; remove it, or choose another path",
    }
}

/// Why a listener's name gives no address.
fn unresolved(e: &io::Error) -> String {
    format!(
        "{}; a listener needs a name that /etc/hosts or DNS knows as this machine's, or an address",
        explained(e)
    )
}

/// An error of the system as a sentence with the remedy.
fn why(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::AddrInUse => {
            "something listens there already; stop it, or choose another address (port 0 takes a free one)".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "not permitted; ports below 1024 need the capability CAP_NET_BIND_SERVICE, socket files a folder that may be written".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address; `ip address` lists those that it has, \":PORT\" stands for all of them".to_owned()
        }
        io::ErrorKind::NotFound => format!("{e}; check the name or the folder"),
        _ => explained(e),
    }
}
