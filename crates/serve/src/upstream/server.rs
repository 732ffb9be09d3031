//! `server(name, addr=...)`: forwards a request to its target and waits for the head of the answer.
//!
//! A request whose reused connection ended before any byte of an answer is sent once more on a fresh one, if it is idempotent
//! and still kept: the origin had closed the connection just then (RFC 9110, 9.2.2; RFC 9112, 9.3.1).
//!
//! An upgrade goes by HTTP/1.1, since HTTP/2 has none (RFC 9113, 8.6). To an origin that chooses its version by ALPN it takes a
//! connection for which nothing else was offered. Such a connection says nothing of what the origin would have chosen, and
//! other requests leave it alone where they may go by HTTP/2.

use super::alone::SoleTarget;
use super::attempt::{Attempt, AttemptError};
use super::connect::Place;
use super::limit::ConnectionLimit;
use super::multiplexed::Turn;
use super::secure::Secure;
use super::target::Target;
use crate::exchange::abort::Abort;
use crate::exchange::failure::FailureCause;
use crate::exchange::hold::Holds;
use crate::exchange::progress::Sending;
use crate::exchange::reply::{Answer, Reply, ReplySource};
use crate::exchange::upstream::described;
use crate::exchange::{Exchange, Failure, NodeId, OriginConn, RequestContext, Upstream, built_in};
use crate::h1;
use crate::h2;
use crate::message::ConnectionHold;
use crate::metrics::Ending;
use crate::transport::own::OwnConnections;
use crate::transport::proxy_protocol;
use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use weir_net::io::Core;
use weir_net::io::runtime::AfterOthers;
use weir_net::io::system::is_exhausted;
use weir_net::io::timers::{Sleep, has_ended};
use weir_net::transport::socket::Socket;
use weir_net::transport::tls;
use weir_plan::{Origin, OriginProtocol};
use weir_policy::Kind;

/// Whoever can close idle connections of targets, here and on other loops.
pub(crate) trait MakesRoom {
    /// Somebody waits for a connection, since there may be no more.
    fn note_demand(&self) {}

    /// Has one idle connection to this target closed on every loop that has one.
    fn close_idle(&self, target: u32);

    /// Has the connection closed that has been idle for longest; whether there was one on this loop. Others close theirs
    /// soon.
    fn free_descriptor(&self) -> bool;
}

/// How often other loops are asked to free a descriptor before a connection fails, and how long they have for it, ns.
const ASKS: u32 = 10;
const ASK_AGAIN_NS: u64 = 5_000_000;

/// What TLS offers by ALPN, the best first.
const H1: &[&str] = &["http/1.1"];
const H2: &[&str] = &["h2"];
const BOTH: &[&str] = &["h2", "http/1.1"];

/// A server as one loop sees it.
pub(crate) struct Server {
    /// Its number among the nodes.
    pub id: NodeId,
    /// Its name, for logs.
    pub name: Rc<str>,
    /// Where the file says that it is; `None`: in this process.
    pub addr: Option<Rc<str>>,
    /// Where it leads.
    pub target: Rc<Target>,
    /// TLS to it; `None`: cleartext.
    pub tls: Option<Secure>,
    /// Timeouts and limits of its connections.
    pub origin: Origin,
    /// What whoever is there knows this process, or its run, by; `None`: an origin, which is told nothing of draws.
    pub token: Option<u64>,
    /// A listener of this process: how it knows its connections.
    pub own: Option<Arc<OwnConnections>>,
    /// How many connections there may be, over all loops.
    pub most: Option<ConnectionLimit>,
    /// How room is made under that limit, and that of descriptors.
    pub room: Rc<dyn MakesRoom>,
    /// What it counts by where no balancer is before it.
    pub alone: OnceCell<Rc<SoleTarget>>,
}

impl Upstream for Server {
    fn target(&self) -> u32 {
        self.target.key
    }

