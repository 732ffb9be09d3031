//! Connections to origins, each of which carries many requests at once: the origin's end of an exchange.
//!
//! A connection is driven by a task of its own, while its target keeps it or a request is on it.

mod liveness;
pub(crate) mod probe;
mod stream;

pub(crate) use stream::Stream;

use self::liveness::Liveness;
use super::frames::Frames;
use super::send::Data;
use super::{Io, PREFACE, SMALL_DATA_BUDGET, Shared, is_own_flood};
use crate::message::ConnectionHold;
use crate::metrics::Ending;
use h2::client::{Builder, Connection, SendRequest};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use weir_net::io::Core;
use weir_net::transport::socket::Socket;
use weir_net::transport::tls;
use weir_net::transport::wire::Wire;
use weir_plan::fixed::{
    H2_ORIGIN_WINDOW_BYTES, H2_SEND_BUFFER_BYTES, H2_STREAM_WINDOW_BYTES, MAX_RESPONSE_HEAD_BYTES,
};

/// A connection to an origin.
pub(crate) struct Conn {
    core: Rc<Core>,
    sender: SendRequest<Data>,
    shared: Rc<Shared>,
    /// Whether the origin answers on it.
    liveness: Rc<Liveness>,
    /// Requests that are on it.
    streams: Cell<usize>,
    /// Requests that were begun on it.
    requests: Cell<u64>,
    /// Why nothing new may begin: it has ended, or the origin has announced its end. `None`: something may.
    ending: Cell<Option<Ending>>,
    /// When it became idle, ns.
    idle_since_ns: Cell<u64>,
    /// When it was made.
    pub opened_ns: u64,
    /// When it ends at the latest, by its age.
    old_ns: u64,
    /// The origin's end; `None`: a Unix socket.
    pub peer: Option<SocketAddr>,
    /// Whether it is TLS: the scheme of its requests says so.
    https: bool,
    most_requests: u64,
    /// What it holds in this process.
    held: ConnectionHold,
}

/// A place for one request on a connection; dropping it frees it.
pub(crate) struct Handle {
    conn: Rc<Conn>,
    /// Whether a request was begun on it.
    begun: bool,
}

