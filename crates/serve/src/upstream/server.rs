//! `server(name, addr=...)`: forwards a request to its target and waits for the head of the answer.
//!
//! A request whose reused connection ended before the first byte of an answer is sent once more on a fresh one, if it
//! is idempotent and still kept: the origin had just closed the connection (RFC 9110, 9.2.2; RFC 9112, 9.3.1). Whatever
//! its method, it is sent once more if an origin of HTTP/2 reports that it did nothing: by GOAWAY on a fresh one, by
//! REFUSED_STREAM on another that does not refuse (RFC 9113, 8.7).
//!
//! An upgrade goes by extended CONNECT (RFC 8441) on a connection of HTTP/2 whose origin allows that, or by HTTP/1.1. To
//! an origin that chooses its version by ALPN, and to which no such connection is open, it makes one that offers HTTP/1.1
//! alone. That connection does not show what the origin would have chosen, and requests that may use HTTP/2 leave it
//! alone.

use super::attempt::{Attempt, AttemptError, opening_failure};
use super::connect::Place;
use super::limit::ConnectionLimit;
use super::multiplexed::{Choice, Maker, Making, Turn};
use super::secure::Secure;
use super::sole_target::SoleTarget;
use super::target::Target;
use crate::exchange::abort::Abort;
use crate::exchange::failure::FailureCause;
use crate::exchange::hold::Holds;
use crate::exchange::progress::Sending;
use crate::exchange::reply::{Answer, Reply, ReplySource};
use crate::exchange::upstream::described;
use crate::exchange::{Exchange, Failure, NodeId, OriginConn, RequestContext, Upstream, built_in};
use crate::h1;
use crate::h2::client::{Conn, ConnLimits, Report};
use crate::message::ConnectionHold;
use crate::metrics::Ending;
use crate::transport::inner::OwnConnections;
use crate::transport::listener::Listener;
use crate::transport::proxy_protocol;
use crate::verify_run::RunEvent;
use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_net::io::Core;
use weir_net::io::runtime::AfterOthers;
use weir_net::io::system::is_exhausted;
use weir_net::io::timers::{Sleep, has_ended};
use weir_net::transport::socket::Socket;
use weir_plan::{Origin, OriginProtocol};
use weir_policy::Kind;

/// Closes idle connections of targets, here and on other loops.
pub(crate) trait MakesRoom {
    /// Notes that a request waits for a connection because of the limit.
    fn note_demand(&self) {}

    /// Closes one idle connection to this target on every loop that has one.
    fn close_idle(&self, target: u32);

    /// Closes the longest idle connection; returns whether this loop had one. Other loops close theirs soon.
    fn free_descriptor(&self) -> bool;
}

/// How often other loops are asked to free a descriptor before a connection fails, and the time they have for it, ns.
const ASKS: u32 = 10;
const ASK_AGAIN_NS: u64 = 5_000_000;

/// How often a request looks whether an origin that allowed no streams has more room, ns.
const LOOK_AGAIN_NS: u64 = 20_000_000;

/// The protocols that TLS offers by ALPN, the best first.
const H1: &[&str] = &["http/1.1"];
const H2: &[&str] = &["h2"];
const BOTH: &[&str] = &["h2", "http/1.1"];

/// A server as one loop sees it.
pub(crate) struct Server {
    /// Its number among the nodes.
    pub id: NodeId,
    /// Its name, for logs.
    pub name: Rc<str>,
    /// Its address in the file; `None`: in this process.
    pub addr: Option<Rc<str>>,
    /// The target behind it.
    pub target: Rc<Target>,
    /// TLS to it; `None`: cleartext.
    pub tls: Option<Secure>,
    /// Timeouts and limits of its connections.
    pub origin: Origin,
    /// The token by which the server knows this process or its run; `None`: an origin, which gets no draws.
    pub token: Option<u64>,
    /// For a listener of this process: how it knows this process's connections.
    pub own: Option<Arc<OwnConnections>>,
    /// The limit of connections, over all loops.
    pub most: Option<ConnectionLimit>,
    /// Makes room under that limit, and under that of descriptors.
    pub room: Rc<dyn MakesRoom>,
    /// Its counters if no balancer is in front.
    pub alone: OnceCell<Rc<SoleTarget>>,
}

impl Upstream for Server {
    fn target(&self) -> u32 {
        self.target.key
    }

