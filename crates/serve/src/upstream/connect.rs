//! Connecting to an origin: TCP to the addresses of its name, a Unix socket, or a pair with the built-in servers.

use socket2::{Domain, Type};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use weir_net::io::Core;
use weir_net::transport::connect;
use weir_net::transport::socket::{Raw, Socket};

/// The way to the built-in servers.
#[derive(Clone, Debug)]
pub(crate) enum BuiltInServers {
    /// They are in this process, which gets a connection for the server whose root has this identity.
    Here(UnboundedSender<(u32, UnixStream)>),
    /// They are another process: the address of each of them, by the number of its root.
    There(Arc<BTreeMap<u32, SocketAddr>>),
}

/// The location of an origin.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// The addresses of its name.
    Tcp(Rc<Addresses>),
    /// A Unix socket.
    Unix(PathBuf),
    /// A built-in server: the root of its nodes, by number and identity.
    BuiltIn((u32, u32), BuiltInServers),
}

/// The addresses of an origin as one loop knows them.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The number of its name in [`crate::upstream::names::Names`]; `None`: a literal address.
    pub name: Option<u32>,
    /// The addresses, IPv6 and IPv4 alternating.
    list: RefCell<Rc<[SocketAddr]>>,
    /// When they last changed.
    changed_ns: Cell<u64>,
}

impl Addresses {
    /// These addresses, which change with those of the name, if there is one.
    pub fn new(name: Option<u32>, list: &[SocketAddr]) -> Addresses {
        Addresses { name, list: RefCell::new(list.into()), changed_ns: Cell::new(0) }
    }

    /// Replaces the addresses.
    pub fn set(&self, now_ns: u64, list: &[SocketAddr]) {
        *self.list.borrow_mut() = list.into();
        self.changed_ns.set(now_ns);
    }

    /// The present addresses.
    pub fn list(&self) -> Rc<[SocketAddr]> {
        self.list.borrow().clone()
    }

    /// Whether a connection that was made at `opened_ns` still leads to one of them.
    pub fn lead(&self, opened_ns: u64, peer: impl FnOnce() -> Option<SocketAddr>) -> bool {
        opened_ns > self.changed_ns.get() || peer().is_some_and(|peer| self.list.borrow().contains(&peer))
    }
}

impl Place {
    /// Makes a connection.
    pub async fn connect(&self, core: &Core) -> io::Result<Socket> {
        self.connect_to(core, None, None).await
    }

    /// The same, from an address of this host, to another port.
    pub async fn connect_to(
        &self,
        core: &Core,
        source: Option<IpAddr>,
        port: Option<u16>,
    ) -> io::Result<Socket> {
        match self {
            Place::Tcp(addresses) => {
                let mut list = addresses.list();
                if let Some(port) = port {
                    list = list.iter().map(|a| SocketAddr::new(a.ip(), port)).collect();
                }
                connect::tcp_from(core, source, &list).await.map(Socket::Tcp)
            }
            Place::Unix(path) => connect::unix(core, path).await.map(Socket::Unix),
            Place::BuiltIn((root, _), BuiltInServers::There(servers)) => {
                let address = *servers.get(root).ok_or(io::ErrorKind::ConnectionRefused)?;
                connect::tcp(core, &[address]).await.map(Socket::Tcp)
            }
            Place::BuiltIn((_, root), BuiltInServers::Here(servers)) => {
                let (ours, theirs) =
                    socket2::Socket::pair(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
                let refused = io::ErrorKind::ConnectionRefused;
                servers.send((*root, theirs.into())).map_err(|_| refused)?;
                Raw::Unix(ours.into()).watch(&core.runtime)
            }
        }
    }

    /// Whether it has an address to connect to.
    pub fn has_address(&self) -> bool {
        match self {
            Place::Tcp(addresses) => !addresses.list.borrow().is_empty(),
            Place::Unix(_) | Place::BuiltIn(..) => true,
        }
    }

    /// Whether a connection that was made at `opened_ns` still leads there.
    pub fn leads(&self, opened_ns: u64, peer: impl FnOnce() -> Option<SocketAddr>) -> bool {
        match self {
            Place::Tcp(addresses) => addresses.lead(opened_ns, peer),
            Place::Unix(_) | Place::BuiltIn(..) => true,
        }
    }
}
