//! Accepting: a task for each listener of a loop. Where descriptors run out it pauses, and never spins. Who still waits as the
//! doors close: `accept/late.rs`.

mod late;

use crate::control::event_loop::Loop;
use crate::control::handoff::{self, Invited};
use crate::h1::server;
use crate::io::runtime::{Acceptor, Runtime};
use crate::transport::bind::Bound;
use crate::transport::listener::{Listener, Place};
use crate::transport::socket::Raw;
use rustix::net::SocketAddrAny;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_topology::plan::fixed;

/// A listening socket of one loop.
pub(crate) struct Door {
    acceptor: Acceptor,
    is_unix: bool,
}

/// A connection and the address of its other end, where it has one.
type Accepted = (Raw, Option<SocketAddr>);

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
            Bound::Unix(sockets) => sockets.into_iter().map(Share::Unix).collect(),
        }
    }
}

impl Share {
    /// Watched by this loop.
    pub fn open(self, rt: &Runtime) -> io::Result<Door> {
        let (listener, is_unix) = match self {
            Share::Tcp(socket) => {
                socket.set_nonblocking(true)?;
                (OwnedFd::from(socket), false)
            }
            Share::Unix(socket) => (OwnedFd::from(socket), true),
        };
        Ok(Door { acceptor: Acceptor::new(rt, listener)?, is_unix })
    }
}

impl Door {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        self.acceptor.poll_accept(cx).map_ok(|(socket, peer)| self.of_kind(socket, peer))
    }

    fn of_kind(&self, socket: OwnedFd, peer: Option<SocketAddrAny>) -> Accepted {
        match self.is_unix {
            false => (Raw::Tcp(socket.into()), peer.and_then(|peer| peer.try_into().ok())),
            true => (Raw::Unix(socket.into()), None),
        }
    }

    /// The next of those who wait before it, of whom no event may have told yet; `None`: nobody does.
    fn next(&self) -> io::Result<Option<Accepted>> {
        loop {
            match self.acceptor.accept() {
                Ok((socket, peer)) => return Ok(Some(self.of_kind(socket, peer))),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // One that broke before it was accepted is passed over.
                Err(e)
                    if matches!(e.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// Accepts until the loop closes its doors; those who wait then are still let in.
pub(crate) async fn run(lp: Rc<Loop>, listener: Rc<Listener>, door: Door) {
    let mut first = None;
    let mut closing = lp.closing.subscribe();
    let mut closes = std::pin::pin!(closing.wait_for(|closing| *closing));
    loop {
        if listener.is_full() {
            if pauses(&lp, &door, closes.as_mut()).await {
                continue;
            }
            break;
        }
        let accepted = poll_fn(|cx| match door.poll_accept(cx) {
            Poll::Ready(accepted) => Poll::Ready(Some(accepted)),
            Poll::Pending => closes.as_mut().poll(cx).map(|_| None),
        });
        match accepted.await {
            None => break,
            Some(Ok((socket, peer))) => {
                // Another loop may have had the last place meanwhile: then this one waits for the next.
                let mut place = listener.take_place();
                while place.is_none() && pauses(&lp, &door, closes.as_mut()).await {
                    place = listener.take_place();
                }
                let Some(place) = place else {
                    first = Some((socket, peer));
                    break;
                };
                let_in(&lp, &listener, socket, peer, place);
            }
            // One connection that broke before it was accepted is no reason to wait.
            Some(Err(e)) if e.kind() == io::ErrorKind::ConnectionAborted => {}
            Some(Err(e)) => {
                lp.process.words.cannot_accept(&e);
                if !pauses(&lp, &door, closes.as_mut()).await {
                    break;
                }
            }
        }
    }
    late::begin(&lp, listener, door, first);
}

fn let_in(lp: &Rc<Loop>, listener: &Rc<Listener>, socket: Raw, peer: Option<SocketAddr>, place: Place) {
    let me = lp.number as usize;
    let lightest = listener.clients.lightest(me);
    let invited = if lightest == me { None } else { Invited::to(&lp.process, lightest) };
    let on = invited.as_ref().map_or(me, |_| lightest);
    let Place { own, common } = place;
    // One too many from an address is closed at once.
    let Some(own) = own.on(peer.map(|p| p.ip()), on) else { return };
    match invited {
        None => {
            // What cannot be watched is closed, as what cannot be accepted is.
            let Ok(socket) = socket.watch(&lp.runtime) else { return };
            let serving = server::serve(lp.clone(), listener.clone(), socket, peer, own);
            lp.runtime.spawn(async move {
                let _common = common;
                serving.await;
            });
        }
        Some(to) => handoff::send(lp, to, listener.number, socket, peer, Place { own, common }),
    }
}

/// Lets a moment pass; `false` if the doors close meanwhile.
async fn pauses(lp: &Loop, door: &Door, mut closes: Pin<&mut impl Future>) -> bool {
    door.acceptor.quiet();
    let mut sleep = lp.timers.after(fixed::ACCEPT_PAUSE_NS);
    poll_fn(|cx| match closes.as_mut().poll(cx) {
        Poll::Ready(_) => Poll::Ready(false),
        Poll::Pending => sleep.poll_ended(cx).map(|()| true),
    })
    .await
}
