//! Accepting: a task for each listener of a loop. Where descriptors run out it pauses, and never spins.

use crate::bind::Bound;
use crate::client;
use crate::event_loop::Loop;
use crate::handover;
use crate::listener::Listener;
use crate::socket::Socket;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

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

/// Accepts until the loop closes its doors; those who wait then are still let in.
pub(crate) async fn run(lp: Rc<Loop>, listener: Rc<Listener>, door: Door) {
    let me = lp.number as usize;
    let mut closing = lp.closing.subscribe();
    let mut closes = std::pin::pin!(closing.wait_for(|closing| *closing));
    loop {
        if listener.clients.is_full() {
            if pauses(&lp, closes.as_mut()).await {
                continue;
            }
            return;
        }
        let mut accepting = std::pin::pin!(door.accept());
        let accepted = poll_fn(|cx| match accepting.as_mut().poll(cx) {
            Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
            Poll::Pending => closes.as_mut().poll(cx).map(|_| None),
        });
        let Some(accepted) = accepted.await else { return };
        match accepted {
            Ok((socket, peer)) => {
                // One too many from an address is closed at once.
                let on = listener.clients.place(me);
                match listener.clients.count(peer.map(|p| p.ip()), on) {
                    Some(counted) if on == me => {
                        tokio::task::spawn_local(client::serve(lp.clone(), listener.clone(), socket, peer, counted));
                    }
                    // What cannot be handed over is closed, as what cannot be accepted is.
                    Some(counted) => drop(handover::send(&lp, on, listener.number, socket, peer, counted)),
                    None => {}
                }
            }
            // One connection that broke before it was accepted is no reason to wait.
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) if pauses(&lp, closes.as_mut()).await => {}
            Err(_) => return,
        }
    }
}

/// Lets a moment pass; `false` if the doors close meanwhile.
async fn pauses(lp: &Loop, mut closes: Pin<&mut impl Future>) -> bool {
    let mut sleep = lp.timers.after(PAUSE_NS);
    poll_fn(|cx| match closes.as_mut().poll(cx) {
        Poll::Ready(_) => Poll::Ready(false),
        Poll::Pending => sleep.poll_ended(cx).map(|()| true),
    })
    .await
}
