//! One request in flight, with everything that its attempts share: the graph that it began in, its head, the part of
//! its body that has arrived, how long weir waited for the client. Its two ends ([`ClientEnd`], [`OriginEnd`]) know
//! the protocols; nothing else here does.
//!
//! [`serve`] runs a request from its head to the end of its answer; [`relay`] and [`upload`] pass bodies between the
//! ends.

pub(crate) mod abort;
mod answer;
pub(crate) mod built_in;
mod client_end;
pub(crate) mod context;
pub(crate) mod drain;
pub(crate) mod failure;
mod failure_log;
pub(crate) mod hold;
pub(crate) mod late;
mod naming;
pub(crate) mod notes;
mod origin_end;
pub(crate) mod origin_reply;
mod pipes;
pub(crate) mod progress;
mod relay;
pub(crate) mod reply;
pub(crate) mod serve;
pub(crate) mod switch;
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
use crate::message::{Piece, RequestBodyError, keep_request};
use crate::metrics::RequestLimit;
use crate::transport::listener::Listener;
use failure::FailureCause;
use reply::Answer;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::net::IpAddr;
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_http1::{Checked, Hop, Request, Version};
use weir_net::io::Core;
use weir_net::io::pipes::Pipe;
use weir_net::io::reuse::Shared;
use weir_plan::KeySource;
use weir_policy::Kind;
use weir_policy::key;
use weir_stats::Key;
use weir_workload::RunRequest;

/// Index of a node in the graph of a request; it means nothing in another graph.
pub(crate) type NodeId = u32;

/// A request on its way through the nodes: a future that owns what it needs.
pub(crate) type Run = Pin<Box<dyn Future<Output = Answer>>>;

/// The nodes that a request runs through, from its beginning to its end: what nodes know of their graph.
pub(crate) trait Graph {
    /// Runs a request, beginning at this node.
    fn start(self: Rc<Self>, ex: Shared<Exchange>, ctx: RequestContext, node: NodeId) -> Run;

    /// A server's name for log lines; `None`: the node is not a server.
    fn describe(&self, node: NodeId) -> Option<String>;

    /// A node's site and its own name, for log lines.
    fn site(&self, node: NodeId) -> (String, String);

    /// The number of reloads that were applied before it.
    fn generation(&self) -> u32;
}

/// The origin connection that belongs to one client's connection alone (NTLM, Negotiate), kept beyond a request: with
/// the target that it leads to, and the limits that every idle connection has.
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
    /// The graph that it began in.
    graph: RefCell<Option<Rc<dyn Graph>>>,
    /// The client.
    pub client: ClientEnd,
    pub pinned: Rc<PinnedConnection>,
    pub request: RequestHead,
    /// The results of checking the head.
    pub checked: Checked,
    /// The key that its choices are drawn from.
    pub draw: Key,
    /// Its identifier (`request_id`).
    pub id: Option<Box<str>>,
    /// The generation of its graph.
    pub generation: u32,
    /// Notes for its log line; `None`: it gets none.
    pub notes: Option<Box<Notes>>,
    /// Its number in a verification.
    pub of_run: Cell<RunRequest>,
    /// When its head was complete.
    pub begun_ns: u64,
    /// The part of its body that was read.
    pub body: RefCell<Body>,
    /// Attempts beyond the first.
    further: Cell<u32>,
    waited_ns: Cell<u64>,
    waiting_since_ns: Cell<u64>,
    /// The target of the last attempt.
    pub origin: RefCell<Option<Rc<dyn Upstream>>>,
    /// Whether an interim response was forwarded to the client: no other origin may answer after that.
    pub passed_interim: Cell<bool>,
    /// Whether it was sent again because its reused connection had ended.
    pub resent: Cell<bool>,
    /// Whether the last attempt reused a connection.
    pub reused: Cell<bool>,
    /// Whether the head of its final answer was forwarded.
    answered: Cell<bool>,
    /// In a built-in server: the load that its answer reports.
    pub load: Cell<Option<f32>>,
}

/// The body of a request.
pub(crate) struct Body {
    /// Its first bytes, for further attempts.
    pub kept: Vec<u8>,
    /// Whether `kept` holds everything that was read.
    pub is_kept: bool,
    /// Whether it was read completely.
    pub complete: bool,
    /// Bytes read.
    pub received: u64,
    /// Whether the client has received 100 (Continue), or does not wait for it.
    pub told: bool,
}

/// The head of a request, whose memory is used for another one after its exchange.
pub(crate) struct RequestHead(Option<Box<Request>>);

impl Deref for RequestHead {
    type Target = Request;

