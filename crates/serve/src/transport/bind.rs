//! Listening sockets, one for each loop of a listener, and the errors of binding them.

use crate::transport::holder::Holder;
use crate::transport::inherit::GivenSockets;
use crate::transport::settings::TCP;
use crate::transport::socket_file::{SocketFile, SocketFiles};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fmt;
use std::fs::{File, Permissions};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use weir_net::io::system::explain;
use weir_net::io::tcp::unpace_loopback;
use weir_plan::fixed;

/// Sockets of one listener, one for each loop.
#[derive(Debug)]
pub(crate) enum Bound {
    /// TCP, and the address.
    Tcp(Vec<std::net::TcpListener>, SocketAddr),
    /// A Unix socket.
    Unix(Vec<UnixListener>),
}

/// The error of a listener that cannot listen.
#[derive(Debug)]
pub struct CannotListen {
    /// The address as the file has it.
    pub addr: String,
    /// The reason, with the remedy.
    pub why: String,
    /// What has the address already, if that is the reason and it is known.
    pub(crate) holder: Option<Holder>,
}

impl CannotListen {
    pub(crate) fn new(addr: &str, why: impl Into<String>) -> CannotListen {
        CannotListen { addr: addr.to_owned(), why: why.into(), holder: None }
    }
}

impl fmt::Display for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: {}", self.addr, self.why)?;
        self.holder.as_ref().map_or(Ok(()), |holder| write!(f, "; it is {holder}"))
    }
}

impl std::error::Error for CannotListen {}

/// Binds a listener's address for this number of loops; the file of a Unix socket joins `files`.
pub(crate) fn bind(addr: &str, loops: usize, level: u32, files: &SocketFiles) -> Result<Bound, CannotListen> {
    bind_as(addr, loops, None, level, files)
}

/// The same; `mode`: the access rights of a Unix socket; `None`: those of the process's mask.
pub(super) fn bind_as(
    addr: &str,
    loops: usize,
    mode: Option<u32>,
    level: u32,
    files: &SocketFiles,
) -> Result<Bound, CannotListen> {
    let explain = |e: io::Error| CannotListen::new(addr, why(&e));
    if let Some(path) = addr.strip_prefix("unix:") {
        let path = Path::new(path);
        return unix(path, loops, mode, level, files).map_err(|e| match e.kind() {
            io::ErrorKind::AddrInUse => CannotListen::new(addr, in_the_way(path)),
            _ => explain(e),
        });
    }
    let address = resolve(addr).map_err(|e| CannotListen::new(addr, unresolved(&e)))?;
    let is_held = |e: &io::Error| e.kind() == io::ErrorKind::AddrInUse;
    let mut bound = bind_tcp(address, loops);
    for _ in 0..PORTS {
        if address.port() != 0 || !bound.as_ref().is_err_and(is_held) {
            break;
        }
        bound = bind_tcp(address, loops);
    }
    bound.map_err(|e| CannotListen {
        holder: is_held(&e).then(|| Holder::find(address)).flatten(),
        ..explain(e)
    })
}

/// How many more ports are tried where the system chooses one: another process may take it between two sockets.
const PORTS: u32 = 10;

fn bind_tcp(address: SocketAddr, loops: usize) -> io::Result<Bound> {
    // First without SO_REUSEPORT: with it, another weir of this user would not be noticed. The probe does not listen,
    // so that no client connects to a socket that closes again.
    let probe = tcp(address, false)?;
    let address = local(&probe)?;
    let sockets = match loops {
        1 => vec![probe],
        _ => {
            drop(probe);
            (0..loops).map(|_| tcp(address, true)).collect::<io::Result<Vec<_>>>()?
        }
    };
    let listening = |socket: Socket| socket.listen(fixed::ACCEPT_BACKLOG).map(|()| socket.into());
    Ok(Bound::Tcp(sockets.into_iter().map(listening).collect::<io::Result<_>>()?, address))
}

