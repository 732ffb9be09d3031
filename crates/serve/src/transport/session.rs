//! The state of a client's connection, for all protocols.

use crate::log::Client;
use crate::metrics::Parting;
use crate::transport::listener::{Listener, OwnProcessTrust};
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Waker;
use weir_net::io::deadlines::Deadline;
use weir_net::transport::tls::TlsParameters;

/// How near a connection is to its end. Each stage includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    #[default]
    Open,
    /// A drain was announced: an answer of HTTP/1.1 says `Connection: close`.
    LastAnswer,
    /// It drains: if idle, it is closed after its next answer or a time of idleness; HTTP/2 gets GOAWAY.
    Draining,
    /// It is closed at once if idle.
    Now,
    /// The drain's time is over: a request in progress is answered as one that was reset, or its answer breaks off.
    Cut,
    /// Its task ends.
    Ended,
}

/// What counts a client, until it is dropped.
pub(crate) trait ClientPlace: Any {
    /// What counts it while it lingers: nothing more is served, but it has a descriptor. `None`: nothing.
    fn while_lingering(self: Box<Self>) -> Option<Box<dyn ClientPlace>>;
}

/// A client that does not count.
impl ClientPlace for () {
    fn while_lingering(self: Box<Self>) -> Option<Box<dyn ClientPlace>> {
        None
    }
}

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
    ending: Cell<Ending>,
    /// Wakes the connection's task.
    task: OnceCell<Waker>,
    lingers: Cell<bool>,
    /// When its lingering close began, ns; `u64::MAX`: it has not, or was cut short.
    lingering_since_ns: Cell<u64>,
    /// Whether its lingering close was cut short.
    is_cut_short: Cell<bool>,
    /// When the connection became idle, ns; `u64::MAX` while a request is in progress, and before the first.
    pub idle_since_ns: Cell<u64>,
    /// The reason that is counted if it ends now.
    pub parting: Cell<Parting>,
    /// Counts the client.
    place: RefCell<Option<Box<dyn ClientPlace>>>,
}

impl Session {
    /// A connection that was just accepted; `place` counts it until it is dropped.
    pub fn new(
        listener: Rc<Listener>,
        peer: Option<SocketAddr>,
        local: Option<SocketAddr>,
        deadline: Deadline,
        ending: Ending,
        place: Box<dyn ClientPlace>,
    ) -> Session {
        Session {
            listener,
            peer: Cell::new(peer),
            local: Cell::new(local),
            deadline,
            tls_parameters: OnceCell::new(),
            own: OnceCell::new(),
            ending: Cell::new(ending),
            task: OnceCell::new(),
            lingers: Cell::new(false),
            lingering_since_ns: Cell::new(u64::MAX),
            is_cut_short: Cell::new(false),
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
    pub fn take_place(&self) -> Option<Box<dyn ClientPlace>> {
        self.place.take()
    }

    /// Sets what counts the client.
    pub fn set_place(&self, place: Box<dyn ClientPlace>) {
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

    /// Releases the client's place: it needs no descriptor any more, or soon.
    pub fn give_up_place(&self) {
        drop(self.place.take());
    }

    /// Whether this process is known to be the client.
    pub fn is_own(&self) -> bool {
        self.own.get() == Some(&true)
    }

    /// How near it is to its end.
    pub fn ending(&self) -> Ending {
        self.ending.get()
    }

    /// Whether it ends after its answer (HTTP/1.1).
    pub fn is_last_answer(&self) -> bool {
        self.ending.get() >= Ending::LastAnswer
    }

    /// Whether it drains, or ends sooner.
    pub fn is_draining(&self) -> bool {
        self.ending.get() >= Ending::Draining
    }

    /// Whether its requests end now, because the drain's time is over.
    pub fn is_cut(&self) -> bool {
        self.ending.get() >= Ending::Cut
    }

    /// The listener's name and the client's address, for logs.
    pub fn client(&self) -> Client<'_> {
        Client { listener: &self.listener.name, ip: self.peer().map(|p| p.ip()), tls: self.tls_parameters() }
    }

    /// Ends an idle connection to make room for another: it is read once more, and closed with care.
    pub fn end_for_room(&self) {
        self.lingers.set(true);
        self.end(Ending::Now);
    }

    /// Whether it lingers although nothing is unread.
    pub fn lingers(&self) -> bool {
        self.lingers.get()
    }

    /// Notes that its lingering close begins, and releases what counts clients that are served.
    pub fn begin_lingering(&self, now_ns: u64) {
        let place = self.place.take();
        self.place.replace(place.and_then(ClientPlace::while_lingering));
        self.lingering_since_ns.set(now_ns);
    }

    /// When its lingering close began, ns; `None`: it is not in one.
    pub fn lingering_since_ns(&self) -> Option<u64> {
        Some(self.lingering_since_ns.get()).filter(|since_ns| *since_ns != u64::MAX)
    }

    /// Ends its lingering close now, and releases its place at once: another client needs that.
    pub fn cut_lingering_short(&self) {
        self.lingering_since_ns.set(u64::MAX);
        self.is_cut_short.set(true);
        self.give_up_place();
        self.deadline.wake();
    }

    /// Whether it counts as connected.
    pub fn has_place(&self) -> bool {
        self.place.borrow().is_some()
    }

    /// Whether its lingering close was cut short.
    pub fn is_cut_short(&self) -> bool {
        self.is_cut_short.get()
    }

    /// Sets the counted reason of a connection that was asked to end.
    pub fn parts_as_told(&self) {
        self.parting.set(if self.lingers() { Parting::Room } else { Parting::Drain });
    }

    /// Brings it nearer to its end; a stage that it has passed stays.
    pub fn end(&self, ending: Ending) {
        self.ending.set(self.ending.get().max(ending));
        self.deadline.wake();
        if let Some(task) = self.task.get().filter(|_| ending >= Ending::Cut) {
            task.wake_by_ref();
        }
    }

    /// Sets what wakes the connection's task, once.
    pub fn set_task(&self, waker: &Waker) {
        self.task.get_or_init(|| waker.clone());
    }
}