    fn name(&self) -> &str {
        &self.name
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

impl Server {
    /// Forwards the request; the reply holds the connection.
    pub async fn forward(self: &Rc<Self>, ex: &Rc<Exchange>, ctx: &RequestContext) -> Answer {
        if !ex.can_send_again() {
            return Err(Failure::new(Kind::Reset));
        }
        *ex.origin.borrow_mut() = Some(self.clone());
        if ex.is_upgrade() && self.origin.protocol == OriginProtocol::H2 {
            return Err(Failure::no_upgrade(FailureCause::UpgradeRuledOut).with_server(self.id));
        }
        let mut fresh = false;
        loop {
            ctx.sending(Sending::Begun);
            let pooled = if fresh { None } else { self.take(ex) };
            let reused = pooled.is_some();
            ex.reused.set(reused);
            if reused {
                self.target.counts.reused.one();
            }
            let since_ns = ex.moment();
            let conn = match pooled {
                Some(conn) => conn,
                // Boxed, as it is rare and large: what waits for a pooled connection need not carry it.
                None => match Box::pin(or_target_removed(&ex.core, &ctx.abort, self.connect(ex))).await {
                    Ok(conn) => conn,
                    Err(failure) => {
                        ctx.sending(Sending::Nowhere);
                        return Err(failure.with_server(self.id));
                    }
                },
            };
            let since_ns = ex.connected(since_ns);
            let mut attempt = Attempt::new(self, ex, ctx, conn);
            let mut turn = AfterOthers::default();
            poll_fn(|cx| turn.poll(&ex.core.runtime, cx)).await;
            let headed = poll_fn(|cx| attempt.poll_head(cx, ex, ctx)).await;
            if headed.is_ok() {
                ex.headed(since_ns);
            }
            match headed {
                Ok(()) if self.is_built_in() && attempt.response().field(built_in::KIND).is_some() => {
                    ctx.sending(Sending::Nowhere);
                    let reply = attempt.into_reply();
                    let failure = built_in::failure(reply.response());
                    reply.discard(ex);
                    return Err(failure.with_server(self.id));
                }
                Ok(()) => {
                    return Ok(Reply {
                        source: ReplySource::Origin(attempt.into_reply()),
                        holds: Holds::default(),
                    });
                }
                Err(AttemptError::Silent) => {
                    drop(attempt);
                    ctx.sending(Sending::Nowhere);
                    let again =
                        reused && !self.is_built_in() && ex.request.is_idempotent() && ex.can_send_again();
                    if !again {
                        return Err(Failure::new(Kind::Reset)
                            .with_cause(FailureCause::Silent)
                            .with_server(self.id));
                    }
                    ex.resent.set(true);
                    self.target.counts.resent.one();
                    fresh = true;
                }
                Err(AttemptError::Unprocessed) => {
                    drop(attempt);
                    ctx.sending(Sending::Nowhere);
                    // Nothing was done, so that it may be sent again whatever it asks; once, since the next may end as well.
                    if fresh || !ex.can_send_again() {
                        return Err(Failure::new(Kind::Refused)
                            .with_cause(FailureCause::Refused)
                            .with_server(self.id));
                    }
                    ex.resent.set(true);
                    self.target.counts.resent.one();
                    fresh = true;
                }
                Err(AttemptError::With(failure)) => {
                    ctx.sending(Sending::Nowhere);
                    return Err(failure.with_server(self.id));
                }
            }
        }
    }

    /// Whether it is one of this process.
    pub fn is_built_in(&self) -> bool {
        matches!(self.target.place, Place::BuiltIn(..))
    }

    fn take(&self, ex: &Exchange) -> Option<OriginConn> {
        let (now_ns, idle_ns) = (ex.core.recent(), self.origin.idle_timeout_ns);
        let bound = ex.pinned.take(self.target.key, now_ns);
        // One that names its client is nobody else's.
        if self.origin.send_proxy.is_some() {
            return bound;
        }
        bound.or_else(|| match ex.is_upgrade() {
            true => self.target.take_h1(now_ns, idle_ns),
            false => self.take_shared(now_ns),
        })
    }

    /// A connection for a request that is no upgrade. One of HTTP/1.1 is left to upgrades where HTTP/2 may be spoken.
    fn take_shared(&self, now_ns: u64) -> Option<OriginConn> {
        let idle_ns = self.origin.idle_timeout_ns;
        match self.may_multiplex() {
            true => self.target.multiplexed.take(now_ns, idle_ns),
            false => self.target.take(now_ns, idle_ns),
        }
    }

    /// A connection. Where descriptors have run out, the idle connections of targets are closed, the oldest first, before
    /// that is an error.
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

    /// A connection that begins with whose it is, where the origin wants to know.
    async fn connect_as(&self, ex: &Exchange) -> io::Result<Socket> {
        let mut socket = self.target.place.connect(&ex.core).await?;
        if let Some(version) = self.origin.send_proxy {
            let session = ex.client.session();
            let header = proxy_protocol::header(version, session.peer().zip(session.local()))?;
            proxy_protocol::send(&mut socket, &header).await?;
        }
        Ok(socket)
    }

    /// A connection for a health check, to this port if another than the target's: made on weir's own behalf.
    pub async fn connect_to_check(&self, core: &Core, port: Option<u16>) -> io::Result<Socket> {
        let mut socket = self.target.place.connect_to(core, port).await?;
        if let Some(version) = self.origin.send_proxy {
            proxy_protocol::send(&mut socket, &proxy_protocol::header(version, None)?).await?;
        }
        Ok(socket)
    }

    async fn connect(&self, ex: &Exchange) -> Result<OriginConn, Failure> {
        let core = &ex.core;
        let mut limit = self.origin.connect_timeout_ns.map(|ns| core.timers.after(ns));
        if ex.is_upgrade() || !self.may_multiplex() {
            self.connect_h1(ex, &mut limit).await
        } else {
            self.multiplex(ex, &mut limit).await
        }
    }

    /// Whether HTTP/2 is spoken, or asked for: not again while a connection stands on which the origin has chosen HTTP/1.1.
    fn may_multiplex(&self) -> bool {
        match self.origin.protocol {
            OriginProtocol::H1 => false,
            OriginProtocol::H2 => true,
            OriginProtocol::Auto => {
                self.tls.is_some() && self.origin.send_proxy.is_none() && self.target.h1_chosen().is_none()
            }
        }
    }

    /// A connection of HTTP/1.1.
    async fn connect_h1(&self, ex: &Exchange, limit: &mut Option<Sleep>) -> Result<OriginConn, Failure> {
        // A tunnel lasts for days, and says nothing of what the origin would choose by then.
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

    /// A place on a connection of HTTP/2, for which others may wait as well.
    async fn multiplex(&self, ex: &Exchange, limit: &mut Option<Sleep>) -> Result<OriginConn, Failure> {
        loop {
            if !self.may_multiplex() {
                return self.connect_h1(ex, limit).await;
            }
            match self.target.multiplexed.turn() {
                Turn::Make(maker) => {
                    let made = self.make(ex, limit).await;
                    maker.made(made.as_ref().map(drop).map_err(|failure| *failure));
                    return made;
                }
                Turn::Wait(making) => {
                    let mut waits = false;
                    within(limit, poll_fn(|cx| making.poll(cx, &mut waits)))
                        .await
                        .ok_or(self.too_late())??;
                }
            }
            if let Some(conn) = self.take_shared(ex.core.now()) {
                self.target.counts.reused.one();
                return Ok(conn);
            }
        }
    }

    /// Makes a connection of HTTP/2, which the target shares from now on.
    async fn make(&self, ex: &Exchange, limit: &mut Option<Sleep>) -> Result<OriginConn, Failure> {
        let core = &ex.core;
        let offers = if self.origin.protocol == OriginProtocol::H2 { H2 } else { BOTH };
        let connection = self.dial(ex, limit, offers).await?;
        if self.origin.protocol == OriginProtocol::Auto && !connection.socket.is_h2() {
            return Ok(self.wrap_h1(core, connection, Some(self.target.chooses_h1())));
        }
        let Connection { socket, held } = connection;
        let (old_ns, most_requests) = (self.old_ns(core), self.origin.max_requests);
        let opening = h2::client::Conn::open(core, socket, old_ns, most_requests, held);
        let conn = within(limit, opening).await.ok_or(self.too_late())?;
        let failed = |tls: Option<tls::TlsError>| {
            Failure::new(Kind::ConnectFailed).with_cause(tls.map_or(FailureCause::NoHttp2, FailureCause::Tls))
        };
        let conn = conn.map_err(failed)?;
        let handle = conn.take(core.now(), None).ok_or(failed(None))?;
        self.target.share(core, conn);
        Ok(OriginConn::H2(handle))
    }

    /// When a connection made now is too old. Jitter of a tenth, so that connections made together do not end together.
    fn old_ns(&self, core: &Core) -> u64 {
        match self.origin.max_age_ns {
            Some(age) => {
                let sooner = (age / 10).min(core.draw().below((age / 10).max(1)));
                core.now().saturating_add(age - sooner)
            }
            None => u64::MAX,
        }
    }

    /// A socket that is connected, with its place among those that there may be.
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
                // Not before: what closes while it shakes hands would be known for longer than it is open.
                let own = self.own.as_ref().and_then(|own| own.made(&socket));
                let open = Some(self.target.counts.opens(core.now().saturating_sub(begun_ns)));
                Ok(Connection { socket, held: ConnectionHold { own, _counted: counted, open } })
            }
            // This process has nothing left: no target is to blame.
            Some(Err(e)) if is_exhausted(&e) => {
                let errno = e.raw_os_error().unwrap_or_default();
                Err(Failure::new(Kind::Overloaded).with_cause(FailureCause::Exhausted(errno)))
            }
            Some(Err(e)) => Err(Failure::new(Kind::ConnectFailed).with_cause(FailureCause::from_io(&e))),
            None => Err(self.too_late()),
        }
    }

