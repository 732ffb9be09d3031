//! One request in flight, with all that its attempts share: the graph that it began in, its head, what has come of its body,
//! how long weir waited for the client. Its two ends ([`ClientEnd`], [`OriginEnd`]) know the protocols; here nobody does.
//!
//! [`serve`] runs a request from its head to the end of its answer; [`relay`] and [`upload`] pass bodies between the ends.

pub(crate) mod abort;
mod answer;
pub(crate) mod built_in;
mod client_end;
pub(crate) mod context;
pub(crate) mod drain;
pub(crate) mod failure;
mod failure_log;
pub(crate) mod hold;
mod naming;
pub(crate) mod notes;
mod origin_end;
pub(crate) mod origin_reply;
pub(crate) mod progress;
mod relay;
pub(crate) mod reply;
pub(crate) mod serve;
pub(crate) mod time_limit;
mod tunnel;
pub(crate) mod upload;
pub(crate) mod upstream;
pub(crate) mod view;

pub(crate) use client_end::ClientEnd;
pub(crate) use context::RequestContext;
pub(crate) use failure::Failure;
pub(crate) use origin_end::{OriginConn, OriginEnd};
pub(crate) use upstream::Upstream;

use crate::log::notes::Notes;
use crate::message::{Piece, RequestBodyError};
use crate::metrics::RequestLimit;
use crate::transport::listener::Listener;
use failure::FailureCause;
use reply::Answer;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Checked, Hop, Request, Version};
use weir_net::io::Core;
use weir_plan::KeySource;
use weir_policy::Kind;
use weir_policy::key;
use weir_stats::Key;
use weir_workload::RunRequest;

/// Index of a node in the graph of a request; it means nothing in another graph.
pub(crate) type NodeId = u32;

/// A request on its way through nodes, as a future that owns what it needs.
pub(crate) type Run = Pin<Box<dyn Future<Output = Answer>>>;

/// The nodes that a request runs through, from its beginning to its end. What nodes know of the graph that they are part of.
pub(crate) trait Graph {
    /// Runs a request from this node on.
    fn start(self: Rc<Self>, ex: Rc<Exchange>, ctx: RequestContext, node: NodeId) -> Run;

    /// What a server is called, for whoever reads of it; `None`: that node is none.
    fn describe(&self, node: NodeId) -> Option<String>;

    /// A node's site and its own name, for whoever reads of it.
    fn site(&self, node: NodeId) -> (String, String);

    /// How many reloads were applied before it.
    fn generation(&self) -> u32;
}

/// What a client's connection keeps beyond one request: the origin connection that belongs to this client alone (NTLM,
/// Negotiate), with the target that it leads to, and the limits that every idle one has.
#[derive(Default)]
pub(crate) struct PinnedConnection(RefCell<Option<PinnedConn>>);

struct PinnedConn {
    target: u32,
    conn: OriginConn,
    since_ns: u64,
    idle_timeout_ns: Option<u64>,
}

/// A request in progress.
pub(crate) struct Exchange {
    pub core: Rc<Core>,
    /// The nodes that it began in.
    graph: RefCell<Option<Rc<dyn Graph>>>,
    /// The client.
    pub client: ClientEnd,
    pub pinned: Rc<PinnedConnection>,
    /// The head.
    pub request: Box<Request>,
    /// What was found out about it.
    pub checked: Checked,
    /// What its choices are drawn by.
    pub draw: Key,
    /// What it is named by (`request_id`).
    pub id: Option<Box<str>>,
    /// The generation of its graph.
    pub generation: u32,
    /// What is written down of it; `None`: nobody writes it down.
    pub notes: Option<Box<Notes>>,
    /// Which request of a verification it is.
    pub of_run: Cell<RunRequest>,
    /// When its head had come.
    pub begun_ns: u64,
    /// Its body, as far as it was read.
    pub body: RefCell<Body>,
    /// Attempts beyond the first.
    further: Cell<u32>,
    waited_ns: Cell<u64>,
    waiting_since_ns: Cell<u64>,
    /// The target that was tried last.
    pub origin: RefCell<Option<Rc<dyn Upstream>>>,
    /// Whether an interim response of an origin went on to the client: no other origin may answer after that.
    pub passed_interim: Cell<bool>,
    /// Whether it was sent once more because its reused connection had ended.
    pub resent: Cell<bool>,
    /// Whether the last attempt used a connection that was used before.
    pub reused: Cell<bool>,
    /// Whether the head of its final answer has gone on.
    answered: Cell<bool>,
}

/// The body of a request.
pub(crate) struct Body {
    /// Its bytes from the start, for further attempts.
    pub kept: Vec<u8>,
    /// Whether `kept` is all that was read.
    pub is_kept: bool,
    /// Whether it was read to its end.
    pub complete: bool,
    /// Bytes read.
    pub received: u64,
    /// Whether the client was told to go on (100), or needs no word.
    pub told: bool,
}

const NOT_WAITING: u64 = u64::MAX;

