//! Connections to origins, each of which carries many requests at once: the origin's end of an exchange.
//!
//! A connection is driven by a task of its own, while its target keeps it or a request is on it. The request for which it
//! was made leaves with the preface; others wait until the origin's settings say how many it takes.

mod drive;
mod fault;
mod liveness;
pub(crate) mod probe;
mod stream;

pub(crate) use fault::{Fault, Report};
pub(crate) use stream::Stream;

use self::liveness::Liveness;
use super::link::Link;
use crate::message::{ConnectionHold, Opening};
use crate::metrics::Ending;
use drive::Driver;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use weir_http2::{Config, Role};
use weir_net::io::Core;
use weir_net::transport::socket::Socket;
use weir_net::transport::wire::Wire;
use weir_plan::fixed::{
    H2_ORIGIN_WINDOW_BYTES, H2_STREAM_WINDOW_BYTES, MAX_RESPONSE_HEAD_BYTES, MAX_RESPONSE_HEADERS,
};

/// A connection to an origin.
pub(crate) struct Conn {
    core: Rc<Core>,
    link: Rc<Link>,
    /// Whether the origin answers on it.
    liveness: Rc<Liveness>,
    /// What its opening has come to; `None`: the origin's settings have not come.
    opened: Cell<Option<Opening>>,
    /// Requests that are on it.
    streams: Cell<usize>,
    /// Requests that were begun on it.
    requests: Cell<u64>,
    /// Why nothing new may begin: it has ended, or the origin has announced its end. `None`: something may.
    ending: Cell<Option<Ending>>,
    /// When it became idle, ns.
    idle_since_ns: Cell<u64>,
    /// Until when it counts as one that refuses streams, ns.
    refusing_until_ns: Cell<u64>,
    /// When it was made.
    pub opened_ns: u64,
    /// When it ends at the latest, by its age.
    old_ns: u64,
    /// The origin's end; `None`: a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Whether it is TLS: the scheme of its requests says so.
    https: bool,
    most_requests: u64,
    most_streams: u32,
    /// What it holds in this process.
    held: ConnectionHold,
}

/// The limits of a connection.
#[derive(Clone, Copy)]
pub(crate) struct ConnLimits {
    /// When it ends by its age, ns.
    pub old_ns: u64,
    /// The number of its requests.
    pub most_requests: Option<u64>,
    /// The number of its requests at once.
    pub most_streams: u32,
    /// How long the origin's settings may take.
    pub opening_ns: Option<u64>,
}

/// A place for one request on a connection; dropping it frees it.
pub(crate) struct Handle {
    conn: Rc<Conn>,
    /// Whether a request was begun on it.
    begun: bool,
}

impl Conn {
    /// Makes a connection of a socket, with a place for the first request. `on_open` is called once: when the origin's
    /// settings have come, or it is clear that they will not. `report` takes what is wrong with it.
    pub fn open(
        core: &Rc<Core>,
        socket: Socket,
        limits: ConnLimits,
        held: ConnectionHold,
        report: Option<Report>,
        on_open: impl FnOnce(Opening) + 'static,
    ) -> Handle {
        let (peer, https) = (socket.peer(), matches!(socket, Socket::Tls(_)));
        let config = Config { max_streams: limits.most_streams.min(MOST_STREAMS), ..CONFIG };
        let link = Link::new(core, Wire::new(socket, core.buffers.clone()), Role::Client, config);
        held.set_ending(Ending::Spare);
        held.set_h2();
        held.stream_begins();
        let conn = Rc::new(Conn {
            core: core.clone(),
            liveness: Rc::new(Liveness::new(core)),
            link,
            opened: Cell::new(None),
            streams: Cell::new(1),
            requests: Cell::new(0),
            ending: Cell::new(None),
            idle_since_ns: Cell::new(core.now()),
            refusing_until_ns: Cell::new(0),
            opened_ns: core.now(),
            old_ns: limits.old_ns,
            peer,
            https,
            most_requests: limits.most_requests.unwrap_or(u64::MAX),
            most_streams: config.max_streams,
            held,
        });
        core.runtime.spawn(Driver::new(&conn, limits.opening_ns, Box::new(on_open), report).run());
        Handle { conn, begun: false }
    }

    /// Takes a place for one more request, if there is one.
    pub fn take(self: &Rc<Self>, now_ns: u64, idle_timeout_ns: Option<u64>) -> Option<Handle> {
        let may = self.has_room() && self.liveness.is_trusted() && self.is_usable(now_ns, idle_timeout_ns);
        may.then(|| {
            self.streams.set(self.streams.get() + 1);
            self.held.stream_begins();
            Handle { conn: self.clone(), begun: false }
        })
    }