    /// TLS on a connection that stands, where the server wants it; it has a time of its own.
    async fn secured(&self, core: &Core, socket: Socket, offers: &[&str]) -> Result<Socket, Failure> {
        match &self.tls {
            Some(tls) => tls.handshake(core, socket, offers, self.origin.connect_timeout_ns).await,
            None => Ok(socket),
        }
    }

    /// No connection stood in time.
    fn too_late(&self) -> Failure {
        Failure::new(Kind::ConnectFailed)
            .with_cause(FailureCause::ConnectLimit(self.origin.connect_timeout_ns))
    }
}

/// A connection that stands, and what it holds in this process.
struct Connection {
    socket: Socket,
    held: ConnectionHold,
}

/// What this comes to, if it does so in time.
async fn within<T>(limit: &mut Option<Sleep>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if has_ended(limit, cx) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Waits for a connection; no longer than the `drain_timeout` of a target that is removed meanwhile.
async fn or_target_removed<T>(
    core: &Core,
    abort: &Abort,
    connecting: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    // Never due: whoever ends what a removed target still has wakes all who wait for a deadline.
    let woken = core.deadlines.add();
    let mut connecting = std::pin::pin!(connecting);
    poll_fn(|cx| match connecting.as_mut().poll(cx) {
        Poll::Ready(made) => Poll::Ready(made),
        Poll::Pending if abort.is_set() || woken.ended(cx) => Poll::Ready(Err(Failure::aborted())),
        Poll::Pending => Poll::Pending,
    })
    .await
}
