//! Accepting: a task for each listener of a loop. Where descriptors run out it pauses, and never spins.

use crate::bind::Bound;
use crate::client;
use crate::event_loop::Loop;
use crate::listener::Listener;
use crate::socket::Socket;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// How long accepting pauses when the system has nothing left, ns.
const PAUSE_NS: u64 = 50_000_000;

/// A listening socket of one loop.
pub(crate) enum Door {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

/// One loop's share of a bound listener, before its runtime runs.
pub(crate) enum Share {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl Bound {
    /// The sockets, one for each loop.
    pub fn shares(self) -> Vec<Share> {
        match self {
            Bound::Tcp(sockets, _) => sockets.into_iter().map(Share::Tcp).collect(),
            Bound::Unix(sockets, _) => sockets.into_iter().map(Share::Unix).collect(),
        }
    }
}

impl Share {
    /// Known to the runtime that is entered.
    pub fn open(self) -> io::Result<Door> {
        Ok(match self {
            Share::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                Door::Tcp(tokio::net::TcpListener::from_std(socket)?)
            }
            Share::Unix(socket) => Door::Unix(tokio::net::UnixListener::from_std(socket)?),
        })
    }
}

impl Door {
    async fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        match self {
            Door::Tcp(door) => door.accept().await.map(|(s, peer)| (Socket::Tcp(s), Some(peer))),
            Door::Unix(door) => door.accept().await.map(|(s, _)| (Socket::Unix(s), None)),
        }
    }
}

/// Accepts for ever; aborted when the loop drains.
pub(crate) async fn run(lp: Rc<Loop>, listener: Rc<Listener>, door: Door) {
    loop {
        while lp.process.clients.load(Ordering::Relaxed) >= lp.process.max_clients {
            lp.timers.after(PAUSE_NS).await;
        }
        match door.accept().await {
            Ok((socket, peer)) => {
                tokio::task::spawn_local(client::serve(lp.clone(), listener.clone(), socket, peer));
            }
            // One connection that broke before it was accepted is no reason to wait.
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => lp.timers.after(PAUSE_NS).await,
        }
    }
}
