//! What belongs to a client's connection for as long as it lasts, whatever protocol it speaks.

use crate::metrics::Parting;
use crate::transport::listener::{Listener, OwnProcessTrust};
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use weir_net::io::deadlines::Deadline;
use weir_net::transport::tls::TlsParameters;

/// A client's connection, as those see it who serve its requests.
pub(crate) struct Session {
    pub listener: Rc<Listener>,
    /// The client's end, and where it came to; `None` for Unix sockets.
    peer: Cell<Option<SocketAddr>>,
    local: Cell<Option<SocketAddr>>,
    /// The limit of silence that counts now: idle, head or body timeout.
    pub deadline: Deadline,
    /// What TLS came to; empty in cleartext.
    tls_parameters: OnceCell<TlsParameters>,
    /// Whether this very process is the client; found out with the first request.
    own: OnceCell<bool>,
    /// Told to end: an idle one closes, a busy one after its answer.
    ending: Cell<bool>,
    lingers: Cell<bool>,
    /// Since when nothing is asked after a whole answer, ns; `u64::MAX` while something is, and before the first.
    pub idle_since_ns: Cell<u64>,
    /// What it ended by, should it end now.
    pub parting: Cell<Parting>,
    /// What counts the client; given up as soon as nothing more is served.
    place: RefCell<Option<Box<dyn Any>>>,
}

impl Session {
    /// A connection that was just accepted; `place` counts it until it is dropped.
    pub fn new(
        listener: Rc<Listener>,
        peer: Option<SocketAddr>,
        local: Option<SocketAddr>,
        deadline: Deadline,
        ending: bool,
        place: Box<dyn Any>,
    ) -> Session {
        Session {
            listener,
            peer: Cell::new(peer),
            local: Cell::new(local),
            deadline,
            tls_parameters: OnceCell::new(),
            own: OnceCell::new(),
            ending: Cell::new(ending),
            lingers: Cell::new(false),
            idle_since_ns: Cell::new(u64::MAX),
            parting: Cell::new(Parting::Client),
            place: RefCell::new(Some(place)),
        }
    }

    /// The client's end; `None` for Unix sockets.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer.get()
    }

    /// The address that the client came to; `None` for Unix sockets.
    pub fn local(&self) -> Option<SocketAddr> {
        self.local.get()
    }

    /// The balancer that the client came through has named it. On a Unix socket the address that the client came to is known
    /// from the balancer alone.
    pub fn set_client(&self, client: SocketAddr, local: Option<SocketAddr>) {
        // What a peer says of addresses makes it no part of this process.
        let _ = self.own.set(false);
        self.peer.set(Some(client));
        self.local.set(self.local.get().or(local));
    }

    /// What counts the client, to be counted otherwise and given back.
    pub fn take_place(&self) -> Option<Box<dyn Any>> {
        self.place.take()
    }

    /// It is counted by this from now on.
    pub fn set_place(&self, place: Box<dyn Any>) {
        self.place.replace(Some(place));
    }

    /// Its handshake is done.
    pub fn set_tls_parameters(&self, tls_parameters: TlsParameters) {
        let _ = self.tls_parameters.set(tls_parameters);
    }

    /// What TLS came to; `None` in cleartext.
    pub fn tls_parameters(&self) -> Option<&TlsParameters> {
        self.tls_parameters.get()
    }

    /// This very process is the client.
    pub fn mark_own(&self) {
        let _ = self.own.set(true);
    }

    /// Where this very process is the client: what is believed of it. To be asked once a request has come.
    pub fn believed(&self) -> Option<&OwnProcessTrust> {
        let inner = self.listener.inner.as_ref()?;
        let ends = self.peer().zip(self.local());
        let own = || ends.is_some_and(|(peer, local)| inner.own.has(peer, local));
        self.own.get_or_init(own).then_some(inner)
    }

    /// Nothing more is served: another client may come in its place.
    pub fn give_up_place(&self) {
        drop(self.place.take());
    }

    /// Whether it ends after its answer.
    pub fn is_ending(&self) -> bool {
        self.ending.get()
    }

    /// Which listener the client came to and its address, for logs.
    pub fn who(&self) -> (&str, Option<IpAddr>) {
        (&self.listener.name, self.peer().map(|p| p.ip()))
    }

    /// It is idle, and ends to make room for another: it is read once more, and closed with care.
    pub fn end_for_room(&self) {
        self.lingers.set(true);
        self.end();
    }

    /// Whether it ends with care though nothing is unread.
    pub fn lingers(&self) -> bool {
        self.lingers.get()
    }

    /// It ends since it was told to.
    pub fn parts_as_told(&self) {
        self.parting.set(if self.lingers() { Parting::Room } else { Parting::Drain });
    }

    /// It is to end: at once if nothing is asked, else after its answer.
    pub fn end(&self) {
        self.ending.set(true);
        self.deadline.wake();
    }
}
