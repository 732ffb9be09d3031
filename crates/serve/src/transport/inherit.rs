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

/// The sockets that no listener has taken yet, and those that the parent keeps open.
#[derive(Default)]
pub struct Inherited(Mutex<Vec<InheritedSocket>>);

/// The sockets of a listener's address.
#[derive(Debug, Default)]
pub(crate) struct GivenSockets {
    pub sockets: Vec<OwnedFd>,
    /// Whether the parent keeps them open: the file of a Unix socket is the parent's.
    pub are_kept: bool,
}

struct InheritedSocket {
    /// The address as its former owner wrote it, if known.
    written: Option<String>,
    address: ListenAddress,
    socket: OwnedFd,
    /// Whether the parent of this process, or of its predecessor, keeps it open. It stays here when a listener takes
    /// it, since nothing could be bound at its address after that listener was removed.
    is_kept: bool,
    is_taken: bool,
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
    /// Adds the socket of a predecessor; `written`: the address as its file has it.
    ///
    /// # Errors
    /// It is not a listening stream socket.
    pub fn add(&self, socket: OwnedFd, written: Option<String>) -> io::Result<()> {
        self.insert(socket, written, false)
    }

    /// Adds a socket that the parent keeps open.
    ///
    /// # Errors
    /// It is not a listening stream socket.
    pub fn add_kept(&self, socket: OwnedFd) -> io::Result<()> {
        self.insert(socket, None, true)
    }

    fn insert(&self, socket: OwnedFd, written: Option<String>, is_kept: bool) -> io::Result<()> {
        if socket_type(&socket)? != SocketType::STREAM || !socket_acceptconn(&socket)? {
            return Err(io::Error::other("it is not a listening stream socket"));
        }
        // Children must not inherit it, which its sender may not have set.
        fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
        let address = listen_address(&getsockname(&socket)?)?;
        self.given().push(InheritedSocket { written, address, socket, is_kept, is_taken: false });
        Ok(())
    }

    /// Adds those of another that have an address of their own.
    pub fn join(&self, other: &Inherited) {
        let mut all = self.given();
        for one in other.given().drain(..) {
            if !all.iter().any(|here| here.address == one.address) {
                all.push(one);
            }
        }
    }

    /// Takes the sockets of a listener's address; if there are none, it has to bind.
    ///
    /// # Errors
    /// There is no descriptor left for a copy.
    pub(crate) fn take(&self, addr: &str) -> io::Result<GivenSockets> {
        let wanted = match addr.strip_prefix("unix:") {
            Some(path) => Some(ListenAddress::Unix(path.into())),
            None => resolve(addr).ok().filter(|address| address.port() != 0).map(ListenAddress::Tcp),
        };
        // `:80` says no version of IP: a parent's socket of either wildcard address is meant.
        let any = wanted.as_ref().and_then(ListenAddress::wildcard_port).filter(|_| addr.starts_with(':'));
        let fits = |one: &InheritedSocket| {
            one.written.as_deref() == Some(addr)
                || Some(&one.address) == wanted.as_ref()
                || (any.is_some() && one.address.wildcard_port() == any)
        };
        let mut given = GivenSockets::default();
        let mut all = self.given();
        for one in all.iter_mut().filter(|one| one.is_kept) {
            if fits(one) {
                (one.is_taken, given.are_kept) = (true, true);
                given.sockets.push(one.socket.try_clone()?);
            }
        }
        given.sockets.extend(all.extract_if(.., |one| !one.is_kept && fits(one)).map(|one| one.socket));
        Ok(given)
    }

    /// Takes the sockets of a predecessor that no listener has taken, with their addresses.
    pub(crate) fn take_left(&self) -> Vec<(String, OwnedFd)> {
        let left = self.given().extract_if(.., |one| !one.is_kept).collect::<Vec<_>>();
        left.into_iter().map(|one| (one.address.to_string(), one.socket)).collect()
    }

    /// Copies of the sockets that the parent keeps open, with their addresses.
    pub(crate) fn kept(&self) -> Vec<(String, OwnedFd)> {
        let all = self.given();
        let kept = all.iter().filter(|one| one.is_kept);
        kept.filter_map(|one| Some((one.address.to_string(), one.socket.try_clone().ok()?))).collect()
    }

    /// The addresses of the sockets that no listener has ever taken.
    pub fn left(&self) -> Vec<String> {
        let all = self.given();
        let left = all.iter().filter(|one| !one.is_taken);
        let mut left: Vec<String> = left.map(|one| one.address.to_string()).collect();
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
        let take = |addr: &str| all.take(addr).expect("descriptors").sockets.len();
        assert_eq!(take("127.0.0.1:1"), 0);
        assert_eq!((take(&address), take(&address)), (1, 0));
        assert_eq!(all.left().len(), 1);
        assert_eq!(take("127.0.0.1:0"), 1, "as its former owner wrote it");
        assert!(all.left().is_empty());
    }

    #[test]
    fn a_socket_of_the_parent_can_be_taken_again() {
        let all = Inherited::default();
        let one = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = one.local_addr().expect("its address").to_string();
        all.add_kept(one.into()).expect("it listens");
        assert_eq!(all.left(), [address.as_str()]);
        for _ in 0..2 {
            let given = all.take(&address).expect("descriptors");
            assert_eq!((given.sockets.len(), given.are_kept), (1, true));
        }
        assert!(all.left().is_empty() && all.take_left().is_empty());
        assert_eq!(all.kept().len(), 1);
    }

    #[test]
    fn a_port_alone_takes_either_wildcard() {
        let all = Inherited::default();
        let one = TcpListener::bind("0.0.0.0:0").expect("a port");
        let port = one.local_addr().expect("its address").port();
        all.add(one.into(), None).expect("it listens");
        let take = |addr: &str| all.take(addr).expect("descriptors").sockets.len();
        assert_eq!(take(&format!("[::]:{port}")), 0, "the file names the other version");
        assert_eq!(take(&format!(":{port}")), 1);
    }
}
