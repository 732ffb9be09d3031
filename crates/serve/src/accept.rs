//! Accepting: a task for each listener of a loop. Where descriptors run out it pauses, and never spins.

use crate::bind::Bound;
use crate::client;
use crate::event_loop::Loop;
use crate::handover::{self, Invited};
use crate::listener::{Listener, Place};
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

    /// Closes it, and gives those who wait before it: of the last ones no event may have told yet.
    fn rest(self) -> Vec<(Socket, Option<SocketAddr>)> {
        let mut rest = Vec::new();
        match self {
            Door::Tcp(door) => {
                let Ok(door) = door.into_std() else { return rest };
                while let Some((socket, peer)) = next(|| door.accept()) {
                    if socket.set_nonblocking(true).is_ok()
                        && let Ok(socket) = tokio::net::TcpStream::from_std(socket)
                    {
                        rest.push((Socket::Tcp(socket), Some(peer)));
                    }
                }
            }
            Door::Unix(door) => {
                let Ok(door) = door.into_std() else { return rest };
                while let Some((socket, _)) = next(|| door.accept()) {
                    if socket.set_nonblocking(true).is_ok()
                        && let Ok(socket) = tokio::net::UnixStream::from_std(socket)
                    {
                        rest.push((Socket::Unix(socket), None));
                    }
                }
            }
        }
        rest
    }
}

/// Whoever waits next, if anybody does; one that broke before it was accepted is passed over.
fn next<T>(accept: impl Fn() -> io::Result<T>) -> Option<T> {
    loop {
        match accept() {
            Ok(accepted) => return Some(accepted),
            Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
            Err(_) => return None,
        }
    }
}

/// Accepts until the loop closes its doors; those who wait then are still let in.
pub(crate) async fn run(lp: Rc<Loop>, listener: Rc<Listener>, door: Door) {
    let mut closing = lp.closing.subscribe();
    let mut closes = std::pin::pin!(closing.wait_for(|closing| *closing));
    loop {
        if listener.is_full() {
            if pauses(&lp, closes.as_mut()).await {
                continue;
            }
            break;
        }
        let mut accepting = std::pin::pin!(door.accept());
        let accepted = poll_fn(|cx| match accepting.as_mut().poll(cx) {
            Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
            Poll::Pending => closes.as_mut().poll(cx).map(|_| None),
        });
        match accepted.await {
            None => break,
            Some(Ok((socket, peer))) => {
                // Another loop may have had the last place meanwhile: then this one waits for the next.
                let mut place = listener.take_place();
                while place.is_none() && pauses(&lp, closes.as_mut()).await {
                    place = listener.take_place();
                }
                let Some(place) = place else { break };
                let_in(&lp, &listener, socket, peer, place);
            }
            // One connection that broke before it was accepted is no reason to wait.
            Some(Err(e)) if e.kind() == io::ErrorKind::ConnectionAborted => {}
            Some(Err(_)) if pauses(&lp, closes.as_mut()).await => {}
            Some(Err(_)) => break,
        }
    }
    for (socket, peer) in door.rest() {
        let Some(place) = listener.take_place() else { return };
        let_in(&lp, &listener, socket, peer, place);
    }
}

fn let_in(lp: &Rc<Loop>, listener: &Rc<Listener>, socket: Socket, peer: Option<SocketAddr>, place: Place) {
    let me = lp.number as usize;
    let lightest = listener.clients.lightest(me);
    let invited = if lightest == me { None } else { Invited::to(&lp.process, lightest) };
    let on = invited.as_ref().map_or(me, |_| lightest);
    let Place { own, common } = place;
    // One too many from an address is closed at once.
    let Some(own) = own.on(peer.map(|p| p.ip()), on) else { return };
    match invited {
        None => {
            let serving = client::serve(lp.clone(), listener.clone(), socket, peer, own);
            tokio::task::spawn_local(async move {
                let _common = common;
                serving.await;
            });
        }
        // What cannot be handed over is closed, as what cannot be accepted is.
        Some(to) => drop(handover::send(lp, to, listener.number, socket, peer, Place { own, common })),
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