    fn node(&self) -> NodeId {
        self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn addr(&self) -> Option<&str> {
        self.addr.as_deref()
    }

    fn described(&self) -> String {
        described(&self.name, self.addr.as_deref())
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn put(&self, core: &Core, conn: OriginConn) {
        if self.origin.max_requests.is_none_or(|most| conn.requests() < most) {
            self.target.put(core, conn);
        } else {
            conn.set_ending(Ending::Age);
        }
    }
}

/// The connection that a request was sent on.
#[derive(Clone, Copy)]
struct ConnectionUse {
    /// It had carried requests before.
    reused: bool,
    /// Which connections were allowed; not any if another did not answer.
    choice: Choice,
}

/// Ready when the other tasks have read.
fn poll_after_others(turn: &mut AfterOthers, ex: &Exchange, cx: &Context<'_>) -> Poll<()> {
    let turn = turn.poll(&ex.core.runtime, cx);
    if turn.is_pending() {
        // A small body that came with its head would keep a large read buffer from the tasks that read now.
        ex.client.input().shrink_small();
    }
    turn
}

impl Server {
    /// Forwards the request; the reply holds the connection.
    pub async fn forward(self: &Rc<Self>, ex: &Rc<Exchange>, ctx: &RequestContext) -> Answer {
        if !ex.can_send_again() {
            return Err(Failure::new(Kind::Reset));
        }
        *ex.origin.borrow_mut() = Some(self.clone());
        let mut choice = Choice::Any;
        loop {
            ctx.sending(Sending::Begun);
            let pooled = self.take(ex, choice);
            let reused = pooled.is_some();
            ex.reused.set(reused);
            if reused {
                self.target.counts.reused.one();
            }
            let since_ns = ex.moment();
            let conn = match pooled {
                Some(conn) => conn,
                // Boxed, as it is rare and large: a request with a pooled connection need not carry it.
                None => {
                    match Box::pin(or_target_removed(&ex.core, &ctx.abort, self.connect(ex, choice))).await {
                        Ok(conn) => conn,
                        Err(failure) => {
                            ctx.sending(Sending::Nowhere);
                            return Err(failure.with_server(self.id));
                        }
                    }
                }
            };
            let since_ns = ex.connected(since_ns);
            let mut attempt = Attempt::new(self, ex, ctx, conn);
            let mut turn = AfterOthers::default();
            poll_fn(|cx| poll_after_others(&mut turn, ex, cx)).await;
            let headed = poll_fn(|cx| attempt.poll_head(cx, ex, ctx)).await;
            if headed.is_ok() {
                ex.headed(since_ns);
            }
            match headed {
                Ok(()) if self.is_built_in() && attempt.response().field(built_in::KIND).is_some() => {
                    ctx.sending(Sending::Nowhere);
                    return Err(self.built_in_failure(ex, attempt));
                }
                Ok(()) => {
                    let source = ReplySource::Origin(attempt.into_reply());
                    return Ok(Reply { source, holds: Holds::default() });
                }
                Err(error) => {
                    match error.is_late() {
                        true => ex.core.drop_late(attempt),
                        false => drop(attempt),
                    }
                    choice = self.recover(ex, ctx, error, ConnectionUse { reused, choice })?;
                }
            }
        }
    }

    /// An attempt has ended without an answer. Returns which connections the request may take now.
    ///
    /// # Errors
    /// Its failure, unless the request is sent again.
    #[cold]
    fn recover(
        &self,
        ex: &Exchange,
        ctx: &RequestContext,
        error: AttemptError,
        on: ConnectionUse,
    ) -> Result<Choice, Failure> {
        // The origin did nothing, so any request may be sent again; once, since the next connection may do the same.
        let may_repeat = on.choice == Choice::Any && ex.can_send_again();
        let (may, next, failure) = match error {
            AttemptError::Silent => {
                let idempotent = ex.request.is_idempotent() && ex.can_send_again();
                let failure = Failure::new(Kind::Reset).with_cause(FailureCause::Silent);
                (on.reused && !self.is_built_in() && idempotent, Choice::New, failure)
            }
            AttemptError::Unprocessed => (may_repeat, Choice::New, refused()),
            AttemptError::Refused => (may_repeat, Choice::Willing, refused()),
            AttemptError::With(failure) => (false, on.choice, failure),
        };
        ctx.sending(Sending::Nowhere);
        if !may {
            return Err(failure.with_server(self.id));
        }
        ex.resent.set(true);
        self.target.counts.resent.one();
        Ok(next)
    }

    /// The failure that the answer of a built-in server represents.
    #[cold]
    fn built_in_failure(&self, ex: &Exchange, attempt: Attempt) -> Failure {
        let reply = attempt.into_reply();
        let failure = built_in::failure(reply.response());
        reply.discard(ex);
        failure.with_server(self.id)
    }

    /// Whether it is a server of this process.
    pub fn is_built_in(&self) -> bool {
        matches!(self.target.place, Place::BuiltIn(..))
    }

    fn take(&self, ex: &Exchange, choice: Choice) -> Option<OriginConn> {
        if choice == Choice::New {
            return None;
        }
        let now_ns = ex.core.recent();
        let bound = ex.pinned.take(self.target.key, now_ns);
        // A connection that names its client cannot be shared.
        if self.origin.send_proxy.is_some() {
            return bound;
        }
        bound.or_else(|| match ex.is_upgrade() {
            true => self.take_for_upgrade(now_ns),
            false => self.take_shared(now_ns, choice),
        })
    }

    /// A connection that carries an upgrade, if there is one.
    fn take_for_upgrade(&self, now_ns: u64) -> Option<OriginConn> {
        let idle_ns = self.origin.idle_timeout_ns;
        let extended = self.target.multiplexed.take_extended(now_ns, idle_ns);
        extended.or_else(|| match self.origin.protocol {
            OriginProtocol::H2 => None,
            _ => self.target.take_h1(now_ns, idle_ns),
        })
    }

    /// A connection for a request that is not an upgrade. HTTP/1.1 connections are left to upgrades where HTTP/2 may
    /// be used.
    fn take_shared(&self, now_ns: u64, choice: Choice) -> Option<OriginConn> {
        let idle_ns = self.origin.idle_timeout_ns;
        match self.may_multiplex() {
            true => self.target.multiplexed.take(now_ns, idle_ns, choice),
            false => self.target.take(now_ns, idle_ns, choice),
        }
    }

    /// Opens a connection. If descriptors have run out, idle connections of targets are closed, the oldest first,
    /// before that is an error.
    async fn open(&self, ex: &Exchange) -> io::Result<Socket> {
        let core = &*ex.core;
        let mut asked = 0;
        loop {
            match self.connect_as(ex).await {
                Err(e) if is_exhausted(&e) && asked < ASKS => {
                    if !self.room.free_descriptor() {
                        asked += 1;
                        core.timers.after(ASK_AGAIN_NS).await;
                    }
                }
                made => return made,
            }
        }
    }

    /// Opens a connection; it begins with a PROXY header if the origin expects one.
    async fn connect_as(&self, ex: &Exchange) -> io::Result<Socket> {
        let mut socket = self.target.place.connect(&ex.core).await?;
        if let Some(version) = self.origin.send_proxy {
            let session = ex.client.session();
            let header = proxy_protocol::header(version, session.peer().zip(session.local()))?;
            proxy_protocol::send(&mut socket, &header).await?;
        }
        Ok(socket)
    }

    /// Opens a connection for a health check, to this port if it differs from the target's: on behalf of weir itself.
    pub async fn connect_to_check(&self, core: &Core, port: Option<u16>) -> io::Result<Socket> {
        let mut socket = self.target.place.connect_to(core, port).await?;
        if let Some(version) = self.origin.send_proxy {
            proxy_protocol::send(&mut socket, &proxy_protocol::header(version, None)?).await?;
        }
        Ok(socket)
    }

    async fn connect(&self, ex: &Exchange, choice: Choice) -> Result<OriginConn, Failure> {
        let core = &ex.core;
        let mut limit = self.origin.connect_timeout_ns.map(|ns| core.timers.after(ns));
        if ex.is_upgrade() {
            self.connect_for_upgrade(ex, &mut limit, choice).await
        } else if self.may_multiplex() {
            self.multiplex(ex, &mut limit, choice).await
        } else {
            self.connect_h1(ex, &mut limit).await
        }
    }

    /// Makes a connection for an upgrade: of HTTP/1.1, or of HTTP/2 where nothing else is spoken.
    async fn connect_for_upgrade(
        &self,
        ex: &Exchange,
        limit: &mut Option<Sleep>,
        choice: Choice,
    ) -> Result<OriginConn, Failure> {
        if self.origin.protocol != OriginProtocol::H2 {
            match self.connect_h1(ex, limit).await {
                Err(failure) if failure.cause == FailureCause::UpgradeUnspoken && self.may_multiplex() => {}
                made => return made,
            }
        }
        // One that is open tells what another would.
        let (conn, is_reused) = match self.take_shared(ex.core.now(), choice) {
            Some(conn) => (conn, true),
            None => (self.multiplex(ex, limit, choice).await?, false),
        };
        if !conn.takes_upgrades() {
            return Err(Failure::no_upgrade(FailureCause::NoExtendedConnect));
        }
        if is_reused {
            self.target.counts.reused.one();
        }
        Ok(conn)
    }

    /// Whether HTTP/2 is used or offered: not while a connection is open on which the origin chose HTTP/1.1.
    fn may_multiplex(&self) -> bool {
        match self.origin.protocol {
            OriginProtocol::H1 => false,
            OriginProtocol::H2 => true,
            OriginProtocol::Auto => {
                self.tls.is_some() && self.origin.send_proxy.is_none() && self.target.h1_chosen().is_none()
            }
        }
    }

    /// Makes an HTTP/1.1 connection.
    async fn connect_h1(&self, ex: &Exchange, limit: &mut Option<Sleep>) -> Result<OriginConn, Failure> {
        // A tunnel lasts for days and says nothing about what the origin would choose by then.
        let chosen = if ex.is_upgrade() { None } else { self.target.h1_chosen() };
        let connection = self.dial(ex, limit, H1).await.map_err(|failure| match failure.cause {
            FailureCause::Tls(why) if why.is_of_protocol() && ex.is_upgrade() => {
                Failure::no_upgrade(FailureCause::UpgradeUnspoken)
            }
            _ => failure,
        })?;
        Ok(self.wrap_h1(&ex.core, connection, chosen))
    }

    fn wrap_h1(
        &self,
        core: &Core,
        Connection { socket, held }: Connection,
        chosen: Option<Rc<()>>,
    ) -> OriginConn {
        let mut conn = Box::new(h1::client::Conn::new(core, socket, self.old_ns(core), held));
        conn.bound = self.origin.send_proxy.is_some();
        conn.chosen = chosen;
        OriginConn::H1(conn)
    }

    /// Waits for a place on an HTTP/2 connection.
    async fn multiplex(
        &self,
        ex: &Exchange,
        limit: &mut Option<Sleep>,
        choice: Choice,
    ) -> Result<OriginConn, Failure> {
        loop {
            if !self.may_multiplex() {
                return self.connect_h1(ex, limit).await;
            }
            match self.target.multiplexed.turn(ex.core.now(), self.origin.idle_timeout_ns, choice) {
                Turn::Make(maker) => {
                    let making = maker.making();
                    let conn = self.make(ex, limit, maker).await?;
                    if ex.is_upgrade() {
                        // Only the origin's settings say whether it may begin.
                        self.wait_for(&making, limit).await?;
                    }
                    return Ok(conn);
                }
                Turn::Wait(making) => self.wait_for(&making, limit).await?,
                Turn::Pause => {
                    let pause = ex.core.timers.after(LOOK_AGAIN_NS);
                    within(limit, pause).await.ok_or(self.no_streams())?;
                }
                Turn::GiveUp => return Err(refused()),
            }
            if let Some(conn) = self.take_shared(ex.core.now(), choice) {
                self.target.counts.reused.one();
                return Ok(conn);
            }
        }
    }

    /// Waits until a connection is made and the origin's settings have come.
    async fn wait_for(&self, making: &Making, limit: &mut Option<Sleep>) -> Result<(), Failure> {
        let mut waits = false;
        within(limit, poll_fn(|cx| making.poll(cx, &mut waits))).await.ok_or(self.too_late())?
    }

    /// Makes an HTTP/2 connection, which the target shares from now on. Its first request does not wait for the origin's
    /// settings; others do.
    async fn make(
        &self,
        ex: &Exchange,
        limit: &mut Option<Sleep>,
        maker: Maker,
    ) -> Result<OriginConn, Failure> {
        let core = &ex.core;
        let offers = if self.origin.protocol == OriginProtocol::H2 { H2 } else { BOTH };
        let connection = self.dial(ex, limit, offers).await;
        let Connection { socket, held } = connection.inspect_err(|failure| maker.made(Err(*failure)))?;
        if self.origin.protocol == OriginProtocol::Auto && !socket.is_h2() {
            maker.made(Ok(()));
            return Ok(self.wrap_h1(core, Connection { socket, held }, Some(self.target.chooses_h1())));
        }
        let limits = ConnLimits {
            old_ns: self.old_ns(core),
            most_requests: self.origin.max_requests,
            opening_ns: self.origin.connect_timeout_ns,
        };
        let report = self.report(ex.listener());
        let handle = Conn::open(core, socket, limits, held, report, move |opened| {
            maker.made(opened.map_err(opening_failure));
        });
        self.target.share(core, handle.conn().clone());
        Ok(OriginConn::H2(handle))
    }

    /// Writes what is wrong with a connection of this server to the error log. Those of built-in servers, which have none,
    /// are this process's own.
    fn report(&self, listener: &Listener) -> Option<Report> {
        let log = listener.errors.clone().filter(|_| !listener.is_built_in())?;
        let (name, addr) = (self.name.clone(), self.addr.clone());
        Some(Box::new(move |fault| {
            log.connection_failed(|| format!("{}: {fault}", described(&name, addr.as_deref())));
        }))
    }

    /// When a connection made now will be too old, ns. Jitter of a tenth, so that connections made together do not
    /// end together.
    fn old_ns(&self, core: &Core) -> u64 {
        match self.origin.max_age_ns {
            Some(age) => {
                let sooner = (age / 10).min(core.draw().below((age / 10).max(1)));
                core.now().saturating_add(age - sooner)
            }
            None => u64::MAX,
        }
    }

    /// Connects a socket, with its place under the limit of connections.
    async fn dial(
        &self,
        ex: &Exchange,
        limit: &mut Option<Sleep>,
        offers: &[&str],
    ) -> Result<Connection, Failure> {
        let core = &*ex.core;
        let begun_ns = core.now();
        let counted = match &self.most {
            Some(most) => {
                let waits = Cell::new(false);
                let ask = || {
                    if !waits.replace(true) {
                        self.room.note_demand();
                    }
                    self.room.close_idle(self.target.key);
                };
                let room = most.room(core, limit, ask).await;
                Some(room.ok_or(Failure::new(Kind::Overloaded).with_cause(FailureCause::NoRoom))?)
            }
            None => None,
        };
        match within(limit, self.open(ex)).await {
            Some(Ok(socket)) => {
                socket.extend_user_timeout(self.origin.body_timeout_ns, core.tcp.user_timeout_ns);
                let socket = self.secured(core, socket, offers).await?;
                // Not before: a connection that closes during the handshake would be registered for longer than it is
                // open.
                let own = self.own.as_ref().and_then(|own| own.made(&socket));
                let took_ns = core.now().saturating_sub(begun_ns);
                let open = Some(self.target.counts.opens(took_ns));
                if let Some(run) = &ex.listener().run {
                    run.report(RunEvent::ConnectionOpened(took_ns));
                }
                Ok(Connection { socket, held: ConnectionHold { own, _counted: counted, open } })
            }
            // This process has run out of a resource: the target is not at fault.
            Some(Err(e)) if is_exhausted(&e) => {
                let errno = e.raw_os_error().unwrap_or_default();
                Err(Failure::new(Kind::Overloaded).with_cause(FailureCause::Exhausted(errno)))
            }
            Some(Err(e)) => Err(Failure::new(Kind::ConnectFailed).with_cause(FailureCause::from_io(&e))),
            None => Err(self.too_late()),
        }
    }

    /// Runs TLS on a connection if the server uses it; it has a time limit of its own.
    async fn secured(&self, core: &Core, socket: Socket, offers: &[&str]) -> Result<Socket, Failure> {
        match &self.tls {
            Some(tls) => tls.handshake(core, socket, offers, self.origin.connect_timeout_ns).await,
            None => Ok(socket),
        }
    }

    /// The failure of a request that waited for an origin which allows no streams.
    fn no_streams(&self) -> Failure {
        Failure::new(Kind::Overloaded).with_cause(FailureCause::NoStreams(self.origin.connect_timeout_ns))
    }

    /// The failure of a connection that was not made in time.
    fn too_late(&self) -> Failure {
        Failure::new(Kind::ConnectFailed)
            .with_cause(FailureCause::ConnectLimit(self.origin.connect_timeout_ns))
    }
}

/// The failure of a request on which the origin did no work.
fn refused() -> Failure {
    Failure::new(Kind::Refused).with_cause(FailureCause::Refused)
}

/// A connected socket, and what it holds in this process.
struct Connection {
    socket: Socket,
    held: ConnectionHold,
}

/// The result of `work`, or `None` after the time limit.
async fn within<T>(limit: &mut Option<Sleep>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if has_ended(limit, cx) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Waits for a connection, or for the end of `drain_timeout` if the target is removed meanwhile.
async fn or_target_removed<T>(
    core: &Core,
    abort: &Abort,
    connecting: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    // Never due: ending the requests of a removed target wakes every task that waits for a deadline.
    let woken = core.deadlines.add();
    let mut connecting = std::pin::pin!(connecting);
    poll_fn(|cx| match connecting.as_mut().poll(cx) {
        Poll::Ready(made) => Poll::Ready(made),
        Poll::Pending if abort.is_set() || woken.ended(cx) => Poll::Ready(Err(Failure::aborted())),
        Poll::Pending => Poll::Pending,
    })
    .await
}