    fn deref(&self) -> &Request {
        self.0.as_ref().expect("only the end of the exchange takes it")
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(request) = self.request.0.take() {
            keep_request(&self.core, request);
        }
    }
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
            request: RequestHead(Some(request)),
            checked,
            further: Cell::new(0),
            waited_ns: Cell::new(0),
            waiting_since_ns: Cell::new(NOT_WAITING),
            origin: RefCell::default(),
            passed_interim: Cell::new(false),
            resent: Cell::new(false),
            reused: Cell::new(false),
            answered: Cell::new(false),
            load: Cell::new(None),
        }
    }

    /// The graph that a path is in; `None`: it passes no more nodes.
    fn graph_of(&self, ctx: &RequestContext) -> Option<Rc<dyn Graph>> {
        match &ctx.newer {
            Some(newer) => Some(newer.graph.clone()),
            None => self.graph.borrow().clone(),
        }
    }

    /// Runs it from a node of the graph that this path is in: for nodes that act on the answer of what is behind them.
    pub fn start(ex: &Shared<Exchange>, ctx: RequestContext, node: NodeId) -> Run {
        let graph = ex.graph_of(&ctx);
        match graph {
            Some(graph) => graph.start(ex.clone(), ctx, node),
            None => Box::pin(std::future::ready(Err(Failure::new(Kind::NoTarget)))),
        }
    }

    /// The name of a server that it was sent to, for log lines.
    pub fn describe_server(&self, node: NodeId) -> Option<String> {
        // The last one may be a node of a newer graph.
        match self.origin.borrow().as_ref() {
            Some(last) if last.node() == node => Some(last.described()),
            _ => self.graph.borrow().as_ref()?.describe(node),
        }
    }

    /// A node's site and its own name, for its history.
    pub fn site(&self, ctx: &RequestContext, node: NodeId) -> Option<(String, String)> {
        let graph = self.graph_of(ctx);
        Some(graph?.site(node))
    }

    /// Releases the graph: from the head of its answer on it passes no more nodes, and a stream or a tunnel may last
    /// for days.
    pub fn leave_graph(&self) {
        self.graph.borrow_mut().take();
    }

    /// The listener that it arrived at.
    pub fn listener(&self) -> &Listener {
        &self.client.session().listener
    }

    /// Whether the client's connection ends after the answer, because of a drain.
    pub fn is_last(&self) -> bool {
        self.core.is_draining() || self.client.session().is_last_answer()
    }

    /// Whether a drain's time is over.
    pub fn is_cut(&self) -> bool {
        self.client.session().is_cut()
    }

    /// Whether it was sent to a built-in server of this process.
    pub fn is_built_in(&self) -> bool {
        self.listener().is_built_in()
    }

    /// The address that the client's connection comes from.
    pub fn peer_address(&self) -> Option<IpAddr> {
        self.client.session().peer().map(|peer| peer.ip())
    }

    /// The client's hop, as the rules of HTTP see it.
    pub fn hop(&self) -> Hop<'_> {
        hop(&self.client)
    }

    /// Whether the body was read completely.
    pub fn is_complete(&self) -> bool {
        self.body.borrow().complete
    }

    /// Whether another attempt is possible: everything read of the body is kept, and nothing of an answer was
    /// forwarded.
    pub fn can_send_again(&self) -> bool {
        self.body.borrow().is_kept && !self.passed_interim.get()
    }

    /// Whether the whole body is available.
    pub fn is_whole_and_kept(&self) -> bool {
        let body = self.body.borrow();
        body.complete && body.is_kept
    }

    /// Whether at most `replay` bytes of the body were read. (More may be kept, for other nodes or other reasons.)
    pub fn is_within(&self, replay: usize) -> bool {
        self.body.borrow().received <= replay as u64
    }

    /// Counts a further attempt.
    pub fn count_attempt(&self) {
        self.further.set(self.further.get() + 1);
    }

    /// The number of attempts so far.
    pub fn attempts(&self) -> u32 {
        self.further.get() + 1
    }

    /// How long weir has waited for the client, ns; `timeout` does not count that time.
    pub fn waited_for_client_ns(&self) -> u64 {
        let since = self.waiting_since_ns.get();
        let running = if since == NOT_WAITING { 0 } else { self.core.now().saturating_sub(since) };
        self.waited_ns.get() + running
    }

    /// Starts or stops the clock of waiting for the client.
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

    /// The hash of the request's key; `None` if it has none.
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

    /// The client's address as a key, IPv6 by its /64.
    fn client_key(&self) -> u64 {
        match self.checked.client.map(|ip| ip.to_canonical()) {
            Some(std::net::IpAddr::V4(ip)) => key::hash(&ip.octets()),
            Some(std::net::IpAddr::V6(ip)) => key::hash(&ip.octets()[..8]),
            None => key::hash(b""),
        }
    }

    /// Sends 100 (Continue) to the client, once.
    pub fn say_continue(&self, cx: &mut Context<'_>) {
        let mut body = self.body.borrow_mut();
        if !body.told {
            body.told = true;
            // The task that reads the body waits for the client from now on.
            cx.waker().wake_by_ref();
            self.client.send_continue(cx);
        }
    }

    /// Marks that a final answer is forwarded. The client may be silent while it is answered, whether or not it got
    /// 100 (Continue), so its `body_timeout` no longer counts.
    pub fn begin_answer(&self) {
        self.answered.set(true);
        let mut body = self.body.borrow_mut();
        if !body.told {
            body.told = true;
            self.client.expects_body();
        }
    }

    /// Reads more of the body, from the buffer or from the client's connection. The client's input then begins with
    /// the data, which the caller consumes.
    pub fn poll_body(&self, cx: &mut Context<'_>, body: &mut Body) -> Poll<Result<Piece, Failure>> {
        let polled = self.client.poll_body(cx, body.told && !self.answered.get());
        self.note_body(body, polled)
    }

    /// The same into an empty pipe, at most `most` bytes: what the client's end allows.
    pub fn poll_body_pipe(
        &self,
        cx: &mut Context<'_>,
        body: &mut Body,
        pipe: &mut Pipe,
        most: usize,
    ) -> Poll<Result<Piece, Failure>> {
        let polled = self.client.poll_body_pipe(cx, body.told && !self.answered.get(), pipe, most);
        self.note_body(body, polled)
    }

    fn note_body(
        &self,
        body: &mut Body,
        polled: Poll<Result<Piece, RequestBodyError>>,
    ) -> Poll<Result<Piece, Failure>> {
        // Before 100 (Continue) it is not the client's turn.
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
            // After the head of an answer there can be no other: the client has left.
            Err(RequestBodyError::Cut) if self.answered.get() => Err(Failure::gone()),
            Err(RequestBodyError::Cut) => Err(Failure::client(400)),
            Err(RequestBodyError::Late) => {
                Err(Failure::client(408).with_cause(FailureCause::Client(RequestLimit::BodyTimeout)))
            }
            Err(RequestBodyError::Gone) => Err(Failure::gone()),
        })
    }

    /// Whether the client uses TLS: a trusted peer (a proxy in front, or this process) may say so in place of the
    /// connection.
    pub fn is_https(&self) -> bool {
        let said = self.checked.trusted.then(|| self.request.field("x-forwarded-proto")).flatten();
        match said {
            Some(proto) => proto.eq_ignore_ascii_case(b"https"),
            None => self.client.session().tls_parameters().is_some(),
        }
    }

    /// Whether it asks for an allowed upgrade, by Upgrade or by extended CONNECT. CONNECT does not count.
    pub fn is_upgrade(&self) -> bool {
        self.checked.upgrade && !self.request.is_connect()
    }

    /// The version that the client speaks.
    pub fn version(&self) -> Version {
        self.request.version()
    }
}

