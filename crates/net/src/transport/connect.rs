//! Connecting: TCP to the first of several addresses that answers, or a Unix socket.

use crate::io::Core;
use crate::io::runtime::Stream;
use crate::io::system::exhausted;
use crate::io::tcp::unpace_loopback;
use socket2::{Domain, SockAddr, SockRef, Type};
use std::io;
use std::net::{SocketAddr, TcpStream};
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
    if let [only] = addresses {
        return one(core, *only).await;
    }
    let mut attempts = Vec::new();
    let mut rest = addresses.iter();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "its name has no address");
    let mut next = core.timers.after(0);
    std::future::poll_fn(|cx| {
        loop {
            while next.poll_ended(cx).is_ready() {
                let Some(address) = rest.next() else { break };
                attempts.push(Box::pin(one(core, *address)));
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
            if attempts.is_empty() && rest.len() == 0 {
                let why = std::mem::replace(&mut last, io::ErrorKind::Other.into());
                return std::task::Poll::Ready(Err(why));
            }
            if !failed || rest.len() == 0 {
                return std::task::Poll::Pending;
            }
            next = core.timers.after(0);
        }
    })
    .await
}

async fn one(core: &Core, address: SocketAddr) -> io::Result<Stream<TcpStream>> {
    let socket = socket(core, Domain::for_address(address))?;
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
