//! The options that TCP connections get: when a peer that has vanished is noticed, and how bytes leave.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::net::IpAddr;
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

/// Lets a socket at a loopback address, and the connections that it accepts, send without pacing, where the system's
/// default is BBR: between two processes of one machine there is no network to spare, and the timers and small pieces of
/// its pacing cost several times as much as the bytes (`docs/spec/background.md#read-size`). Without the right to change it
/// the socket stays as it is.
pub fn unpace_loopback(socket: &SockRef<'_>, address: IpAddr) {
    if address.is_loopback() && socket.tcp_congestion().is_ok_and(|name| name.starts_with(b"bbr")) {
        // The one that every kernel has.
        let _ = socket.set_tcp_congestion(b"reno");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    /// The algorithm that a socket has.
    fn congestion(socket: SockRef<'_>) -> String {
        let name = socket.tcp_congestion().expect("it has one");
        String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned()
    }

    #[test]
    fn sockets_on_loopback_are_not_paced() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("it listens");
        let socket = SockRef::from(&listener);
        let is_there = socket.set_tcp_congestion(b"bbr").is_ok();
        let before = congestion(SockRef::from(&listener));
        assert_eq!(before == "bbr", is_there);
        unpace_loopback(&socket, Ipv4Addr::new(192, 0, 2, 1).into());
        assert_eq!(congestion(SockRef::from(&listener)), before, "the address of a network");
        unpace_loopback(&socket, Ipv4Addr::LOCALHOST.into());
        let after = congestion(SockRef::from(&listener));
        assert_eq!(after, if is_there { "reno" } else { &before });
        let _client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it connects");
        let (accepted, _) = listener.accept().expect("it is accepted");
        assert_eq!(congestion(SockRef::from(&accepted)), after);
    }
}
