//! Listening sockets that this process inherited instead of binding its own: from the process that it replaces
//! (`docs/spec/operating.md#replace`), or from its parent (`LISTEN_FDS`, systemd's socket activation). They are
//! matched by address.

use super::bind::resolve;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::net::{SocketAddrAny, SocketType, getsockname};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The sockets that no listener has taken yet.
#[derive(Default)]
pub struct Inherited(Mutex<Vec<InheritedSocket>>);

struct InheritedSocket {
    /// The address as its former owner wrote it, if known.
    written: Option<String>,
    address: ListenAddress,
    socket: OwnedFd,
}

/// The address of a listening socket.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl ListenAddress {
    /// The port, if it is one of all addresses.
    fn wildcard_port(&self) -> Option<u16> {
        match self {
            ListenAddress::Tcp(address) if address.ip().is_unspecified() => Some(address.port()),
            _ => None,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => address.fmt(f),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inherited").field(&self.left()).finish()
    }
}

impl Inherited {
    /// Adds a socket; `written`: the address as its former owner's file has it.
    ///
    /// # Errors
    /// It is not a listening stream socket.
    pub fn add(&self, socket: OwnedFd, written: Option<String>) -> io::Result<()> {
        if socket_type(&socket)? != SocketType::STREAM || !socket_acceptconn(&socket)? {
            return Err(io::Error::other("it is not a listening stream socket"));
        }
        // Children must not inherit it, which its sender may not have set.
        fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
        let address = listen_address(&getsockname(&socket)?)?;
        self.given().push(InheritedSocket { written, address, socket });
        Ok(())
    }

    /// Takes the sockets of a listener's address; if there are none, it has to bind.
    pub(crate) fn take(&self, addr: &str) -> Vec<OwnedFd> {
        let wanted = match addr.strip_prefix("unix:") {
            Some(path) => Some(ListenAddress::Unix(path.into())),
            None => resolve(addr).ok().filter(|address| address.port() != 0).map(ListenAddress::Tcp),
        };
        // `:80` says no version of IP: a parent's socket of either wildcard address is meant.
        let any = wanted.as_ref().and_then(ListenAddress::wildcard_port).filter(|_| addr.starts_with(':'));
        let fits = |one: &mut InheritedSocket| {
            one.written.as_deref() == Some(addr)
                || Some(&one.address) == wanted.as_ref()
                || (any.is_some() && one.address.wildcard_port() == any)
        };
        self.given().extract_if(.., fits).map(|given| given.socket).collect()
    }

    /// The addresses of the sockets that no listener has taken.
    pub fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = self.given().iter().map(|given| given.address.to_string()).collect();
        left.dedup();
        left
    }

    fn given(&self) -> MutexGuard<'_, Vec<InheritedSocket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn listen_address(name: &SocketAddrAny) -> io::Result<ListenAddress> {
    if let Ok(address) = SocketAddr::try_from(name.clone()) {
        return Ok(ListenAddress::Tcp(address));
    }
    let unix = rustix::net::SocketAddrUnix::try_from(name.clone())?;
    let path = unix.path().ok_or_else(|| io::Error::other("it is a Unix socket without a path"))?;
    Ok(ListenAddress::Unix(PathBuf::from(std::ffi::OsString::from(path.to_string_lossy().into_owned()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn sockets_are_known_by_address() {
        let all = Inherited::default();
        let one = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = one.local_addr().expect("its address").to_string();
        all.add(one.into(), None).expect("it listens");
        let other = TcpListener::bind("127.0.0.1:0").expect("a port");
        all.add(other.into(), Some("127.0.0.1:0".to_owned())).expect("it listens");
        assert!(all.add(UdpSocket::bind("127.0.0.1:0").expect("a port").into(), None).is_err());
        assert_eq!(all.take("127.0.0.1:1").len(), 0);
        assert_eq!((all.take(&address).len(), all.take(&address).len()), (1, 0));
        assert_eq!(all.left().len(), 1);
        assert_eq!(all.take("127.0.0.1:0").len(), 1, "as its former owner wrote it");
        assert!(all.left().is_empty());
    }

    #[test]
    fn a_port_alone_takes_either_wildcard() {
        let all = Inherited::default();
        let one = TcpListener::bind("0.0.0.0:0").expect("a port");
        let port = one.local_addr().expect("its address").port();
        all.add(one.into(), None).expect("it listens");
        assert_eq!(all.take(&format!("[::]:{port}")).len(), 0, "the file names the other version");
        assert_eq!(all.take(&format!(":{port}")).len(), 1);
    }
}