pub(super) fn resolve(addr: &str) -> io::Result<SocketAddr> {
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
    // Without it room is reported only when a third of a buffer of megabytes is free, so that a slow but steady
    // reader would look as if it had stopped.
    socket.set_tcp_notsent_lowat(fixed::TCP_NOTSENT_LOWAT_BYTES)?;
    TCP.watch_peer(&(&socket).into())?;
    unpace_loopback(&(&socket).into(), address.ip());
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

/// Uses sockets that already listen at a listener's address; the file of a Unix socket joins `files`, unless it is
/// the parent's.
pub(crate) fn given(addr: &str, given: GivenSockets, level: u32, files: &SocketFiles) -> io::Result<Bound> {
    let GivenSockets { sockets, are_kept } = given;
    let nonblocking = |socket: &Socket| socket.set_nonblocking(true);
    let sockets: Vec<Socket> = sockets.into_iter().map(Socket::from).collect();
    sockets.iter().try_for_each(nonblocking)?;
    if let Some(path) = addr.strip_prefix("unix:") {
        if !are_kept {
            files.add(level, SocketFile::from_path(Path::new(path))?);
        }
        return Ok(Bound::Unix(sockets.into_iter().map(Into::into).collect()));
    }
    let Some(first) = sockets.first() else { return Err(io::ErrorKind::NotFound.into()) };
    let address = local(first)?;
    for socket in &sockets {
        // Sockets that a parent has bound may lack options that connections inherit.
        socket.set_tcp_nodelay(true)?;
        socket.set_tcp_notsent_lowat(fixed::TCP_NOTSENT_LOWAT_BYTES)?;
        TCP.watch_peer(&socket.into())?;
        unpace_loopback(&socket.into(), address.ip());
    }
    Ok(Bound::Tcp(sockets.into_iter().map(Into::into).collect(), address))
}

fn local(socket: &Socket) -> io::Result<SocketAddr> {
    let address = socket.local_addr()?;
    address.as_socket().ok_or_else(|| io::Error::other("no address"))
}

fn unix(path: &Path, loops: usize, mode: Option<u32>, level: u32, files: &SocketFiles) -> io::Result<Bound> {
    let first = {
        // Another process that finds the socket stale does so before this one listens, or after.
        let _lock = lock_folder(path);
        match listener(path, mode) {
            Err(e) if e.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
                std::fs::remove_file(path)?;
                listener(path, mode)
            }
            bound => bound,
        }?
    };
    files.add(level, SocketFile::from_path(path)?);
    first.set_nonblocking(true)?;
    let mut sockets: Vec<UnixListener> = Vec::with_capacity(loops);
    for _ in 1..loops {
        sockets.push(first.try_clone()?);
    }
    sockets.push(first);
    Ok(Bound::Unix(sockets))
}

fn listener(path: &Path, mode: Option<u32>) -> io::Result<UnixListener> {
    let Some(mode) = mode else { return UnixListener::bind(path) };
    let socket = Socket::new(Domain::UNIX, Type::STREAM.cloexec(), None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    // Before it listens no client can connect.
    std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    socket.listen(fixed::ACCEPT_BACKLOG)?;
    Ok(socket.into())
}

/// Whether a file is a Unix socket on which no process listens, as a killed process leaves it behind.
fn is_stale(path: &Path) -> bool {
    let is_socket = path.symlink_metadata().is_ok_and(|file| file.file_type().is_socket());
    let refused = |e: io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).err().is_some_and(refused)
}

/// Locks the folder of a socket until the result is dropped; `None`: it cannot be locked, and no process that could
/// remove the file can lock it either.
fn lock_folder(path: &Path) -> Option<File> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = File::open(folder).ok()?;
    rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive).ok()?;
    Some(folder)
}

/// Why an existing file cannot be a listener's. Only a stale socket is removed: anything else may be needed.
fn in_the_way(path: &Path) -> &'static str {
    match UnixStream::connect(path) {
        Ok(_) => "something listens there already; stop it, or choose another path",
        Err(_) => "there is a file that is not a stale socket; remove it, or choose another path",
    }
}

/// Why a listener's name does not resolve.
fn unresolved(e: &io::Error) -> String {
    format!(
        "{}; a listener needs a name that /etc/hosts or DNS knows as this machine's, or an address",
        explain(e)
    )
}

/// An error of the system as a sentence with the remedy.
fn why(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::AddrInUse => {
            "something listens there already; stop it, or choose another address (port 0 takes a free one)"
                .to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "not permitted; ports below 1024 need the capability CAP_NET_BIND_SERVICE, socket files need a \
                writable folder"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address; `ip address` lists those that it has, and \":PORT\" means \
                all of them"
                .to_owned()
        }
        io::ErrorKind::NotFound => format!("{e}; check the name or the folder"),
        _ => explain(e),
    }
}
