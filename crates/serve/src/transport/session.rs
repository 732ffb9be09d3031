//! The state of a client's connection, for all protocols.

use crate::log::Client;
use crate::metrics::Parting;
use crate::transport::listener::{Listener, OwnProcessTrust};
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use weir_net::io::deadlines::Deadline;
use weir_net::transport::tls::TlsParameters;

/// A client's connection, as the code that serves its requests sees it.
pub(crate) struct Session {
    pub listener: Rc<Listener>,
    /// The client's address, and the local one; `None` for Unix sockets.
    peer: Cell<Option<SocketAddr>>,
    local: Cell<Option<SocketAddr>>,
    /// The present limit of silence: idle, head or body timeout.
    pub deadline: Deadline,
    /// The parameters that TLS negotiated; empty in cleartext.
    tls_parameters: OnceCell<TlsParameters>,
    /// Whether this process is the client; decided with the first request.
    own: OnceCell<bool>,
    /// Whether it is to end: at once if idle, otherwise after its answer.
    ending: Cell<bool>,
    lingers: Cell<bool>,
    /// When the connection became idle, ns; `u64::MAX` while a request is in progress, and before the first.
    pub idle_since_ns: Cell<u64>,
    /// The reason that is counted if it ends now.
    pub parting: Cell<Parting>,
    /// Counts the client; released as soon as nothing more is served.
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

    /// The client's address; `None` for Unix sockets.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer.get()
    }

    /// The address that the client came to; `None` for Unix sockets.
    pub fn local(&self) -> Option<SocketAddr> {
        self.local.get()
    }

    /// Sets the client address announced by a PROXY header. On a Unix socket the local address is known from the
    /// header alone.
    pub fn set_client(&self, client: SocketAddr, local: Option<SocketAddr>) {
        // A peer that announces addresses is not part of this process.
        let _ = self.own.set(false);
        self.peer.set(Some(client));
        self.local.set(self.local.get().or(local));
    }

    /// Takes what counts the client, to count it differently.
    pub fn take_place(&self) -> Option<Box<dyn Any>> {
        self.place.take()
    }

    /// Sets what counts the client.
    pub fn set_place(&self, place: Box<dyn Any>) {
        self.place.replace(Some(place));
    }

    /// Sets the parameters of its TLS handshake.
    pub fn set_tls_parameters(&self, tls_parameters: TlsParameters) {
        let _ = self.tls_parameters.set(tls_parameters);
    }

    /// The parameters that TLS negotiated; `None` in cleartext.
    pub fn tls_parameters(&self) -> Option<&TlsParameters> {
        self.tls_parameters.get()
    }

    /// Marks that this process is the client.
    pub fn mark_own(&self) {
        let _ = self.own.set(true);
    }

    /// What is trusted if this process is the client. To be called once a request has arrived.
    pub fn believed(&self) -> Option<&OwnProcessTrust> {
        let inner = self.listener.inner.as_ref()?;
        let ends = self.peer().zip(self.local());
        let own = || ends.is_some_and(|(peer, local)| inner.own.has(peer, local));
        self.own.get_or_init(own).then_some(inner)
    }

    /// Releases the client's place: nothing more is served.
    pub fn give_up_place(&self) {
        drop(self.place.take());
    }

    /// Whether it ends after its answer.
    pub fn is_ending(&self) -> bool {
        self.ending.get()
    }

    /// The listener's name and the client's address, for logs.
    pub fn client(&self) -> Client<'_> {
        Client { listener: &self.listener.name, ip: self.peer().map(|p| p.ip()), tls: self.tls_parameters() }
    }

    /// Ends an idle connection to make room for another: it is read once more, and closed with care.
    pub fn end_for_room(&self) {
        self.lingers.set(true);
        self.end();
    }

    /// Whether it lingers although nothing is unread.
    pub fn lingers(&self) -> bool {
        self.lingers.get()
    }

    /// Sets the counted reason of a connection that was asked to end.
    pub fn parts_as_told(&self) {
        self.parting.set(if self.lingers() { Parting::Room } else { Parting::Drain });
    }

    /// Asks it to end: at once if idle, otherwise after its answer.
    pub fn end(&self) {
        self.ending.set(true);
        self.deadline.wake();
    }
}
