//! Connections of this process to its own listeners (those behind others), which trust what such a connection says
//! about its client. They are recognised by both their ends, which no other connection has while they are open.

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_net::transport::socket::Socket;
use weir_net::transport::tls;

/// The two ends of a connection: the client's, and the listener's.
type Ends = (SocketAddr, SocketAddr);

/// The open connections.
#[derive(Debug, Default)]
pub(crate) struct OwnConnections(Mutex<HashSet<Ends>>);

/// One of them. It must be dropped before the connection closes: another may get its ends then.
#[derive(Debug)]
pub(crate) struct OwnConnection(Arc<OwnConnections>, Ends);

impl OwnConnections {
    /// Registers a connection that this process has just made, before anything is sent on it; `None`: it has no
    /// addresses.
    pub fn made(self: &Arc<Self>, socket: &Socket) -> Option<OwnConnection> {
        let ends = (plain(socket.local()?), plain(socket.peer()?));
        self.open().insert(ends);
        Some(OwnConnection(self.clone(), ends))
    }

    /// Whether an accepted connection is one of them; known as soon as its first byte has arrived.
    pub fn has(&self, peer: SocketAddr, local: SocketAddr) -> bool {
        self.open().contains(&(plain(peer), plain(local)))
    }

    /// Locked for an insertion, a removal or a look, once in the life of a connection.
    fn open(&self) -> MutexGuard<'_, HashSet<Ends>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OwnConnection {
    fn drop(&mut self) {
        self.0.open().remove(&self.1);
    }
}

/// A dual-stack socket shows `::ffff:127.0.0.1` where the other end shows `127.0.0.1`.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Whether this process is at the other end of a Unix socket.
pub(crate) fn is_own(socket: &UnixStream) -> bool {
    rustix::net::sockopt::socket_peercred(socket).is_ok_and(|peer| peer.pid == rustix::process::getpid())
}

/// The addresses at which this process reaches its own listeners behind others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inner {
    /// By node.
    pub at: BTreeMap<u32, InnerAddress>,
    /// The TLS settings for them, by node; listeners without an entry use cleartext.
    pub tls: BTreeMap<u32, Arc<tls::Client>>,
    /// The open connections to them.
    pub own: Arc<OwnConnections>,
}

/// The address of a listener.
#[derive(Clone, Debug)]
pub(crate) enum InnerAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The address at which a listener is reached from this machine.
pub(crate) fn reached_at(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => std::net::Ipv4Addr::LOCALHOST.into(),
        // It accepts either version: IPv4 exists on every machine.
        IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_known_by_both_ends_until_it_is_dropped() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let all = Arc::new(OwnConnections::default());
        let ends = (at("127.0.0.1:5"), at("127.0.0.1:80"));
        all.open().insert(ends);
        let own = OwnConnection(all.clone(), ends);
        assert!(all.has(at("[::ffff:127.0.0.1]:5"), at("[::ffff:127.0.0.1]:80")));
        assert!(
            !all.has(at("127.0.0.1:5"), at("127.0.0.1:81"))
                && !all.has(at("127.0.0.1:6"), at("127.0.0.1:80"))
        );
        drop(own);
        assert!(!all.has(ends.0, ends.1));
    }

    #[test]
    fn where_a_listener_is_reached() {
        for (bound, there) in [
            ("0.0.0.0:80", "127.0.0.1:80"),
            ("[::]:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("10.0.0.1:80", "10.0.0.1:80"),
        ] {
            assert_eq!(reached_at(bound.parse().expect("an address")).to_string(), there);
        }
    }
}