    /// Whether the origin takes one more request; not before its settings have come.
    fn has_room(&self) -> bool {
        let codec = self.link.codec.borrow();
        let most = codec.peer_settings().max_concurrent_streams.min(self.most_streams) as usize;
        self.opened.get() == Some(Ok(())) && self.streams.get() < most && codec.can_open()
    }

    /// Whether the origin's settings allow no stream at present.
    pub fn allows_none(&self) -> bool {
        let has_opened = self.opened.get() == Some(Ok(()));
        has_opened && self.link.codec.borrow().peer_settings().max_concurrent_streams == 0
    }

    /// Whether the origin allows extended CONNECT (RFC 8441 §3).
    pub fn has_extended_connect(&self) -> bool {
        self.link.codec.borrow().peer_settings().has_extended_connect
    }

    /// Whether requests may still begin on it.
    pub fn is_usable(&self, now_ns: u64, idle_timeout_ns: Option<u64>) -> bool {
        let idle = self.streams.get() == 0
            && idle_timeout_ns.is_some_and(|most| now_ns.saturating_sub(self.idle_since_ns.get()) >= most);
        let ending = match self.ending.get() {
            Some(ending) => ending,
            None if idle => Ending::Idle,
            None if now_ns >= self.old_ns || self.requests.get() >= self.most_requests => Ending::Age,
            None if self.link.codec.borrow().is_ending() => Ending::Origin,
            None if self.link.codec.borrow().has_reset_many() => Ending::Exchange,
            None => return true,
        };
        self.held.set_ending(ending);
        false
    }

    /// Notes that the origin has refused a stream.
    fn note_refusal(&self) {
        self.refusing_until_ns.set(self.core.recent().saturating_add(REFUSING_NS));
    }

    /// Notes that the origin has said anew how many streams it takes.
    fn forget_refusals(&self) {
        self.refusing_until_ns.set(0);
    }

    /// Whether the origin has refused a stream on it lately.
    pub fn is_refusing(&self, now_ns: u64) -> bool {
        now_ns < self.refusing_until_ns.get() && self.ending.get().is_none()
    }

    /// Allows no new requests on it, for this reason.
    fn ends(&self, ending: Ending) {
        self.ending.set(Some(ending));
        self.held.set_ending(ending);
    }

    /// When it became idle, ns; `None`: it is not.
    pub fn idle_since_ns(&self) -> Option<u64> {
        (self.streams.get() == 0).then(|| self.idle_since_ns.get())
    }
}

impl Drop for Conn {
    /// Nothing is on it any more, and its target does not keep it.
    fn drop(&mut self) {
        self.link.codec.borrow_mut().close();
        self.link.wake();
    }
}

impl Handle {
    /// The connection.
    pub fn conn(&self) -> &Rc<Conn> {
        &self.conn
    }

    /// Begins a request on it.
    fn begin(&mut self) {
        self.begun = true;
        self.conn.requests.set(self.conn.requests.get() + 1);
    }

    /// Requests that were begun on it.
    pub fn requests(&self) -> u64 {
        self.conn.requests.get()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Conn { streams, idle_since_ns, core, link, liveness, held, .. } = &*self.conn;
        streams.set(streams.get() - 1);
        held.stream_ends();
        idle_since_ns.set(core.recent());
        if self.begun && core.is_dropping_late() && !liveness.ask(link) {
            self.conn.ends(Ending::Exchange);
        }
    }
}

/// How long a connection counts as one that refuses streams: longer than the burst of requests that the origin had no
/// room for, and short enough that a connection which has room again is soon found.
const REFUSING_NS: u64 = 1_000_000_000;

/// Streams of a connection at most: those that have room in its window.
const MOST_STREAMS: u32 = H2_ORIGIN_WINDOW_BYTES / H2_STREAM_WINDOW_BYTES;

/// The limits of weir (RFC 9113 §6.5.2), with those of streams that its server has.
const CONFIG: Config = Config {
    max_head: MAX_RESPONSE_HEAD_BYTES as u32,
    max_fields: MAX_RESPONSE_HEADERS as u32,
    stream_window: H2_STREAM_WINDOW_BYTES,
    connection_window: H2_ORIGIN_WINDOW_BYTES,
    ..Config::CLIENT
};