/// A client's hop, as the rules of HTTP see it.
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
    /// Takes the connection to this target that only this client may use, if it is still usable.
    pub fn take(&self, target: u32, now_ns: u64) -> Option<OriginConn> {
        let mut bound = self.0.borrow_mut();
        let mut bound = bound.take_if(|bound| bound.target == target)?;
        bound.conn.is_usable(now_ns, bound.since_ns, bound.idle_timeout_ns).then_some(bound.conn)
    }

    /// Closes it if it was idle for too long, is too old, or was closed by the origin.
    pub fn sweep(&self, now_ns: u64) {
        self.0
            .borrow_mut()
            .take_if(|bound| !bound.conn.is_usable(now_ns, bound.since_ns, bound.idle_timeout_ns));
    }

    /// When it has been idle for too long, ns.
    pub fn idle_due_ns(&self) -> Option<u64> {
        let bound = self.0.borrow();
        bound.as_ref().map(|bound| bound.since_ns.saturating_add(bound.idle_timeout_ns.unwrap_or(u64::MAX)))
    }

    /// Keeps a connection that only this client may use.
    pub fn put(&self, upstream: &dyn Upstream, mut conn: OriginConn, now_ns: u64) {
        conn.rest();
        let (target, idle_timeout_ns) = (upstream.target(), upstream.origin().idle_ns(false));
        *self.0.borrow_mut() = Some(PinnedConn { target, conn, since_ns: now_ns, idle_timeout_ns });
    }
}
