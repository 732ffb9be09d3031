//! Listening sockets that this process was given in place of binding its own: by the one whose place it takes
//! (`docs/spec/operating.md#replace`), or by who started it (`LISTEN_FDS`, systemd's socket activation). They are matched by
//! address.

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
pub struct Inherited(Mutex<Vec<Given>>);

struct Given {
    /// As its former owner wrote it; `None`: nobody did.
    written: Option<String>,
    at: At,
    socket: OwnedFd,
}

/// Where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
enum At {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Tcp(address) => address.fmt(f),
            At::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl fmt::Debug for Inherited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inherited").field(&self.left()).finish()
    }
}

impl Inherited {
    /// One socket more; `written`: the address as its former owner's file has it.
    ///
    /// # Errors
    /// It is no listening stream socket.
    pub fn add(&self, socket: OwnedFd, written: Option<String>) -> io::Result<()> {
        if socket_type(&socket)? != SocketType::STREAM || !socket_acceptconn(&socket)? {
            return Err(io::Error::other("it is no listening stream socket"));
        }
        // Who gave it may not have said so, and children are not to have it.
        fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
        let at = at(&getsockname(&socket)?)?;
        self.given().push(Given { written, at, socket });
        Ok(())
    }

    /// The sockets of a listener's address; none: it has to bind.
    pub(crate) fn take(&self, addr: &str) -> Vec<OwnedFd> {
        let wanted = match addr.strip_prefix("unix:") {
            Some(path) => Some(At::Unix(path.into())),
            None => resolve(addr).ok().filter(|address| address.port() != 0).map(At::Tcp),
        };
        let fits = |one: &mut Given| one.written.as_deref() == Some(addr) || Some(&one.at) == wanted.as_ref();
        self.given().extract_if(.., fits).map(|given| given.socket).collect()
    }

    /// Where those listen that nobody has taken.
    pub fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = self.given().iter().map(|given| given.at.to_string()).collect();
        left.dedup();
        left
    }

    fn given(&self) -> MutexGuard<'_, Vec<Given>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at(name: &SocketAddrAny) -> io::Result<At> {
    if let Ok(address) = SocketAddr::try_from(name.clone()) {
        return Ok(At::Tcp(address));
    }
    let unix = rustix::net::SocketAddrUnix::try_from(name.clone())?;
    let path = unix.path().ok_or_else(|| io::Error::other("it is a Unix socket without a path"))?;
    Ok(At::Unix(PathBuf::from(std::ffi::OsString::from(path.to_string_lossy().into_owned()))))
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
}
