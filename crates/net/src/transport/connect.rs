//! Connecting: TCP to the first of several addresses that answers, or a Unix socket.

use crate::io::Core;
use crate::io::runtime::Stream;
use crate::io::system::exhausted;
use crate::io::tcp::unpace_loopback;
use socket2::{Domain, SockAddr, SockRef, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Connects to a Unix socket.
///
/// # Errors
/// The error of the system.
pub async fn unix(core: &Core, path: &Path) -> io::Result<Stream<UnixStream>> {
    let socket = socket(core, Domain::UNIX)?;
    Stream::connect(&core.runtime, socket, &SockAddr::unix(path)?).await
}

/// Happy Eyeballs (RFC 8305): addresses in order, each begun when the one before has failed or taken too long.
///
/// # Errors
/// The error of the last attempt.
pub async fn tcp(core: &Core, addresses: &[SocketAddr]) -> io::Result<Stream<TcpStream>> {
    tcp_from(core, None, addresses).await
}

/// The same, from this address of the host, to those of its family.
///
/// # Errors
/// The error of the last attempt.
pub async fn tcp_from(
    core: &Core,
    source: Option<IpAddr>,
    addresses: &[SocketAddr],
) -> io::Result<Stream<TcpStream>> {
    let fits = |address: &SocketAddr| source.is_none_or(|source| source.is_ipv4() == address.is_ipv4());
    if let [only] = addresses
        && fits(only)
    {
        return one(core, source, *only).await;
    }
    let mut attempts = Vec::new();
    let mut rest = addresses.iter().filter(|address| fits(address)).peekable();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    let mut next = core.timers.after(0);
    std::future::poll_fn(|cx| {
        loop {
            while next.poll_ended(cx).is_ready() {
                let Some(address) = rest.next() else { break };
                attempts.push(Box::pin(one(core, source, *address)));
                next = core.timers.after(core.tcp.next_address_ns);
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
            let are_all = rest.peek().is_none();
            if attempts.is_empty() && are_all {
                let why = std::mem::replace(&mut last, io::ErrorKind::Other.into());
                return std::task::Poll::Ready(Err(why));
            }
            if !failed || are_all {
                return std::task::Poll::Pending;
            }
            next = core.timers.after(0);
        }
    })
    .await
}

async fn one(core: &Core, source: Option<IpAddr>, address: SocketAddr) -> io::Result<Stream<TcpStream>> {
    let socket = socket(core, Domain::for_address(address))?;
    if let Some(source) = source {
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    socket.set_tcp_nodelay(true)?;
    core.tcp.watch_peer(&SockRef::from(&socket))?;
    unpace_loopback(&SockRef::from(&socket), address.ip());
    Stream::connect(&core.runtime, socket, &address.into()).await
}

/// A socket that is not of the reserve.
fn socket(core: &Core, domain: Domain) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(domain, Type::STREAM.nonblocking().cloexec(), None)?;
    if core.is_reserved(&socket) { Err(exhausted()) } else { Ok(socket) }
}