impl Exchange {
    /// A request whose head was read and checked.
    pub fn new(
        core: Rc<Core>,
        graph: Rc<dyn Graph>,
        client: ClientEnd,
        pinned: Rc<PinnedConnection>,
        request: Box<Request>,
        checked: Checked,
    ) -> Exchange {
        let (begun_ns, draw) = (core.now(), core.draw());
        let listener = &client.session().listener;
        let traced = listener.traces.is_some() && naming::is_traced(&core, listener.http.trace, &checked);
        let noted = traced || listener.log.as_ref().is_some_and(|log| log.tells_all());
        let notes = noted.then(|| Box::new(Notes::new(!client.has_no_body(), traced)));
        let id = listener.http.request_id.as_ref().map(|field| naming::id(&core, &request, &checked, field));
        let body = Body {
            kept: Vec::new(),
            is_kept: true,
            complete: client.has_no_body(),
            received: 0,
            told: !checked.expect,
        };
        Exchange {
            draw,
            id,
            generation: graph.generation(),
            notes,
            of_run: Cell::default(),
            begun_ns,
            body: RefCell::new(body),
            core,
            graph: RefCell::new(Some(graph)),
            client,
            pinned,
            request,
            checked,
            further: Cell::new(0),
            waited_ns: Cell::new(0),
            waiting_since_ns: Cell::new(NOT_WAITING),
            origin: RefCell::default(),
            passed_interim: Cell::new(false),
            resent: Cell::new(false),
            reused: Cell::new(false),
            answered: Cell::new(false),
        }
    }

    /// Runs it from a node of its graph on: for nodes that do something after what is behind them.
    pub fn start(self: &Rc<Self>, ctx: RequestContext, node: NodeId) -> Run {
        let graph = self.graph.borrow().clone();
        match graph {
            Some(graph) => graph.start(self.clone(), ctx, node),
            None => Box::pin(std::future::ready(Err(Failure::new(Kind::NoTarget)))),
        }
    }

    /// What a server of its graph is called, for whoever reads of it.
    pub fn describe(&self, node: NodeId) -> Option<String> {
        self.graph.borrow().as_ref()?.describe(node)
    }

    /// A node's site and its own name, for whoever reads of it.
    pub fn site(&self, node: NodeId) -> Option<(String, String)> {
        Some(self.graph.borrow().as_ref()?.site(node))
    }

    /// It goes through no more nodes: a tunnel may last for days, and its graph is not to.
    pub fn leave_graph(&self) {
        self.graph.borrow_mut().take();
    }

    /// Where it came in.
    pub fn listener(&self) -> &Listener {
        &self.client.session().listener
    }

    /// Whether a loop has sent it to a built-in server of this process.
    pub fn is_built_in(&self) -> bool {
        self.listener().is_built_in()
    }

