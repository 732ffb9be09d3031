//! The options that every TCP connection gets: when a peer that has vanished is noticed.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;

/// Options of TCP connections, and of making them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSettings {
    /// How long sent bytes may stay unacknowledged before the peer counts as vanished, ns (TCP_USER_TIMEOUT).
    pub user_timeout_ns: u64,
    /// How long a peer may be silent before it is probed, ns (TCP_KEEPIDLE).
    pub keepalive_ns: u64,
    /// The time between two probes, ns (TCP_KEEPINTVL).
    pub keepalive_interval_ns: u64,
    /// Probes without an answer after which the peer counts as vanished (TCP_KEEPCNT).
    pub keepalive_probes: u32,
    /// How long an attempt to connect may take before the next address of a name is tried beside it, ns (RFC 8305 §5).
    pub next_address_ns: u64,
}

impl TcpSettings {
    /// Lets the system notice that a socket's peer has vanished: by probes while the connection is idle, by the age of
    /// unacknowledged bytes otherwise. A connection inherits this from the socket that accepts it.
    ///
    /// # Errors
    /// When the system refuses an option.
    pub fn watch_peer(&self, socket: &SockRef<'_>) -> io::Result<()> {
        let probes = TcpKeepalive::new()
            .with_time(Duration::from_nanos(self.keepalive_ns))
            .with_interval(Duration::from_nanos(self.keepalive_interval_ns))
            .with_retries(self.keepalive_probes);
        socket.set_tcp_keepalive(&probes)?;
        socket.set_tcp_user_timeout(Some(Duration::from_nanos(self.user_timeout_ns)))
    }
}