impl Conn {
    /// Makes a connection of a socket; ready when the origin's settings have arrived, which announce how many
    /// requests it takes. `old_ns`: when it ends by its age.
    ///
    /// # Errors
    /// The origin ended it, or uses another protocol; with the error of TLS if that failed.
    pub async fn open(
        core: &Rc<Core>,
        socket: Socket,
        old_ns: u64,
        most_requests: Option<u64>,
        held: ConnectionHold,
    ) -> Result<Rc<Conn>, Option<tls::TlsError>> {
        let (peer, https) = (socket.peer(), matches!(socket, Socket::Tls(_)));
        let frames = Frames::of_origin(PREFACE.len());
        let shared = Shared::new(core, Wire::new(socket, core.buffers.clone()), frames);
        let failed = || shared.wire.borrow().socket.tls_failure();
        let handshake = settings().handshake(Io(shared.clone())).await;
        let (sender, mut connection) = handshake.map_err(|_| failed())?;
        poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
            Poll::Ready(_) => Poll::Ready(Err(failed())),
            Poll::Pending if shared.is_flooded() => Poll::Ready(Err(None)),
            Poll::Pending if sender.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        })
        .await?;
        held.set_ending(Ending::Spare);
        let liveness = Rc::new(Liveness::new(core, connection.ping_pong()));
        let conn = Rc::new(Conn {
            core: core.clone(),
            sender,
            shared: shared.clone(),
            liveness: liveness.clone(),
            streams: Cell::new(0),
            requests: Cell::new(0),
            ending: Cell::new(None),
            idle_since_ns: Cell::new(core.now()),
            opened_ns: core.now(),
            old_ns,
            peer,
            https,
            most_requests: most_requests.unwrap_or(u64::MAX),
            held,
        });
        core.runtime.spawn(drive(Rc::downgrade(&conn), shared, liveness, connection));
        Ok(conn)
    }

    /// Takes a place for one more request, if there is one.
    pub fn take(self: &Rc<Self>, now_ns: u64, idle_timeout_ns: Option<u64>) -> Option<Handle> {
        let room = self.streams.get() < self.sender.current_max_send_streams().min(MAX_STREAMS);
        (room && self.liveness.is_trusted() && self.is_usable(now_ns, idle_timeout_ns)).then(|| {
            self.streams.set(self.streams.get() + 1);
            Handle { conn: self.clone(), begun: false }
        })
    }

    /// Whether requests may still begin on it.
    pub fn is_usable(&self, now_ns: u64, idle_timeout_ns: Option<u64>) -> bool {
        let idle = self.streams.get() == 0
            && idle_timeout_ns.is_some_and(|most| now_ns.saturating_sub(self.idle_since_ns.get()) >= most);
        let ending = match self.ending.get() {
            Some(ending) => ending,
            None if idle => Ending::Idle,
            None if now_ns >= self.old_ns || self.requests.get() >= self.most_requests => Ending::Age,
            None => return true,
        };
        self.held.set_ending(ending);
        false
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

impl Handle {
    /// The connection.
    pub fn conn(&self) -> &Rc<Conn> {
        &self.conn
    }

    /// Begins a request on it.
    fn begin(&mut self) {
        self.begun = true;
        self.conn.requests.set(self.conn.requests.get() + 1);
        self.conn.shared.frames.borrow_mut().begin_request();
    }

    /// Requests that were begun on it.
    pub fn requests(&self) -> u64 {
        self.conn.requests.get()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let Conn { streams, idle_since_ns, core, shared, liveness, .. } = &*self.conn;
        streams.set(streams.get() - 1);
        idle_since_ns.set(core.recent());
        if self.begun {
            shared.frames.borrow_mut().end_request();
            if core.is_dropping_late() {
                liveness.ask(shared);
            }
        }
    }
}

/// Requests at once on a connection: as many as have room in its window.
const MAX_STREAMS: usize = (H2_ORIGIN_WINDOW_BYTES / H2_STREAM_WINDOW_BYTES) as usize;

/// Streams that weir has reset and whose late frames are expected, for a second each.
const MAX_RESET_STREAMS: usize = 1000;

/// The settings of weir (RFC 9113 §6.5.2). No request begins before the origin's settings have arrived. The crate's
/// own limit of errors counts for life, and would end a connection that has served for days; the account of frames
/// bounds what an origin may cost.
fn settings() -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_max_send_streams(0)
        .initial_window_size(H2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(H2_ORIGIN_WINDOW_BYTES)
        .max_header_list_size(u32::try_from(MAX_RESPONSE_HEAD_BYTES).unwrap_or(u32::MAX))
        .data_frame_budget(SMALL_DATA_BUDGET)
        // Each request that a client gives up leaves a stream whose frames may still be on their way.
        .max_concurrent_reset_streams(MAX_RESET_STREAMS)
        .max_local_error_reset_streams(None)
        .max_send_buffer_size(H2_SEND_BUFFER_BYTES);
    builder
}

/// Drives a connection to its end: when it is dropped everywhere else, or the origin ends or floods it, or does not
/// answer.
async fn drive(
    conn: std::rc::Weak<Conn>,
    shared: Rc<Shared>,
    liveness: Rc<Liveness>,
    mut connection: Connection<Io, Data>,
) {
    let mut flooded = false;
    poll_fn(|cx| {
        if let Poll::Ready(end) = Pin::new(&mut connection).poll(cx) {
            flooded |= end.is_err_and(|e| is_own_flood(&e));
            return Poll::Ready(());
        }
        if shared.is_flooded() {
            shared.send_goaway(cx);
            flooded = true;
            return Poll::Ready(());
        }
        if !liveness.is_trusted() && liveness.poll_dead(cx, &shared) {
            return Poll::Ready(());
        }
        shared.wire.borrow_mut().rest();
        Poll::Pending
    })
    .await;
    if let Some(conn) = conn.upgrade() {
        conn.ends(match () {
            () if flooded => Ending::Flood,
            () if liveness.is_dead() => Ending::Silent,
            () => Ending::Origin,
        });
    }
    drop(connection);
    shared.wire.borrow_mut().close();
}