    /// What the rules want to know of the client's hop.
    pub fn hop(&self) -> Hop<'_> {
        hop(&self.client)
    }

    /// Whether the body was read whole.
    pub fn is_complete(&self) -> bool {
        self.body.borrow().complete
    }

    /// Whether another attempt is possible: all that was read of the body is kept, and nothing of an answer went on.
    pub fn can_send_again(&self) -> bool {
        self.body.borrow().is_kept && !self.passed_interim.get()
    }

    /// Whether the whole body is at hand.
    pub fn is_whole_and_kept(&self) -> bool {
        let body = self.body.borrow();
        body.complete && body.is_kept
    }

    /// Whether no more of the body was read than so many bytes. (More may be kept, for other nodes or other reasons.)
    pub fn is_within(&self, replay: usize) -> bool {
        self.body.borrow().received <= replay as u64
    }

    /// A further attempt began.
    pub fn count_attempt(&self) {
        self.further.set(self.further.get() + 1);
    }

    /// Attempts so far.
    pub fn attempts(&self) -> u32 {
        self.further.get() + 1
    }

    /// How long weir has waited for the client, ns: no `timeout` counts that.
    pub fn waited_for_client_ns(&self) -> u64 {
        let since = self.waiting_since_ns.get();
        let running = if since == NOT_WAITING { 0 } else { self.core.now().saturating_sub(since) };
        self.waited_ns.get() + running
    }

    /// From now on weir waits for the client, or does not any more.
    pub fn set_waiting_for_client(&self, waits: bool) {
        match (self.waiting_since_ns.get() != NOT_WAITING, waits) {
            (false, true) => self.waiting_since_ns.set(self.core.now()),
            (true, false) => {
                self.waited_ns.set(self.waited_for_client_ns());
                self.waiting_since_ns.set(NOT_WAITING);
            }
            _ => {}
        }
    }

    /// The hash of the request's key; `None` where it has none.
    pub fn key(&self, source: &KeySource) -> Option<u64> {
        let sender = || self.of_run.get().sender;
        let bytes = match source {
            KeySource::Header(name) => match self.request.field(name) {
                Some(bytes) => bytes,
                None => return sender(),
            },
            KeySource::Cookie(name) => match self.request.cookie(name) {
                Some(bytes) => bytes,
                None => return sender(),
            },
            KeySource::Path => self.request.path(),
            KeySource::Client => return Some(sender().unwrap_or_else(|| self.client_key())),
        };
        Some(key::hash(bytes))
    }

    /// The client by its address, IPv6 by its /64.
    fn client_key(&self) -> u64 {
        match self.checked.client.map(|ip| ip.to_canonical()) {
            Some(std::net::IpAddr::V4(ip)) => key::hash(&ip.octets()),
            Some(std::net::IpAddr::V6(ip)) => key::hash(&ip.octets()[..8]),
            None => key::hash(b""),
        }
    }

    /// Tells the client to go on, once.
    pub fn say_continue(&self, cx: &mut Context<'_>) {
        let mut body = self.body.borrow_mut();
        if !body.told {
            body.told = true;
            // Who reads the body waits for the client from now on.
            cx.waker().wake_by_ref();
            self.client.send_continue(cx);
        }
    }

    /// A final answer goes on: the client, told to go on or not, does what it does in its own time. A client that asks once and
    /// then listens is silent for as long as it is answered, so from now on no `body_timeout` of its side counts.
    pub fn begin_answer(&self) {
        self.answered.set(true);
        let mut body = self.body.borrow_mut();
        if !body.told {
            body.told = true;
            self.client.expects_body();
        }
    }

    /// More of the body, from what was read or from the client's connection. Data stands first in the client's input, and is
    /// to be used up by the caller.
    pub fn poll_body(&self, cx: &mut Context<'_>, body: &mut Body) -> Poll<Result<Piece, Failure>> {
        let polled = self.client.poll_body(cx, body.told && !self.answered.get());
        // It is not the client's turn before it was told to go on.
        self.set_waiting_for_client(polled.is_pending() && body.told);
        polled.map(|piece| match piece {
            Ok(Piece::Data(n)) => {
                body.received += n as u64;
                match self.listener().http.max_body {
                    Some(most) if body.received > most => {
                        self.listener().counts.broke("body-too-large");
                        Err(Failure::client(413).with_cause(FailureCause::Client(RequestLimit::MaxBody)))
                    }
                    _ => Ok(Piece::Data(n)),
                }
            }
            Ok(Piece::End) => {
                body.complete = true;
                self.note_request_read();
                Ok(Piece::End)
            }
            Err(RequestBodyError::Refused(status)) => Err(Failure::client(status)),
            // Behind the head of an answer there is no other: the client has left.
            Err(RequestBodyError::Cut) if self.answered.get() => Err(Failure::gone()),
            Err(RequestBodyError::Cut) => Err(Failure::client(400)),
            Err(RequestBodyError::Late) => {
                Err(Failure::client(408).with_cause(FailureCause::Client(RequestLimit::BodyTimeout)))
            }
            Err(RequestBodyError::Gone) => Err(Failure::gone()),
        })
    }

    /// Whether the client came by TLS, as far as a trusted peer says so in place of the connection: a proxy in front, or this
    /// very process.
    pub fn is_https(&self) -> bool {
        let said = self.checked.trusted.then(|| self.request.field("x-forwarded-proto")).flatten();
        match said {
            Some(proto) => proto.eq_ignore_ascii_case(b"https"),
            None => self.client.session().tls_parameters().is_some(),
        }
    }

    /// Whether it asks for an upgrade that may pass, which only HTTP/1.1 carries. A CONNECT is none: HTTP/2 has it as well.
    pub fn is_upgrade(&self) -> bool {
        self.checked.upgrade && !self.request.is_connect()
    }

    /// The version that the client speaks.
    pub fn version(&self) -> Version {
        self.request.version()
    }
}

/// What the rules want to know of a client's hop.
fn hop(client: &ClientEnd) -> Hop<'_> {
    let session = client.session();
    let listener = &session.listener;
    let believed = session.believed();
    Hop {
        peer: session.peer().map(|p| p.ip()).filter(|_| believed.is_none()),
        https: session.tls_parameters().is_some(),
        port: listener.port,
        trusted: believed.map_or(&listener.trusted, |believed| &believed.trusted),
        upgrades: &listener.http.upgrade,
        connect: &listener.http.connect,
        raw_paths: listener.raw_paths,
        own: listener.is_built_in(),
    }
}

impl PinnedConnection {
    /// The connection to this target that only this client may use, if it is still good.
    pub fn take(&self, target: u32, now_ns: u64) -> Option<OriginConn> {
        let mut bound = self.0.borrow_mut();
        let mut bound = bound.take_if(|bound| bound.target == target)?;
        bound.conn.is_usable(now_ns, bound.since_ns, bound.idle_timeout_ns).then_some(bound.conn)
    }

    /// Closes it if it has been idle for too long, is too old, or the origin has closed it.
    pub fn sweep(&self, now_ns: u64) {
        self.0
            .borrow_mut()
            .take_if(|bound| !bound.conn.is_usable(now_ns, bound.since_ns, bound.idle_timeout_ns));
    }

    /// From now on only this client may use it.
    pub fn put(&self, upstream: &dyn Upstream, mut conn: OriginConn, now_ns: u64) {
        conn.rest();
        let (target, idle_timeout_ns) = (upstream.target(), upstream.origin().idle_timeout_ns);
        *self.0.borrow_mut() = Some(PinnedConn { target, conn, since_ns: now_ns, idle_timeout_ns });
    }
}
